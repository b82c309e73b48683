"""What a tenant gives to its host, and what it sees of it: Secrets are copied, hardware is shown, nothing of the BMC is."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from claims_room import BMC, HARDWARE, IMAGE, OTHER_IMAGE, Room, opened

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.core import SECRETS, SecretObject
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.hostclaim import HOST_CLAIMS
from ingot.api.meta import Key
from ingot.embedded.server import Running
from ingot.kube import NotFound

pytestmark = pytest.mark.asyncio(loop_scope="module")

OCI_IMAGE = {"url": "oci://registry.example/os:1", "ociAuthSecretName": "pull"}
DOCKER = "kubernetes.io/dockerconfigjson"
ADDRESS = "10.9.8.7"


@pytest_asyncio.fixture(loop_scope="module")
async def room(machine_api: Running) -> AsyncIterator[Room]:
    async with opened(machine_api) as room:
        yield room


def value(secret: SecretObject, key: str) -> str:
    return base64.b64decode(secret.data[key]).decode()


async def copy(room: Room, ending: str) -> SecretObject | None:
    found = [one for one in await room.copies() if one.metadata.name.endswith(ending)]
    assert len(found) <= 1
    return found[0] if found else None


# Secrets


async def test_what_a_host_needs_is_copied_beside_it_and_belongs_to_it(room: Room) -> None:
    await room.policy()
    host = await room.host()
    await room.secret("words", userData="#cloud-config", elsewhere="not asked for")
    await room.secret("net", value="links: []")
    await room.secret("meta", metaData="rack: 3")
    async with room.operator():
        claim = await room.claim(
            userData={"name": "words", "namespace": room.tenant},
            networkData={"name": "net"},
            metaData={"name": "meta"},
        )
        await room.until_told(claim, "Synchronized", "True")
    told, uid = await room.get_host(host), (await room.get(claim)).metadata.uid
    assert told.spec.user_data is not None
    assert told.spec.user_data.name == f"hostclaim-{uid}-user-data"
    assert told.spec.user_data.namespace == ""
    assert told.spec.network_data is not None
    assert told.spec.meta_data is not None
    named = {told.spec.user_data.name, told.spec.network_data.name, told.spec.meta_data.name}
    copies = await room.copies()
    assert {one.metadata.name for one in copies} == named
    for one in copies:
        assert [owner.uid for owner in one.metadata.owner_references] == [told.metadata.uid]
        assert one.metadata.labels["environment.metal3.io"] == "baremetal"
        assert one.type == "Opaque"
    words = await copy(room, "user-data")
    assert words is not None
    assert list(words.data) == ["userData"]
    assert value(words, "userData") == "#cloud-config"


async def test_a_secret_that_the_tenant_changes_is_changed_beside_the_host(room: Room) -> None:
    await room.policy()
    await room.host()
    await room.secret("words", userData="one")
    async with room.operator():
        claim = await room.claim(userData={"name": "words"})
        await room.until_told(claim, "Synchronized", "True")
        await room.secret("words", userData="two")
        await room.until_of(
            SECRETS, (await room.copies())[0].key, lambda one: value(one, "userData") == "two"
        )
        # The other key comes first; the one that is not read goes.
        await room.client.patch(SECRETS, Key(room.tenant, "words"), {"data": {"userData": None}})
        await room.secret("words", value="three")
        found = await room.until_of(SECRETS, (await room.copies())[0].key, lambda one: "value" in one.data)
        assert list(found.data) == ["value"]
        await room.secret("others", userData="four")
        await room.edit(claim, userData={"name": "others"})
        await room.until_of(
            SECRETS, found.key, lambda one: "userData" in one.data and value(one, "userData") == "four"
        )


async def test_a_copy_that_somebody_removes_is_made_again(room: Room) -> None:
    await room.policy()
    await room.host()
    await room.secret("words", userData="one")
    async with room.operator():
        claim = await room.claim(userData={"name": "words"})
        await room.until_told(claim, "Synchronized", "True")
        first = (await room.copies())[0]
        await room.client.delete(SECRETS, first.key)
        again = await room.until_of(
            SECRETS, first.key, lambda found: found.metadata.uid != first.metadata.uid
        )
    assert value(again, "userData") == "one"


async def test_what_is_not_asked_for_any_more_is_not_left_beside_the_host(room: Room) -> None:
    await room.policy()
    host = await room.host()
    await room.secret("words", userData="one")
    await room.secret("net", networkData="{}")
    async with room.operator():
        claim = await room.claim(userData={"name": "words"}, networkData={"name": "net"})
        await room.until_told(claim, "Synchronized", "True")
        await room.edit(claim, networkData=None)
        await room.until_host(host, lambda found: found.spec.network_data is None)
        await room.until_told(claim, "Synchronized", "True")
        assert [one.metadata.name[-9:] for one in await room.copies()] == ["user-data"]
        await room.edit(claim, image=None)
        await room.until_host(host, lambda found: found.spec.user_data is None)
        await room.until_told(claim, "Synchronized", "True")
        assert await room.copies() == []


async def test_copies_go_when_the_host_is_released(room: Room) -> None:
    await room.policy()
    host = await room.host()
    await room.secret("words", userData="one")
    async with room.operator():
        claim = await room.claim(userData={"name": "words"})
        await room.until_told(claim, "Synchronized", "True")
        await room.bring(host, "provisioned")
        await room.client.delete(HOST_CLAIMS, claim)
        await room.until_host(host, lambda found: found.spec.image is None)
        await room.bring(host, "available")
        await room.until_gone(claim)
    assert await room.copies() == []
    assert await room.client.get(SECRETS, Key(room.tenant, "words"))


async def test_the_secret_of_a_registry_is_copied_and_the_tenants_name_for_it_goes_nowhere(
    room: Room,
) -> None:
    await room.policy()
    host = await room.host()
    # Whoever runs the hosts has one of this name, which is none of the tenant's business.
    await room.secret(
        "pull", type=DOCKER, namespace=room.racks, **{".dockerconfigjson": '{"auths": {"theirs": {}}}'}
    )
    await room.secret("pull", type=DOCKER, **{".dockerconfigjson": '{"auths": {}}'})
    async with room.operator():
        claim = await room.claim(image=OCI_IMAGE)
        await room.until_told(claim, "Synchronized", "True")
    image = (await room.get_host(host)).spec.image
    assert image is not None
    found = await copy(room, "pull-secret")
    assert found is not None
    assert image.oci_auth_secret_name == found.metadata.name != "pull"
    assert found.type == DOCKER
    assert value(found, ".dockerconfigjson") == '{"auths": {}}'


async def test_a_name_of_a_secret_that_is_not_copied_is_not_handed_on(room: Room) -> None:
    """An image that comes from no registry needs none; the name would mean another Secret where the host is."""
    await room.policy()
    host = await room.host()
    async with room.operator():
        claim = await room.claim(image={**IMAGE, "ociAuthSecretName": BMC["credentialsName"]})
        await room.until_told(claim, "Synchronized", "True")
    image = (await room.get_host(host)).spec.image
    assert image is not None
    assert image.oci_auth_secret_name == ""


@pytest.mark.parametrize(
    ("field", "values", "reason", "words"),
    [
        ("userData", None, "UserDataSecretSyncFailure", "does not exist"),
        (
            "userData",
            {"else": "x"},
            "UserDataSecretSyncFailure",
            "neither the key userData nor the key value",
        ),
        ("metaData", {"metaData": "[1, 2]"}, "MetaDataSecretSyncFailure", "YAML or JSON mapping"),
        ("metaData", {"else": "x"}, "MetaDataSecretSyncFailure", "neither the key metaData"),
        ("networkData", None, "NetworkDataSecretSyncFailure", "does not exist"),
    ],
)
async def test_no_host_is_taken_for_a_claim_whose_secrets_cannot_be_used(
    room: Room, field: str, values: dict[str, str] | None, reason: str, words: str
) -> None:
    await room.policy()
    await room.host()
    if values is not None:
        await room.secret("words", **values)
    async with room.operator():
        claim = await room.claim(**{field: {"name": "words"}})
        found = await room.until_told(claim, "Synchronized", "False", words)
        assert found.reason == reason
        assert await room.hosts_of(claim) == []
        await room.secret("words", **{field: "a: b"})
        await room.until_told(claim, "Associated", "True")


async def test_user_data_that_coreos_cannot_read_is_told_before_a_host_is_taken(room: Room) -> None:
    await room.policy()
    await room.host()
    await room.secret("words", userData="#cloud-config")
    async with room.operator():
        claim = await room.claim(
            image=None, customDeploy={"method": "install_coreos"}, userData={"name": "words"}
        )
        await room.until_told(claim, "Synchronized", "False", "Ignition")
        assert await room.hosts_of(claim) == []
        await room.secret("words", userData=json.dumps({"ignition": {"version": "3.4.0"}}))
        await room.until_told(claim, "Associated", "True")


@pytest.mark.parametrize(("type_", "values"), [("Opaque", {"a": "b"}), (DOCKER, {".dockerconfigjson": "{}"})])
async def test_only_a_secret_for_registries_is_a_pull_secret(
    room: Room, type_: str, values: dict[str, str]
) -> None:
    await room.policy()
    await room.host()
    await room.secret("pull", type=type_, **values)
    async with room.operator():
        claim = await room.claim(image=OCI_IMAGE)
        if type_ == DOCKER:
            await room.until_told(claim, "Synchronized", "True")
        else:
            found = await room.until_told(claim, "Synchronized", "False", "not one for a registry")
            assert found.reason == "PullSecretSyncFailure"


async def test_a_running_host_is_left_as_it_is_when_a_secret_goes_but_can_be_switched_off(room: Room) -> None:
    await room.policy()
    host = await room.host()
    await room.secret("words", userData="one")
    async with room.operator():
        claim = await room.claim(userData={"name": "words"})
        await room.until_told(claim, "Synchronized", "True")
        await room.bring(host, "provisioned")
        await room.until_told(claim, "Ready", "True")
        await room.client.delete(SECRETS, Key(room.tenant, "words"))
        await room.until_told(claim, "Synchronized", "False", "does not exist")
        await room.edit(claim, image=OTHER_IMAGE, poweredOn=False)
        told = await room.until_host(host, lambda found: not found.spec.online)
        assert told.spec.image is not None
        assert told.spec.image.url == IMAGE["url"]
        assert len(await room.copies()) == 1
        await room.secret("words", userData="two")
        await room.until_host(
            host, lambda found: found.spec.image is not None and found.spec.image.url == OTHER_IMAGE["url"]
        )


async def test_a_secret_under_the_name_of_a_copy_is_not_overwritten(room: Room) -> None:
    await room.policy()
    host = await room.host()
    await room.secret("words", userData="one")
    async with room.operator(works=False) as operator:
        claim = await room.claim(userData={"name": "words"})
        uid = (await room.get(claim)).metadata.uid
        theirs = await room.secret(f"hostclaim-{uid}-user-data", namespace=room.racks, userData="theirs")
        await room.until_of(HOST_CLAIMS, claim, lambda _: operator.claims.get(claim) is not None)
        operator.work()
        await room.until_told(claim, "Synchronized", "False", "does not take what the claim asks for")
        assert str(theirs) in await room.until_event(room.racks, "ClaimRefused")
        assert await room.hosts_of(claim) == []
        assert value(await room.client.get(SECRETS, theirs), "userData") == "theirs"
        await room.client.delete(SECRETS, theirs)
        await room.annotate(claim, again="")
        await room.until_told(claim, "Associated", "True")
    assert (await room.get_host(host)).spec.user_data is not None


async def test_a_label_does_not_make_somebodys_secret_a_copy_to_be_removed(room: Room) -> None:
    await room.policy()
    await room.host()
    await room.secret("words", userData="one")
    async with room.operator():
        claim = await room.claim(userData={"name": "words"})
        await room.until_told(claim, "Synchronized", "True")
        uid = (await room.get(claim)).metadata.uid
        theirs = await room.secret("theirs", namespace=room.racks, a="b")
        label = {"metadata": {"labels": {"ingot.metal3.io/hostclaim": uid}}}
        await room.client.patch(SECRETS, theirs, label)
        await room.client.delete(HOST_CLAIMS, claim)
        await room.until_gone(claim)
    assert [one.key for one in await room.copies()] == [theirs]


async def test_network_data_that_a_host_has_of_its_own_stays_its_own(room: Room) -> None:
    await room.policy()
    host = await room.host(networkData={"name": "rack-3"}, metaData={"name": "rack-3"})
    await room.secret("net", networkData="{}")
    async with room.operator():
        claim = await room.claim()
        await room.until_told(claim, "Synchronized", "True")
        told = await room.get_host(host)
        assert told.spec.network_data is not None
        assert told.spec.network_data.name == "rack-3"
        await room.edit(claim, networkData={"name": "net"})
        await room.until_host(
            host,
            lambda found: found.spec.network_data is not None and "hostclaim" in found.spec.network_data.name,
        )
        await room.client.delete(HOST_CLAIMS, claim)
        await room.until_gone(claim)
    freed = await room.get_host(host)
    assert freed.spec.network_data is None
    assert freed.spec.meta_data is not None
    assert freed.spec.meta_data.name == "rack-3"


# Hardware


async def test_a_tenant_sees_what_its_host_is_made_of(room: Room) -> None:
    await room.policy()
    host = await room.host()
    async with room.operator():
        claim = await room.claim()
        await room.until_told(claim, "Synchronized", "True")
        told = await room.get(claim)
        assert told.status.hardware_data is not None
        assert (told.status.hardware_data.namespace, told.status.hardware_data.name) == claim
        found = await room.client.get(HARDWARE_DATA, claim)
        assert found.spec.hardware is not None
        assert found.spec.hardware.hostname == "h-one"
        assert [owner.uid for owner in found.metadata.owner_references] == [told.metadata.uid]
        await room.bring(host, "provisioned", hardware={**HARDWARE, "ramMebibytes": 8192})
        await room.until_of(
            HARDWARE_DATA,
            claim,
            lambda one: one.spec.hardware is not None and one.spec.hardware.ram_mebibytes == 8192,
        )
        told = await room.until(claim, lambda one: one.status.hardware_data is not None)


async def is_there(room: Room, key: Key) -> bool:
    try:
        await room.client.get(HARDWARE_DATA, key)
    except NotFound:
        return False
    return True


async def test_hardware_data_that_is_somebodys_is_not_overwritten(room: Room) -> None:
    """A namespace with claims can have hosts of its own, one of which has the name of a claim."""
    await room.policy()
    await room.host()
    theirs = {"metadata": {"name": "c1"}, "spec": {"hardware": {"hostname": "theirs"}}}
    await room.client.create(HARDWARE_DATA, theirs, namespace=room.tenant)
    async with room.operator():
        claim = await room.claim()
        await room.until_told(claim, "Synchronized", "True")
        assert (await room.get(claim)).status.hardware_data is None
        await room.client.delete(HOST_CLAIMS, claim)
        await room.until_gone(claim)
    found = await room.client.get(HARDWARE_DATA, Key(room.tenant, "c1"))
    assert found.spec.hardware is not None
    assert found.spec.hardware.hostname == "theirs"


async def test_in_one_namespace_the_hosts_own_hardware_data_is_named(room: Room) -> None:
    await room.policy(namespace=room.tenant)
    host = await room.host(namespace=room.tenant)
    await room.client.create(
        HARDWARE_DATA, {"metadata": {"name": "h1"}, "spec": {"hardware": HARDWARE}}, namespace=room.tenant
    )
    async with room.operator():
        claim = await room.claim(hostSelector={"inNamespace": room.tenant})
        await room.until_told(claim, "Synchronized", "True")
        told = await room.until(claim, lambda found: found.status.hardware_data is not None)
    assert told.status.hardware_data is not None
    assert (told.status.hardware_data.namespace, told.status.hardware_data.name) == host
    assert not await is_there(room, claim)


# What is not shown


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"errorType": "registration error"}, "cannot be managed"),
        ({"errorType": "power management error"}, "cannot be managed"),
        ({"errorType": "provisioned registration error"}, "cannot be managed"),
        ({"errorType": "inspection error"}, "could not be inspected"),
        ({"errorType": "preparation error"}, "could not be prepared"),
        ({"errorType": "servicing error"}, "could not be serviced"),
        ({"errorType": "provisioning error"}, "could not be installed"),
        ({}, "cannot be managed"),
    ],
)
async def test_a_fault_of_the_host_is_told_without_what_is_not_the_tenants_business(
    room: Room, status: dict[str, Any], words: str
) -> None:
    await room.policy()
    host = await room.host()
    await room.secret("words", userData="one")
    fault = {
        "operationalStatus": "error",
        "errorMessage": f"The BMC at {ADDRESS} refused the password in Secret h-bmc-password",
        "errorCount": 1,
        **status,
    }
    async with room.operator():
        claim = await room.claim(userData={"name": "words"})
        await room.until_told(claim, "Associated", "True")
        await room.bring(host, "provisioning", **fault)
        found = await room.until_told(claim, "Ready", "False", words)
        assert found.reason == "Error"
        await room.until_event(room.tenant, "Error")
        await room.bring(host, "provisioned", **fault)
        await room.until_told(claim, "Provisioned", "True")
        await room.until_told(claim, "Ready", "False", words)
    seen = await room.everything_in(room.tenant)
    for hidden in (ADDRESS, "redfish", "h-bmc-password", "BMC", "bmc", "user-data"):
        assert hidden not in seen, hidden


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [("baremetalhost.metal3.io/paused", "HostPaused"), ("baremetalhost.metal3.io/detached", "Detached")],
)
async def test_a_host_that_is_out_of_reach_says_so(room: Room, annotation: str, reason: str) -> None:
    await room.policy()
    host = await room.host()
    async with room.operator():
        claim = await room.claim()
        await room.until_told(claim, "Associated", "True")
        await room.bring(host, "provisioned")
        await room.until_told(claim, "Ready", "True")
        await room.client.patch(BARE_METAL_HOSTS, host, {"metadata": {"annotations": {annotation: ""}}})
        assert (await room.until_told(claim, "Ready", "False", "nothing is changed on it")).reason == reason
        await room.until_told(claim, "Provisioned", "True")
        await room.client.delete(HOST_CLAIMS, claim)
        await room.until_told(
            claim, "Ready", "False", "its host is emptied first. Whoever runs the hosts has"
        )
