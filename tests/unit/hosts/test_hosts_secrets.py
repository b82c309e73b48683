"""Secrets of hosts: who may read them, how they are marked, and how long they are kept."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from rack import IMAGE, Rack

from ingot.api.baremetalhost import SECRET_FINALIZER, Annotation, BareMetalHost
from ingot.api.core import EVENTS, SECRETS, SecretObject
from ingot.api.meta import Key
from ingot.hosts.secrets.known import KnownCredentials
from ingot.kube import Informer, NotFound
from ingot.provisioner import Busy

LABEL = {"environment.metal3.io": "baremetal"}


async def secret(rack: Rack, name: str) -> SecretObject:
    return await rack.client.get(SECRETS, Key(rack.namespace, name))


async def until_secret(rack: Rack, name: str, wanted: Any) -> SecretObject:
    return await rack.until_object(SECRETS, Key(rack.namespace, name), wanted)


# Marks


async def test_the_secret_of_the_bmc_is_labelled_owned_and_held(rack: Rack) -> None:
    key = await rack.host()
    host = await rack.until_state(key, "available")
    found = (await secret(rack, "h1-bmc")).metadata
    assert found.labels == LABEL
    assert found.finalizers == [SECRET_FINALIZER]
    (owner,) = found.owner_references
    assert (owner.uid, owner.kind) == (host.metadata.uid, "BareMetalHost")
    assert not owner.controller, "a plain owner: several hosts may own it"


async def test_the_secret_of_the_bmc_costs_one_write(rack: Rack) -> None:
    written: list[str] = []
    secrets = Informer(rack.client, SECRETS, namespace=rack.namespace)
    watching = asyncio.create_task(secrets.run())
    await secrets.synced()
    secrets.subscribe(lambda change: written.append(change.key.name))
    key = await rack.host()
    await rack.until_state(key, "available")
    await rack.settle()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert written == ["h1-bmc", "h1-bmc"], "created by its user, marked by us"


async def test_an_old_controller_reference_becomes_a_plain_one(rack: Rack) -> None:
    await rack.secret("h1-bmc")
    rack.backend.hold("register", Busy("registering"))
    key = await rack.host(secret=False)
    host = await rack.until_state(key, "registering")
    old = {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "name": "h1",
        "uid": host.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    await rack.client.patch(SECRETS, rack.bmc, {"metadata": {"ownerReferences": [old]}})
    found = await until_secret(
        rack, "h1-bmc", lambda found: not found.metadata.owner_references[0].controller
    )
    assert [owner.uid for owner in found.metadata.owner_references] == [host.metadata.uid]


async def test_the_other_secrets_are_labelled_and_only_the_ramdisks_network_is_held(rack: Rack) -> None:
    for name in ("user", "net", "meta", "ramdisk-net"):
        await rack.secret(name, userData="a", networkData="links: []", metaData="{}")
    key = await rack.host(
        image=IMAGE,
        userData={"name": "user"},
        networkData={"name": "net"},
        metaData={"name": "meta"},
        preprovisioningNetworkDataName="ramdisk-net",
    )
    await rack.until_state(key, "provisioned")
    for name in ("user", "net", "meta", "ramdisk-net"):
        found = (await secret(rack, name)).metadata
        assert found.labels == LABEL
        assert found.finalizers == ([SECRET_FINALIZER] if name == "ramdisk-net" else [])
        assert found.owner_references == []


async def test_a_secret_that_comes_later_is_labelled_when_it_comes(rack: Rack) -> None:
    key = await rack.host(userData={"name": "user"})
    await rack.until_state(key, "available")
    await rack.secret("user", userData="a")
    await until_secret(rack, "user", lambda found: found.metadata.labels == LABEL)


# Letting go


async def test_the_secret_of_a_host_that_names_another_one_is_let_go(rack: Rack) -> None:
    key = await rack.host()
    await rack.until_state(key, "available")
    await rack.secret("other", username="root", password="x")
    await rack.change(key, {"bmc": {"credentialsName": "other"}})
    await rack.until(key, lambda host: _good(host) == "other")
    found = await until_secret(rack, "h1-bmc", lambda found: not found.metadata.finalizers)
    assert found.metadata.owner_references == [], "it must not go together with a host that does not use it"
    await rack.client.delete(SECRETS, rack.bmc)
    with pytest.raises(NotFound):
        await secret(rack, "h1-bmc")
    assert (await rack.get(key)).status.error_type == ""


async def test_a_secret_that_lost_its_last_host_while_nobody_looked_is_let_go(rack: Rack) -> None:
    key = await rack.host(preprovisioningNetworkDataName="ramdisk-net")
    await rack.secret("ramdisk-net", networkData="links: []")
    await until_secret(rack, "ramdisk-net", lambda found: found.metadata.finalizers == [SECRET_FINALIZER])
    await rack.until_state(key, "available")
    await rack.operator.end()
    await rack.change(key, {"preprovisioningNetworkDataName": None})
    await rack.operator.start()
    await until_secret(rack, "ramdisk-net", lambda found: not found.metadata.finalizers)


async def test_a_shared_secret_is_kept_while_one_host_needs_it_whatever_the_other_names(rack: Rack) -> None:
    one = await rack.host("h1")
    address = "redfish-virtualmedia://127.0.0.1/s"
    two = await rack.host("h2", secret=False, bmc={"address": address, "credentialsName": "h1-bmc"})
    for key in (one, two):
        await rack.until_state(key, "available")
    await rack.secret("other", username="root", password="x")
    await rack.change(one, {"bmc": {"credentialsName": "other"}})
    uid = (await rack.get(two)).metadata.uid
    found = await until_secret(rack, "h1-bmc", lambda found: len(found.metadata.owner_references) == 1)
    assert found.metadata.finalizers == [SECRET_FINALIZER]
    assert found.metadata.owner_references[0].uid == uid


async def test_a_secret_somebody_deletes_stays_until_its_host_is_gone(rack: Rack) -> None:
    key = await rack.host()
    await rack.until_state(key, "available")
    await rack.client.delete(SECRETS, rack.bmc)
    await rack.settle()
    assert (await secret(rack, "h1-bmc")).metadata.deletion_timestamp is not None
    assert (await rack.get(key)).status.error_type == ""
    await rack.delete(key)
    await rack.until_gone(key)
    with pytest.raises(NotFound):
        await secret(rack, "h1-bmc")


async def test_the_network_of_the_ramdisk_is_let_go_with_its_host(rack: Rack) -> None:
    await rack.secret("ramdisk-net", networkData="links: []")
    key = await rack.host(preprovisioningNetworkDataName="ramdisk-net")
    await rack.until_state(key, "available")
    await rack.delete(key)
    await rack.until_gone(key)
    found = await secret(rack, "ramdisk-net")
    assert found.metadata.finalizers == []


# Versions and what they hold


async def test_a_secret_that_came_while_the_host_was_detached_is_labelled_when_it_is_attached(
    rack: Rack,
) -> None:
    key = await rack.host(userData={"name": "user"})
    await rack.until_state(key, "available")
    await rack.annotate(key, Annotation.DETACHED)
    await rack.until(key, lambda host: host.status.operational_status == "detached")
    await rack.secret("user", userData="#cloud-config")
    await rack.settle()
    await rack.annotate(key, Annotation.DETACHED, None)
    await until_secret(rack, "user", lambda found: found.metadata.labels == LABEL)


async def test_a_secret_that_only_got_a_label_disturbs_no_provisioned_host(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    before = await rack.until_state(key, "provisioned")
    await rack.settle()
    orders = list(rack.backend.machines[key].orders)
    events = await rack.event_reasons()
    await rack.client.patch(
        SECRETS, rack.bmc, {"metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "c"}}}
    )
    version = (await secret(rack, "h1-bmc")).metadata.resource_version
    host = await rack.until(key, lambda host: _version(host) == version)
    await rack.settle()
    assert rack.backend.machines[key].orders == orders, "nothing is tried on the BMC"
    assert await rack.event_reasons() == events
    assert host.status.tried_credentials == host.status.good_credentials
    assert host.status.provisioning == before.status.provisioning


async def test_another_password_is_tried_and_told(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    await rack.client.patch(SECRETS, rack.bmc, {"stringData": {"username": "root"}})
    version = (await secret(rack, "h1-bmc")).metadata.resource_version
    host = await rack.until(key, lambda host: _version(host) == version)
    assert rack.backend.machines[key].orders[-1] == "try root"
    assert host.state == "provisioned"


async def test_a_version_that_changed_while_nobody_looked_is_tried_without_touching_the_machine(
    rack: Rack,
) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    orders = list(rack.backend.machines[key].orders)
    await rack.operator.end()
    await rack.client.patch(SECRETS, rack.bmc, {"metadata": {"labels": {"a": "b"}}})
    await rack.operator.start()
    version = (await secret(rack, "h1-bmc")).metadata.resource_version
    host = await rack.until(key, lambda host: _version(host) == version)
    assert rack.backend.machines[key].orders == [*orders, "try admin"]
    assert (host.state, host.status.error_type) == ("provisioned", "")


async def test_our_own_mark_of_a_shared_secret_makes_no_host_try_anew(rack: Rack) -> None:
    one = await rack.host("h1")
    await rack.until_state(one, "available")
    await rack.settle()
    orders = list(rack.backend.machines[one].orders)
    address = "redfish-virtualmedia://127.0.0.1/s"
    two = await rack.host("h2", secret=False, bmc={"address": address, "credentialsName": "h1-bmc"})
    await rack.until_state(two, "available")
    rack.backend.tell(one)
    await rack.settle()
    assert rack.backend.machines[one].orders == orders


def test_a_digest_tells_credentials_apart_and_nobody_what_they_are() -> None:
    known = KnownCredentials()
    assert known.digest("ab", "c") != known.digest("a", "bc")
    assert known.digest("a", "hunter2") == known.digest("a", "hunter2")
    assert known.digest("a") != KnownCredentials().digest("a")


# What is told when credentials are missing


@pytest.mark.parametrize(
    ("values", "bmc", "sentence"),
    [
        pytest.param(None, {}, "Secret h1-bmc with the BMC's user name", id="no Secret"),
        pytest.param({"username": "a"}, {}, "has no password", id="no password"),
        pytest.param({"username": " ", "password": "b"}, {}, "has no username", id="only blanks"),
        pytest.param(
            {"username": "a", "password": "b"},
            {"credentialsName": ""},
            "spec.bmc.credentialsName is empty",
            id="no name",
        ),
        pytest.param(
            {"username": "a", "password": "b"},
            {"address": ""},
            "spec.bmc.address is empty",
            id="no address",
        ),
    ],
)
async def test_credentials_that_are_not_there_are_told_once_as_an_event_of_their_own(
    rack: Rack, values: dict[str, str] | None, bmc: dict[str, str], sentence: str
) -> None:
    if values is not None:
        await rack.secret("h1-bmc", **values)
    address = "redfish-virtualmedia://127.0.0.1/redfish/v1/Systems/h1"
    wanted = {"address": address, "credentialsName": "h1-bmc"} | bmc
    key = await rack.host(secret=False, bmc=wanted)
    host = await rack.until_error(key, sentence)
    assert host.status.error_type == "registration error"
    for _ in range(2):
        rack.backend.tell(key)
        await rack.settle()
    events = (await rack.client.list(EVENTS, namespace=rack.namespace)).items
    told = [event for event in events if event.reason == "BMCCredentialError"]
    assert [(event.type, event.count) for event in told] == [("Warning", 1)]
    assert "RegistrationError" not in await rack.event_reasons()
    assert rack.backend.machines[key].orders == []


async def test_blanks_around_user_name_and_password_do_not_count(rack: Rack) -> None:
    await rack.secret("h1-bmc", username=" admin\n", password=" x \n")
    key = await rack.host(secret=False)
    await rack.until_state(key, "available")
    access = rack.backend.machines[key].access
    assert access is not None
    assert (access.credentials.username, access.credentials.password.reveal()) == ("admin", "x")


async def test_a_value_that_is_no_text_is_named_and_not_shown(rack: Rack) -> None:
    await rack.secret("h1-bmc")
    wrong = base64.b64encode(b"\xff\xfe").decode()
    await rack.client.patch(SECRETS, rack.bmc, {"data": {"password": wrong}})
    key = await rack.host(secret=False)
    host = await rack.until_error(key, "'password' is not text")
    assert wrong not in host.status.error_message


def _good(host: BareMetalHost) -> str:
    found = host.status.good_credentials.credentials
    return found.name if found is not None else ""


def _version(host: BareMetalHost) -> str:
    return host.status.good_credentials.credentials_version
