"""The life of a claim on the embedded API: it gets a host, follows what the tenant changes, says how it stands, and goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from claims_room import IMAGE, OTHER_IMAGE, Room, condition, consumer, opened

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import NAMESPACES, SECRETS
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.hostclaim import FINALIZER, HOST_CLAIMS
from ingot.api.hostdeploypolicy import HOST_DEPLOY_POLICIES
from ingot.api.meta import Key
from ingot.embedded.server import Running
from ingot.machines.waiting import LOOK_AGAIN

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def room(machine_api: Running) -> AsyncIterator[Room]:
    async with opened(machine_api) as room:
        yield room


def url(host: BareMetalHost) -> str:
    return host.spec.image.url if host.spec.image is not None else ""


def is_free(host: BareMetalHost) -> bool:
    return host.spec.consumer_ref is None


async def running(room: Room) -> tuple[Key, Key]:
    """A claim and its host, on which what is asked for runs, as an operator at work makes them."""
    await room.policy()
    host, claim = await room.host(), await room.claim()
    await room.until_told(claim, "Synchronized", "True")
    await room.bring(host, "provisioned")
    await room.until_told(claim, "Ready", "True")
    return claim, host


# Getting a host


async def test_a_claim_takes_a_host_and_tells_it_everything_at_once(room: Room) -> None:
    await room.policy()
    host = await room.host()
    async with room.operator() as operator:
        claim = await room.claim()
        await room.until_told(claim, "Synchronized", "True")
    taken, told = await room.get_host(host), await room.get(claim)
    assert operator.pen.written == [
        "HostClaim",
        "HostClaim/status",
        "BareMetalHost",
        "create HardwareData",
        "HostClaim/status",
    ]
    consumer = taken.spec.consumer_ref
    assert consumer is not None
    assert (consumer.api_version, consumer.kind) == ("metal3.io/v1alpha1", "HostClaim")
    assert (consumer.namespace, consumer.name) == claim
    assert taken.spec.online
    assert url(taken) == IMAGE["url"]
    assert told.metadata.finalizers == [FINALIZER]
    assert told.status.bare_metal_host is not None
    assert (told.status.bare_metal_host.namespace, told.status.bare_metal_host.name) == host


async def test_a_claim_says_how_its_host_gets_on(room: Room) -> None:
    await room.policy()
    async with room.operator():
        host, claim = await room.host(), await room.claim()
        await room.until_told(claim, "Provisioned", "False", "begins to install")
        assert (await room.until_told(claim, "AvailableForProvisioning", "True")).reason == "Available"
        await room.bring(host, "provisioning")
        assert (
            await room.until_told(claim, "Provisioned", "False", "being installed")
        ).reason == "Provisioning"
        await room.until_told(claim, "AvailableForProvisioning", "False")
        await room.bring(host, "provisioned")
        assert (await room.until_told(claim, "Provisioned", "True")).reason == "Provisioned"
        assert (await room.until_told(claim, "Ready", "True")).reason == "Ready"
        assert (await room.get(claim)).status.powered_on
    for kind in ("Associated", "Synchronized", "Provisioned", "AvailableForProvisioning", "Ready"):
        found = condition(await room.get(claim), kind)
        assert found is not None, kind
        assert found.message, kind
        assert found.observed_generation == 1


async def test_a_claim_that_asks_for_nothing_has_a_host_to_itself(room: Room) -> None:
    await room.policy()
    host = await room.host()
    async with room.operator():
        claim = await room.claim(image=None, poweredOn=False)
        await room.until_told(claim, "Synchronized", "True")
        await room.until_told(claim, "Ready", "False", "asks for nothing to be installed")
        await room.until_told(claim, "AvailableForProvisioning", "True")
        taken = await room.get_host(host)
    assert not is_free(taken)
    assert taken.spec.image is None
    assert not taken.spec.online


async def test_only_hosts_that_are_asked_for_are_taken(room: Room) -> None:
    await room.policy()
    await room.host("small", labels={"size": "s"})
    fits = await room.host("large", labels={"size": "l"})
    selector = {"matchExpressions": [{"key": "size", "operator": "In", "values": ["l", "xl"]}]}
    async with room.operator():
        claim = await room.claim(hostSelector=selector)
        await room.until_host(fits, lambda host: not is_free(host))
        waits = await room.claim("c2", hostSelector=selector)
        await room.until_told(
            waits, "Associated", "False", "1 host is claimed already; 1 host is not what is asked for"
        )
    assert await room.hosts_of(claim) == ["large"]


async def test_a_claim_of_coreos_waits_for_a_host_without_software_raid(room: Room) -> None:
    await room.policy()
    await room.host("mirrored", raid={"softwareRAIDVolumes": [{"level": "1"}]})
    async with room.operator():
        claim = await room.claim(image={"url": "", "format": "coreos"})
        await room.until_told(claim, "Associated", "False", "1 host is not what is asked for")
        fits = await room.host("plain")
        await room.until_host(fits, lambda host: not is_free(host))
    assert await room.hosts_of(claim) == ["plain"]


async def test_a_host_of_the_failure_domain_is_taken_first_and_another_one_where_there_is_none(
    room: Room,
) -> None:
    await room.policy()
    label = "infrastructure.cluster.x-k8s.io/failure-domain"
    for number in range(4):
        await room.host(f"a{number}", labels={label: "a"})
    await room.host("b", labels={label: "b"})
    async with room.operator():
        first, second = await room.claim("c1", failureDomain="b"), await room.claim("c2", failureDomain="b")
        for claim in (first, second):
            await room.until_told(claim, "Associated", "True")
    both = [*await room.hosts_of(first), *await room.hosts_of(second)]
    assert "b" in both
    assert len(both) == 2


async def test_a_claim_waits_for_a_host_and_takes_it_when_it_comes(room: Room) -> None:
    await room.policy()
    async with room.operator():
        claim = await room.claim()
        found = await room.until_told(claim, "Associated", "False", "there are no hosts")
        assert found.reason == "NoBareMetalHost"
        await room.host()
        await room.until_told(claim, "Associated", "True")


@pytest.mark.parametrize(
    ("status", "spec"),
    [
        ({"errorMessage": "the BMC does not answer", "errorType": "power management error"}, {}),
        ({}, {"externallyProvisioned": True}),
        ({}, {"consumerRef": {"kind": "Machine", "name": "m", "namespace": "x"}}),
    ],
)
async def test_what_is_somebodys_or_in_trouble_is_not_taken(room: Room, status: object, spec: object) -> None:
    await room.policy()
    host = await room.host(**(spec if isinstance(spec, dict) else {}))
    await room.bring(host, "available", **(status if isinstance(status, dict) else {}))
    async with room.operator():
        claim = await room.claim()
        await room.until_told(claim, "Associated", "False", "No host can be had")
    assert await room.hosts_of(claim) == []


# Who may


async def test_without_a_policy_nothing_is_bound_and_with_one_it_is_at_once(room: Room) -> None:
    await room.host()
    async with room.operator():
        claim = await room.claim()
        found = await room.until_told(claim, "Associated", "False", "No HostDeployPolicy lets the namespace")
        assert found.reason == "NoBareMetalHost"
        assert await room.hosts_of(claim) == []
        await room.policy()
        await room.until_told(claim, "Associated", "True")


async def test_a_namespace_that_gets_the_label_of_a_policy_may_claim_at_once(room: Room) -> None:
    await room.host()
    await room.policy(hasLabels=[{"name": "paid", "value": "yes"}])
    async with room.operator():
        claim = await room.claim()
        await room.until_told(claim, "Associated", "False", "No HostDeployPolicy")
        await room.client.patch(NAMESPACES, Key("", room.tenant), {"metadata": {"labels": {"paid": "yes"}}})
        await room.until_told(claim, "Associated", "True")


async def test_hosts_of_a_namespace_that_says_nothing_are_not_given_away(room: Room) -> None:
    """The tenant asks for them by name, and is told the same whether there are any or not."""
    await room.policy()
    cellar = await room.another_namespace()
    await room.host(namespace=cellar)
    async with room.operator():
        there = await room.claim("c1", hostSelector={"inNamespace": cellar})
        nowhere = await room.claim("c2", hostSelector={"inNamespace": "nowhere"})
        one = await room.until_told(there, "Associated", "False", "No HostDeployPolicy")
        other = await room.until_told(nowhere, "Associated", "False", "No HostDeployPolicy")
    assert one.message.replace(cellar, "X") == other.message.replace("nowhere", "X")
    assert await room.hosts_of(there) == []


async def test_a_claim_that_has_its_host_keeps_it_when_the_policy_goes_and_a_new_one_gets_none(
    room: Room,
) -> None:
    async with room.operator():
        claim, host = await running(room)
        await room.host("h2")
        await room.client.delete(HOST_DEPLOY_POLICIES, Key(room.racks, "tenants"))
        late = await room.claim("late")
        await room.until_told(late, "Associated", "False", "No HostDeployPolicy")
        await room.edit(claim, image=OTHER_IMAGE)
        await room.until_host(host, lambda found: url(found) == OTHER_IMAGE["url"])
        assert await room.hosts_of(claim) == ["h1"]
        await room.client.delete(HOST_CLAIMS, claim)
        await room.until_host(host, lambda found: found.spec.image is None)
        await room.bring(host, "available")
        await room.until_gone(claim)
    assert is_free(await room.get_host(host))


@pytest.mark.parametrize("taken", [False, True])
async def test_a_status_that_names_a_host_which_the_tenant_may_not_have_gets_nobody_that_host(
    room: Room, taken: bool
) -> None:
    """Only the operator should be able to write it; whoever can, gains nothing."""
    consumer = {
        "kind": "Machine",
        "apiVersion": "machine.openshift.io/v1beta1",
        "name": "m",
        "namespace": "x",
    }
    host = await room.host(**({"consumerRef": consumer, "image": IMAGE} if taken else {}))
    claim = await room.claim(image=OTHER_IMAGE)
    place = {"bareMetalHost": {"namespace": room.racks, "name": "h1"}}
    await room.client.patch(HOST_CLAIMS, claim, {"status": place}, subresource="status")
    async with room.operator():
        await room.until_told(claim, "Associated", "False", "No HostDeployPolicy")
        assert await room.hosts_of(claim) == []
        await room.client.delete(HOST_CLAIMS, claim)
        await room.until_gone(claim)
    left = await room.get_host(host)
    assert url(left) == (IMAGE["url"] if taken else "")


@pytest.mark.parametrize("may", [False, True], ids=["no policy", "not asked for"])
async def test_a_host_that_somebody_elsewhere_gives_to_a_claim_gets_nothing_of_the_tenant(
    room: Room, may: bool
) -> None:
    """Whoever has hosts of his own could write the name of any claim on them."""
    await room.policy()
    cellar = await room.another_namespace()
    if may:
        await room.policy(namespace=cellar)
    given = await room.host("given", namespace=cellar, consumerRef=consumer(room, "c1"))
    await room.host("h1")
    await room.secret("words", userData="of the tenant")
    async with room.operator():
        claim = await room.claim(
            userData={"name": "words"}, hostSelector={"inNamespace": room.racks if may else ""}
        )
        await room.until_told(claim, "Synchronized", "True")
        place = (await room.get(claim)).status.bare_metal_host
        assert place is not None
        assert Key(place.namespace, place.name) == Key(room.racks, "h1")
        assert (await room.client.list(SECRETS, namespace=cellar)).items == []
        await room.client.delete(HOST_CLAIMS, claim)
        # What it never had keeps it no longer.
        await room.bring(given, "provisioned")
        await room.until_gone(claim)
    assert not is_free(await room.get_host(given))


async def test_a_host_that_is_not_taken_after_all_goes_to_who_waits_for_it_at_once(room: Room) -> None:
    await room.policy()
    async with room.operator() as operator:
        operator.pen.slow_at = 1
        host, first = await room.host(), await room.claim()
        # It is about to say which host it takes.
        await operator.pen.is_slow.wait()
        operator.pen.slow_at = None
        second = await room.claim("c2", image=OTHER_IMAGE)
        await room.until_told(second, "Associated", "False", "1 host is claimed already")
        await room.client.delete(HOST_CLAIMS, first)
        operator.pen.go_on.set()
        async with asyncio.timeout(LOOK_AGAIN - 3):
            await room.until_host(host, lambda found: url(found) == OTHER_IMAGE["url"])


async def test_a_policy_that_cannot_be_used_says_so_and_lets_nobody(room: Room) -> None:
    await room.host()
    async with room.operator():
        claim = await room.claim()
        key = await room.policy()
        await room.until_told(claim, "Associated", "True")
        # As a cluster without the webhook has it.
        await room.client.patch(HOST_DEPLOY_POLICIES, key, {"spec": {"hostClaimNamespaces": {"names": None}}})
        message = await room.until_event(room.racks, "PolicyUnusable")
        assert "makes no demand" in message
        await room.host("h2")
        late = await room.claim("late")
        await room.until_told(late, "Associated", "False", "No HostDeployPolicy")


# Changing one's mind


async def test_another_image_is_installed_in_place_of_the_first(room: Room) -> None:
    async with room.operator():
        claim, host = await running(room)
        await room.edit(claim, image=OTHER_IMAGE)
        told = await room.until_host(host, lambda found: url(found) == OTHER_IMAGE["url"])
        assert not is_free(told)
        await room.until_told(claim, "Provisioned", "False", "is being removed")
        await room.bring(host, "provisioned")
        await room.until_told(claim, "Ready", "True")


async def test_without_its_image_the_claim_keeps_an_empty_host(room: Room) -> None:
    async with room.operator():
        claim, host = await running(room)
        await room.edit(claim, image=None)
        told = await room.until_host(host, lambda found: found.spec.image is None)
        assert not is_free(told)
        await room.bring(host, "available")
        await room.until_told(claim, "AvailableForProvisioning", "True")
        await room.until_told(claim, "Provisioned", "False", "asks for nothing")


async def test_a_custom_deploy_step_is_handed_on(room: Room) -> None:
    await room.policy()
    host = await room.host()
    async with room.operator():
        claim = await room.claim(image=None, customDeploy={"method": "install_coreos"})
        await room.until_told(claim, "Synchronized", "True")
    told = await room.get_host(host)
    assert told.spec.custom_deploy is not None
    assert told.spec.custom_deploy.method == "install_coreos"


async def test_power_follows_the_claim(room: Room) -> None:
    async with room.operator():
        claim, host = await running(room)
        await room.edit(claim, poweredOn=False)
        await room.until_host(host, lambda found: not found.spec.online)
        await room.edit(claim, poweredOn=True)
        await room.until_host(host, lambda found: found.spec.online)


async def test_a_host_that_is_never_switched_off_stays_on_and_the_claim_says_so(room: Room) -> None:
    await room.policy()
    host = await room.host(disablePowerOff=True, online=True)
    async with room.operator():
        claim = await room.claim(poweredOn=False)
        await room.until_told(claim, "Synchronized", "True", "never switched off")
        assert (await room.get_host(host)).spec.online
        await room.client.delete(HOST_CLAIMS, claim)
        await room.until_gone(claim)
    freed = await room.get_host(host)
    assert is_free(freed)
    assert freed.spec.online


async def test_what_others_change_on_the_host_is_put_right(room: Room) -> None:
    async with room.operator():
        _, host = await running(room)
        await room.client.patch(BARE_METAL_HOSTS, host, {"spec": {"image": OTHER_IMAGE}})
        await room.until_host(host, lambda found: url(found) == IMAGE["url"])


async def test_another_selector_does_not_move_a_claim_that_has_its_host(room: Room) -> None:
    async with room.operator():
        claim, _ = await running(room)
        await room.host("h2", labels={"size": "l"})
        await room.edit(claim, hostSelector={"matchLabels": {"size": "l"}})
        await room.until_told(claim, "Ready", "True")
    assert await room.hosts_of(claim) == ["h1"]


# Rebooting


async def test_a_reboot_is_handed_on_once(room: Room) -> None:
    async with room.operator():
        claim, host = await running(room)
        await room.annotate(claim, **{"reboot.metal3.io": '{"mode": "hard"}'})
        told = await room.until_host(host, lambda found: "reboot.metal3.io" in found.metadata.annotations)
        assert told.metadata.annotations["reboot.metal3.io"] == '{"mode": "hard"}'
        left = await room.until(
            claim, lambda found: not [name for name in found.metadata.annotations if "reboot" in name]
        )
        # It was obeyed.
        await room.client.patch(
            BARE_METAL_HOSTS, host, {"metadata": {"annotations": {"reboot.metal3.io": None}}}
        )
        await room.edit(claim, poweredOn=False)
        again = await room.until_host(host, lambda found: not found.spec.online)
        assert "reboot.metal3.io" not in again.metadata.annotations
        assert left.metadata.annotations == {}
        await room.annotate(claim, **{"reboot.metal3.io": ""})
        await room.until_host(host, lambda found: found.metadata.annotations.get("reboot.metal3.io") == "")


async def test_a_host_is_held_off_until_the_claim_lets_it_go(room: Room) -> None:
    async with room.operator():
        claim, host = await running(room)
        theirs = {"reboot.metal3.io/mine": ""}
        await room.client.patch(BARE_METAL_HOSTS, host, {"metadata": {"annotations": theirs}})
        await room.annotate(claim, **{"reboot.metal3.io/mine": "", f"reboot.metal3.io/{'x' * 63}": ""})

        def held(found: BareMetalHost) -> list[str]:
            return [name for name in found.metadata.annotations if name.startswith("reboot.metal3.io/host")]

        await room.until_host(host, lambda found: len(held(found)) == 2)
        await room.annotate(claim, **{"reboot.metal3.io/mine": None})
        await room.until_host(host, lambda found: len(held(found)) == 1)
        await room.client.delete(HOST_CLAIMS, claim)
        left = await room.until_host(host, lambda found: not held(found))
    assert "reboot.metal3.io/mine" in left.metadata.annotations


# Going


async def test_a_claim_goes_when_its_host_is_empty_and_not_before(room: Room) -> None:
    async with room.operator():
        claim, host = await running(room)
        await room.client.delete(HOST_CLAIMS, claim)
        emptied = await room.until_host(host, lambda found: found.spec.image is None)
        assert not is_free(emptied)
        assert not emptied.spec.online
        found = await room.until_told(claim, "Ready", "False", "being deleted")
        assert found.reason == "HostClaimDeleting"
        await room.bring(host, "deprovisioning")
        await room.bring(host, "preparing")
        assert not is_free(await room.get_host(host))
        await room.bring(host, "available")
        await room.until_gone(claim)
    left = await room.get_host(host)
    assert is_free(left)
    assert left.metadata.annotations == {}
    await room.until_gone(claim, HARDWARE_DATA)


async def test_a_claim_without_a_host_goes_at_once(room: Room) -> None:
    async with room.operator():
        claim = await room.claim()
        await room.until_told(claim, "Associated", "False")
        await room.client.delete(HOST_CLAIMS, claim)
        await room.until_gone(claim)


async def test_a_host_is_given_to_the_next_claim_after_it_was_emptied(room: Room) -> None:
    async with room.operator():
        claim, host = await running(room)
        following = await room.claim("c2", image=OTHER_IMAGE)
        await room.until_told(following, "Associated", "False", "claimed already")
        await room.client.delete(HOST_CLAIMS, claim)
        await room.until_host(host, lambda found: found.spec.image is None)
        await room.bring(host, "available")
        await room.until_told(following, "Associated", "True")
        assert url(await room.get_host(host)) == OTHER_IMAGE["url"]


async def test_a_host_that_vanishes_is_replaced_and_that_is_said(room: Room) -> None:
    async with room.operator():
        claim, host = await running(room)
        await room.client.delete(BARE_METAL_HOSTS, host)
        assert str(host) in await room.until_event(room.tenant, "MissingBareMetalHost")
        await room.until_told(claim, "Associated", "False")
        assert (await room.get(claim)).status.bare_metal_host is None
        await room.host("h2")
        await room.until_told(claim, "Associated", "True", "h2")


async def test_a_claim_restored_without_its_status_finds_its_host_again(room: Room) -> None:
    await room.policy()
    await room.host("h2")
    await room.host("h1", state="provisioned", online=True, image=IMAGE, consumerRef=consumer(room, "c1"))
    async with room.operator():
        claim = await room.claim()
        await room.until_told(claim, "Associated", "True", "h1")
    assert await room.hosts_of(claim) == ["h1"]


async def test_a_host_that_refuses_what_the_claim_asks_is_told_about_where_its_users_look(room: Room) -> None:
    await room.policy()
    host = await room.host()
    async with room.operator():
        claim = await room.claim(image=None)
        await room.until_told(claim, "Synchronized", "True")
        # Not a reboot that any host would obey; on the claim nobody judges it.
        await room.annotate(claim, **{"ingot.metal3.io/reboot": "0123456789abcdef nonsense"})
        found = await room.until_told(claim, "Synchronized", "False", "does not take what the claim asks for")
        assert found.reason == "BareMetalHostNotSynchronized"
        assert "reboot.metal3.io" in await room.until_event(room.racks, "ClaimRefused")
        await room.annotate(claim, **{"ingot.metal3.io/reboot": None})
        await room.until_told(claim, "Synchronized", "True")
    assert "reboot.metal3.io" not in (await room.get_host(host)).metadata.annotations
