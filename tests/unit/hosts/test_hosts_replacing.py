"""Another image for a host that runs one: what can be found wrong with it is told before the one that runs is touched."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from firmware_objects import want
from msgspec.structs import replace
from rack import IMAGE, Rack

from ingot.api.baremetalhost import Annotation, BareMetalHost, Image, State
from ingot.api.core import SECRETS
from ingot.api.hostupdatepolicy import HOST_UPDATE_POLICIES
from ingot.api.meta import Key
from ingot.hosts import HostController
from ingot.kube import EventRecorder, Manager
from ingot.provisioner import Busy

IGNITION = '{"ignition": {"version": "3.4.0"}}'
COREOS = {"image": {"url": "", "format": "coreos", "checksum": None, "checksumType": None}}
STEP = {"customDeploy": {"method": "install_coreos"}, "image": None}
OTHER = {"image": IMAGE | {"url": "https://images.example/b.raw"}}


async def running(rack: Rack, **spec: Any) -> Key:
    """A host on which an image runs, and of which nothing was wanted since."""
    key = await rack.host(image=IMAGE, **spec)
    await rack.until(key, lambda host: host.state == "provisioned" and host.status.powered_on)
    await rack.settle()
    rack.backend.machines[key].orders.clear()
    return key


async def assert_runs_on(rack: Rack, key: Key, host: BareMetalHost) -> None:
    """It is as it was, says what is wrong, and has been left alone."""
    assert host.state is State.PROVISIONED
    assert host.status.error_type == "provisioning error"
    assert host.status.error_message.endswith("What is installed stays until this is mended.")
    assert host.status.provisioning.image is not None
    assert host.status.provisioning.image.url == IMAGE["url"]
    await rack.settle()
    rack.backend.tell(key)
    await rack.settle()
    machine = rack.backend.machines[key]
    assert machine.orders == []
    assert machine.instance is not None
    assert machine.on


async def until_replaced(rack: Rack, key: Key) -> None:
    await rack.until(
        key,
        lambda host: (
            host.state == "provisioned"
            and not host.status.error_type
            and (host.status.provisioning.image is None or host.status.provisioning.image.url != IMAGE["url"])
        ),
    )
    assert rack.backend.machines[key].orders[:1] == ["undeploy"]
    assert rack.backend.machines[key].orders.count("deploy") == 1


@pytest.mark.parametrize("change", [COREOS, STEP], ids=["by format", "by step"])
async def test_a_running_host_is_not_emptied_for_a_coreos_that_cannot_read_its_user_data(
    rack: Rack, change: dict[str, Any]
) -> None:
    await rack.secret("user-data", userData="#cloud-config\nsesame: 1")
    key = await running(rack, userData={"name": "user-data"})
    await rack.change(key, change)
    host = await rack.until_error(key, "CoreOS is configured with Ignition")
    assert "sesame" not in host.status.error_message
    ready = next(found for found in host.status.conditions if found.type == "Ready")
    assert (ready.status, "spec.userData" in ready.message) == ("False", True)
    await assert_runs_on(rack, key, host)
    assert (await rack.event_reasons()).count("ProvisioningError") == 1
    await rack.client.patch(SECRETS, Key(rack.namespace, "user-data"), {"stringData": {"userData": IGNITION}})
    await until_replaced(rack, key)


async def test_what_was_changed_by_mistake_is_taken_back_without_a_trace(rack: Rack) -> None:
    await rack.secret("user-data", userData="#cloud-config")
    key = await running(rack, userData={"name": "user-data"})
    await rack.change(key, {"customDeploy": {"method": "install_coreos"}, "image": None})
    await rack.until_error(key, "is a cloud-config")
    await rack.change(key, {"customDeploy": None, "image": IMAGE})
    host = await rack.until_well(key, "provisioned")
    assert host.status.operational_status == "OK"
    await rack.settle()
    assert rack.backend.machines[key].orders == []


async def test_a_running_host_is_not_emptied_for_an_image_whose_secret_is_missing(rack: Rack) -> None:
    key = await running(rack)
    await rack.change(key, OTHER | {"userData": {"name": "to-come"}})
    host = await rack.until_error(key, "Secret to-come, named by spec.userData, does not exist")
    await assert_runs_on(rack, key, host)
    await rack.secret("to-come", userData="#cloud-config")
    await until_replaced(rack, key)


async def test_a_running_host_is_not_emptied_for_an_image_that_its_registry_would_not_give(
    rack: Rack,
) -> None:
    key = await running(rack)
    image = {"url": "oci://registry.example/os:1", "ociAuthSecretName": "pull", "checksum": None}
    await rack.change(key, {"image": image})
    await assert_runs_on(rack, key, await rack.until_error(key, "spec.image.ociAuthSecretName"))


async def test_a_running_host_is_not_emptied_for_what_the_back_end_can_never_run(rack: Rack) -> None:
    rack.backend.unknown_formats.add("live-iso")
    key = await running(rack)
    await rack.change(key, {"image": {"url": "https://images.example/live.iso", "format": "live-iso"}})
    await assert_runs_on(rack, key, await rack.until_error(key, "knows no live-iso"))
    await rack.change(key, OTHER)
    await until_replaced(rack, key)


async def test_taking_the_image_away_asks_for_nothing(rack: Rack) -> None:
    await rack.secret("user-data", userData="#cloud-config")
    key = await running(rack, userData={"name": "user-data"})
    await rack.client.delete(SECRETS, Key(rack.namespace, "user-data"))
    await rack.change(key, {"image": None})
    await rack.until_well(key, "available")


async def test_a_host_that_is_kept_as_it_is_is_deleted_like_any_other(rack: Rack) -> None:
    key = await running(rack)
    await rack.change(key, OTHER | {"userData": {"name": "nowhere"}})
    await rack.until_error(key, "does not exist")
    await rack.delete(key)
    await rack.until_gone(key)


async def test_a_host_that_is_kept_as_it_is_is_rebooted_politely_and_says_again_what_is_wrong(
    rack: Rack,
) -> None:
    key = await running(rack)
    await rack.change(key, OTHER | {"userData": {"name": "nowhere"}})
    await rack.until_error(key, "does not exist")
    rack.backend.script("set_power", Busy("switching the power off"))
    await rack.annotate(key, Annotation.REBOOT)
    await rack.until_well(key, "provisioned")
    rack.backend.tell(key)
    await rack.until_rebooted(key)
    host = await rack.until_error(key, "does not exist")
    assert host.state is State.PROVISIONED
    assert rack.backend.machines[key].orders == ["power off soft", "power on"]


async def test_a_host_that_is_kept_as_it_is_is_adopted_where_the_back_end_forgot_it(rack: Rack) -> None:
    key = await running(rack)
    await rack.change(key, OTHER | {"userData": {"name": "nowhere"}})
    await rack.until_error(key, "does not exist")
    rack.backend.machines[key].known = False
    rack.backend.machines[key].adopted = None
    rack.backend.tell(key)
    await rack.settle()
    adopted = rack.backend.machines[key].adopted
    assert adopted is not None
    assert adopted.url == IMAGE["url"]
    assert "does not exist" in (await rack.get(key)).status.error_message


async def test_the_firmware_of_a_host_that_is_kept_as_it_is_is_changed_at_its_reboot(rack: Rack) -> None:
    key = await running(rack)
    body = {"metadata": {"name": key.name}, "spec": {"firmwareSettings": "onReboot"}}
    await rack.client.create(HOST_UPDATE_POLICIES, body, namespace=rack.namespace)
    await want(rack, key, {"QuietBoot": "false"})
    await rack.change(key, OTHER | {"userData": {"name": "nowhere"}})
    await rack.until_error(key, "does not exist")
    await rack.settle()
    await rack.annotate(key, Annotation.REBOOT)
    await rack.until_rebooted(key)
    await rack.until_error(key, "does not exist")
    assert rack.backend.machines[key].settings["QuietBoot"] == "false"
    assert rack.backend.machines[key].orders == ["power off soft", "service"]


async def test_a_running_host_is_not_emptied_for_what_breaks_a_rule(rack: Rack) -> None:
    """Our API lets no such image through, one whose webhook is off does: so it is put into what the controller reads."""
    key = await running(rack)
    await rack.operator.end()
    host = await rack.get(key)
    wrong = replace(host, spec=replace(host.spec, image=Image(url="file:///etc/shadow", checksum="0" * 64)))
    async with EventRecorder(rack.client) as recorder:
        hosts = HostController(rack.client, rack.backend, recorder, namespace=rack.namespace)
        work = asyncio.create_task(Manager([], [hosts.controller]).run())
        hosts.hosts.observe(wrong)
        await rack.settle(hosts)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    host = await rack.get(key)
    assert "spec.image.url" in host.status.error_message
    assert host.state is State.PROVISIONED
    assert rack.backend.machines[key].orders == []
