"""What a claimant sets on a host, in one patch, and how it leaves."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.api.baremetalhost import BareMetalHost, CustomDeploy, Image
from ingot.api.meta import ObjectReference, SecretReference
from ingot.machines.targets import RELEASE, Target, difference, emptying, is_emptied

MACHINE = ObjectReference(
    api_version="machine.openshift.io/v1beta1", kind="Machine", namespace="m", name="worker-0"
)
IMAGE = Image(url="https://images/system.qcow2", checksum="ab" * 32, checksum_type="sha256")


def host(spec: dict[str, Any], state: str = "available", *, on: bool = False) -> BareMetalHost:
    body = {
        "metadata": {"name": "h", "namespace": "racks"},
        "spec": {"online": False, **spec},
        "status": {"provisioning": {"state": state}, "poweredOn": on},
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=BareMetalHost)


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396, as the API does it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def patched(found: BareMetalHost, patch: dict[str, Any]) -> BareMetalHost:
    body = merged(msgspec.json.decode(msgspec.json.encode(found)), patch)
    return msgspec.convert(body, BareMetalHost)


def test_a_claim_sets_consumer_image_data_and_power_in_one_patch() -> None:
    target = Target(
        consumer=MACHINE, online=True, image=IMAGE, user_data=SecretReference(name="u", namespace="m")
    )
    change = difference(host({}), target)
    assert change == {
        "spec": {
            "consumerRef": {
                "apiVersion": "machine.openshift.io/v1beta1",
                "kind": "Machine",
                "namespace": "m",
                "name": "worker-0",
            },
            "online": True,
            "image": {"url": IMAGE.url, "checksum": IMAGE.checksum, "checksumType": "sha256"},
            "userData": {"name": "u", "namespace": "m"},
        }
    }
    assert difference(patched(host({}), change), target) == {}


images = st.none() | st.builds(
    Image,
    url=st.sampled_from(["", "https://a/b", "https://a/c"]),
    checksum=st.sampled_from(["", "ab"]),
    format=st.sampled_from([None, "raw", "coreos"]),
)
secrets = st.none() | st.builds(
    SecretReference, name=st.sampled_from(["a", "b"]), namespace=st.sampled_from(["", "n"])
)
targets = st.builds(
    Target,
    consumer=st.sampled_from([MACHINE, ObjectReference(kind="HostClaim", name="c", uid="7")]),
    online=st.booleans(),
    image=images,
    custom_deploy=st.none() | st.just(CustomDeploy(method="install_coreos")),
    user_data=secrets,
    network_data=secrets,
    meta_data=secrets,
)


@given(targets, targets)
def test_whatever_the_host_had_before_it_has_what_is_wanted_afterwards(first: Target, second: Target) -> None:
    before = patched(host({}), difference(host({}), first))
    after = patched(before, difference(before, second))
    assert difference(after, second) == {}
    assert after.spec.image == second.image
    assert after.spec.consumer_ref == second.consumer
    assert difference(after, first) == {} or first != second


@given(targets)
def test_emptying_takes_all_but_the_claim_and_is_asked_for_once(target: Target) -> None:
    found = patched(host({}), difference(host({}), target))
    emptied = patched(found, emptying(found))
    assert emptied.spec.consumer_ref == target.consumer
    assert (emptied.spec.image, emptied.spec.custom_deploy, emptied.spec.user_data) == (None, None, None)
    assert emptied.spec.online is False
    assert emptying(emptied) == {}
    assert patched(emptied, RELEASE).spec.consumer_ref is None


def test_a_host_that_is_never_switched_off_is_left_on() -> None:
    assert emptying(host({"online": True, "disablePowerOff": True})) == {}


@pytest.mark.parametrize(
    ("state", "on", "emptied"),
    [
        ("available", False, True),
        ("inspecting", False, True),
        ("", False, True),
        ("preparing", False, False),
        ("provisioning", False, False),
        ("provisioned", True, False),
        ("deprovisioning", True, False),
        ("externally provisioned", True, False),
        ("externally provisioned", False, True),
    ],
)
def test_a_host_is_released_only_when_nothing_of_its_claimant_runs_on_it(
    state: str, on: bool, emptied: bool
) -> None:
    assert is_emptied(host({}, state, on=on)) is emptied
