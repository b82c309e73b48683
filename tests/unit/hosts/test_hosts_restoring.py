"""A host that was moved here starts from the status it had elsewhere."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from rack import IMAGE, Rack
from scripted import DETAILS

from ingot.api.baremetalhost import BARE_METAL_HOSTS, Annotation, BareMetalHost, ErrorType, Image
from ingot.api.core import EVENTS
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.meta import Key, Malformed
from ingot.api.wire import wire
from ingot.hosts.restoring import status_in
from ingot.provisioner import Failed


def moved(rack: Rack, state: str = "provisioned", **more: Any) -> dict[str, str]:
    """The annotation that whoever moves a host leaves on it."""
    known = {
        "credentials": {"name": "h1-bmc", "namespace": rack.namespace},
        "credentialsVersion": "4711",
    }
    status = {
        "operationalStatus": "OK",
        "errorMessage": "",
        "errorCount": 0,
        "poweredOn": True,
        "hardwareProfile": "unknown",
        "goodCredentials": known,
        "triedCredentials": known,
        "lastUpdated": "2026-01-01T00:00:00Z",
        "operationHistory": {"register": {"start": "2025-12-31T00:00:00Z", "end": None}},
        "provisioning": {"state": state, "ID": "id-of-elsewhere"}
        | ({"image": IMAGE} if state == "provisioned" else {"image": {"url": ""}}),
    }
    return {Annotation.STATUS: json.dumps(status | more)}


def runs(rack: Rack, name: str = "h1") -> Key:
    """A machine on which something runs, of a host that comes here."""
    key = Key(rack.namespace, name)
    rack.backend.machines[key].on = True
    return key


async def test_a_host_restored_as_provisioned_is_registered_and_adopted_and_nothing_else(rack: Rack) -> None:
    key = runs(rack)
    await rack.host(annotations=moved(rack), image=IMAGE)
    host = await rack.until(
        key, lambda host: host.status.good_credentials.credentials_version not in ("", "4711")
    )
    await rack.settle()
    assert host.state == "provisioned"
    assert rack.backend.machines[key].orders == ["register", "try admin"]
    assert rack.backend.machines[key].adopted is not None
    assert rack.backend.machines[key].adopted.url == IMAGE["url"]
    host = await rack.get(key)
    assert Annotation.STATUS not in host.metadata.annotations
    assert host.status.provisioning.id == "id-of-h1"
    assert host.status.provisioning.image is not None
    assert host.status.provisioning.image.url == IMAGE["url"]
    assert host.status.operation_history.register.start is not None
    assert host.status.powered_on


async def test_taking_over_a_moved_host_costs_five_writes_of_it(rack: Rack) -> None:
    key = runs(rack)
    async with rack.host_writes() as writes:
        await rack.host(annotations=moved(rack, hardwareProfile="unknown"), image=IMAGE)
        await rack.until(
            key, lambda host: host.status.good_credentials.credentials_version not in ("", "4711")
        )
        await rack.settle()
    # The host itself; the finalizer; the status; the annotation that goes; credentials that are tried; that they are good.
    assert len(writes) == 1 + 5


async def test_a_restored_host_that_was_externally_provisioned_stays_so(rack: Rack) -> None:
    key = runs(rack)
    await rack.host(annotations=moved(rack, "externally provisioned"), externallyProvisioned=True)
    await rack.until_well(key, "externally provisioned")
    await rack.settle()
    assert rack.backend.machines[key].orders == ["register", "try admin"]


async def test_names_of_states_of_older_releases_are_taken_over(rack: Rack) -> None:
    key = await rack.host(annotations=moved(rack, "ready", poweredOn=False))
    await rack.until(key, lambda host: host.state == "available" and host.status.powered_on)
    assert rack.backend.machines[key].orders == ["register", "try admin", "power on"]


async def test_a_pivot_during_servicing_restores(rack: Rack) -> None:
    key = runs(rack)
    await rack.host(annotations=moved(rack, operationalStatus="servicing"), image=IMAGE)
    await rack.until(key, lambda host: Annotation.STATUS not in host.metadata.annotations)
    await rack.settle()
    assert (await rack.get(key)).state == "provisioned"
    assert not {"deploy", "undeploy", "inspect", "prepare"} & set(rack.backend.machines[key].orders)


async def test_an_error_without_a_kind_is_over_when_the_host_is_well(rack: Rack) -> None:
    key = runs(rack)
    await rack.host(annotations=moved(rack, operationalStatus="error"), image=IMAGE)
    await rack.until(key, lambda host: host.status.operational_status == "OK")


async def test_bad_credentials_after_a_move_are_an_error_and_change_no_state(rack: Rack) -> None:
    key = runs(rack)
    rack.backend.script("register", Failed("the BMC refused the password", refused_credentials=True))
    await rack.host(annotations=moved(rack), image=IMAGE)
    host = await rack.until_error(key, "refused the password")
    assert host.status.error_type == ErrorType.REGISTRATION
    assert host.state == "provisioned"
    assert rack.backend.machines[key].orders == []


async def test_hardware_data_wins_over_the_hardware_of_the_annotation(rack: Rack) -> None:
    body = {"metadata": {"name": "h1"}, "spec": {"hardware": wire(DETAILS)}}
    await rack.client.create(HARDWARE_DATA, body, namespace=rack.namespace)
    await rack.settle()
    key = runs(rack)
    await rack.host(annotations=moved(rack, hardware={"hostname": "of the annotation"}), image=IMAGE)
    host = await rack.until(key, lambda host: host.spec.architecture == "x86_64")
    found = host.hardware()
    assert found is not None
    assert found.hostname == "h1"


async def test_hardware_of_the_annotation_counts_where_there_is_no_hardware_data(rack: Rack) -> None:
    key = runs(rack)
    await rack.host(annotations=moved(rack, hardware={"hostname": "of the annotation"}), image=IMAGE)
    host = await rack.until(key, lambda host: Annotation.STATUS not in host.metadata.annotations)
    found = host.hardware()
    assert found is not None
    assert found.hostname == "of the annotation"


async def test_the_annotation_goes_also_where_it_is_not_needed(rack: Rack) -> None:
    key = await rack.host()
    await rack.until(key, lambda host: host.status.powered_on)
    await rack.client.patch(BARE_METAL_HOSTS, key, {"metadata": {"annotations": moved(rack)}})
    await rack.until(key, lambda host: Annotation.STATUS not in host.metadata.annotations)
    assert (await rack.get(key)).state == "available"


async def test_a_crash_between_the_status_and_the_annotation_costs_nothing(rack: Rack) -> None:
    await rack.operator.end()
    key = runs(rack)
    annotations = moved(rack)
    await rack.host(annotations=annotations, image=IMAGE)
    status = json.loads(annotations[Annotation.STATUS])
    await rack.client.patch(BARE_METAL_HOSTS, key, {"status": status}, subresource="status")
    await rack.operator.start()
    await rack.until(key, lambda host: Annotation.STATUS not in host.metadata.annotations)
    await rack.until_well(key, "provisioned")
    await rack.settle()
    assert rack.backend.machines[key].orders == ["register", "try admin"]


async def test_deleting_a_moved_host_before_it_was_looked_at_deprovisions_it(rack: Rack) -> None:
    await rack.operator.end()
    key = runs(rack)
    rack.backend.machines[key].instance = msgspec.convert(IMAGE, type=Image)
    await rack.host(annotations=moved(rack), image=IMAGE)
    finalizers = {"metadata": {"finalizers": ["baremetalhost.metal3.io"]}}
    await rack.client.patch(BARE_METAL_HOSTS, key, finalizers)
    await rack.delete(key)
    await rack.operator.start()
    await rack.until_gone(key)
    assert rack.backend.machines[key].orders[-3:] == ["undeploy", "power off hard", "delete"]


# What cannot be read


def without_a_status(host: BareMetalHost) -> bool:
    return host.status.last_updated is None


async def test_a_status_that_cannot_be_taken_over_leaves_the_host_alone_until_it_is_mended(
    rack: Rack,
) -> None:
    key = runs(rack)
    await rack.host(annotations=moved(rack, "having lunch"), image=IMAGE)
    host = await rack.until_error(key, "'having lunch', which is no state of a host")
    assert without_a_status(host)
    assert host.state == ""
    await rack.settle()
    assert "InvalidAnnotationValue" in await rack.event_reasons()
    await rack.client.patch(BARE_METAL_HOSTS, key, {"metadata": {"annotations": moved(rack)}})
    await rack.until_well(key, "provisioned")
    await rack.settle()
    assert rack.backend.machines[key].orders == ["register", "try admin"]


async def test_it_is_told_once_and_survives_a_restart(rack: Rack) -> None:
    key = runs(rack)
    await rack.host(annotations=moved(rack, "having lunch"), image=IMAGE)
    host = await rack.until_error(key, "having lunch")
    await rack.settle()
    told = (await rack.client.list(EVENTS, namespace=rack.namespace)).items
    rack.backend.tell(key)
    await rack.operator.restart()
    await rack.settle()
    assert (await rack.client.list(EVENTS, namespace=rack.namespace)).items == told
    assert (await rack.get(key)).metadata.resource_version == host.metadata.resource_version
    assert rack.backend.machines[key].orders == []


async def test_without_the_annotation_such_a_host_is_a_new_one(rack: Rack) -> None:
    key = await rack.host(annotations=moved(rack, "having lunch"))
    await rack.until_error(key, "having lunch")
    await rack.annotate(key, Annotation.STATUS, None)
    await rack.until_well(key, "available")


async def test_such_a_host_can_be_deleted(rack: Rack) -> None:
    key = await rack.host(annotations=moved(rack, "having lunch"))
    await rack.until_error(key, "having lunch")
    await rack.delete(key)
    await rack.until_gone(key)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
        ('{"provisioning": {"state": 7}}', "has a value of the wrong sort"),
        (
            '{"provisioning": {"state": "provisioned"}, "mood": "good"}',
            "has the field mood, which does not exist",
        ),
        ('{"provisioning": {"state": "deleting"}}', "nobody deleted it here"),
    ],
)
def test_a_status_that_is_none_is_refused_with_what_to_do(text: str, problem: str) -> None:
    with pytest.raises(Malformed, match="left alone") as found:
        status_in(text)
    assert problem in str(found.value)
    assert "remove it" in str(found.value)


def test_hardware_that_is_null_is_no_hardware() -> None:
    assert status_in('{"hardware": null}').hardware is msgspec.UNSET


async def test_two_hosts_that_are_registered_as_one_machine_do_nothing_to_it(rack: Rack) -> None:
    """A manifest that was copied with its status; the back end of this rack says of all machines that they are `id`."""
    first, copy = Key(rack.namespace, "h1"), Key(rack.namespace, "copy")
    rack.backend.machines[first].id = rack.backend.machines[copy].id = "id"
    await rack.host("h1")
    await rack.until_state(first, "available")
    await rack.host("copy", image=IMAGE)
    await rack.until(copy, lambda host: f"{first} is registered as the same machine" in rack.sentence(host))
    await rack.settle()
    assert "deploy" not in rack.backend.machines[copy].orders
    # One of them goes, and the other is free.
    await rack.annotate(first, Annotation.DETACHED)
    await rack.delete(first)
    await rack.until_state(copy, "provisioned")
