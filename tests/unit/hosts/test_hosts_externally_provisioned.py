"""Hosts that somebody else installed: only their power is ours, until they are handed over."""

from __future__ import annotations

import pytest
from rack import IMAGE, Rack

from ingot.api.core import SECRETS
from ingot.api.meta import Key
from ingot.kube import NotFound
from ingot.provisioner import Failed

TOUCHES = {"inspect", "deploy", "undeploy", "prepare", "power off hard", "power off soft"}


async def is_external(rack: Rack) -> Key:
    key = Key(rack.namespace, "h1")
    rack.backend.machines[key].on = True
    await rack.host(externallyProvisioned=True)
    await rack.until_well(key, "externally provisioned")
    return key


async def test_it_is_registered_and_adopted_and_never_inspected(rack: Rack) -> None:
    key = await is_external(rack)
    await rack.settle()
    assert rack.backend.machines[key].orders == ["register", "try admin"]
    assert rack.backend.machines[key].access is not None
    assert rack.backend.machines[key].access.runs_a_system
    with pytest.raises(NotFound):
        await rack.hardware_data(key)


async def test_deleting_it_removes_nothing_from_its_disks(rack: Rack) -> None:
    key = await is_external(rack)
    await rack.delete(key)
    await rack.until_gone(key)
    assert rack.backend.machines[key].orders[-2:] == ["power off hard", "delete"]
    assert "undeploy" not in rack.backend.machines[key].orders


async def test_an_available_host_can_be_given_to_somebody_else(rack: Rack) -> None:
    key = await rack.host()
    host = await rack.until(key, lambda host: host.state == "available" and host.status.powered_on)
    assert host.status.provisioning.root_device_hints is not None
    before = list(rack.backend.machines[key].orders)
    await rack.change(key, {"externallyProvisioned": True})
    host = await rack.until_well(key, "externally provisioned")
    await rack.settle()
    assert rack.backend.machines[key].orders == before
    assert host.status.provisioning.root_device_hints is None


async def test_one_that_is_handed_over_with_its_image_is_provisioned_and_not_touched(rack: Rack) -> None:
    key = await is_external(rack)
    await rack.change(key, {"externallyProvisioned": False, "image": IMAGE})
    host = await rack.until_well(key, "provisioned")
    assert host.status.provisioning.image is not None
    assert host.status.provisioning.image.url == IMAGE["url"]
    await rack.operator.restart()
    await rack.settle()
    assert not TOUCHES & set(rack.backend.machines[key].orders)
    assert (await rack.get(key)).state == "provisioned"


async def test_one_that_is_handed_over_with_a_custom_deploy_step_is_not_touched_either(rack: Rack) -> None:
    key = await is_external(rack)
    await rack.change(key, {"externallyProvisioned": False, "customDeploy": {"method": "install_coreos"}})
    host = await rack.until_well(key, "provisioned")
    assert host.status.provisioning.custom_deploy is not None
    assert host.status.provisioning.custom_deploy.method == "install_coreos"
    await rack.settle()
    assert not TOUCHES & set(rack.backend.machines[key].orders)


async def test_one_that_is_handed_over_with_nothing_is_deprovisioned(rack: Rack) -> None:
    key = await is_external(rack)
    await rack.change(key, {"externallyProvisioned": False})
    host = await rack.until(key, lambda host: host.state == "available" and not host.status.error_type)
    assert host.status.operation_history.deprovision.end is not None
    await rack.settle()
    assert "DeprovisioningComplete" in await rack.event_reasons()


async def test_changed_credentials_are_tried_without_disturbing_it(rack: Rack) -> None:
    key = await is_external(rack)
    rack.backend.hold("register", Failed("the BMC refused the password", refused_credentials=True))
    await rack.client.patch(SECRETS, rack.bmc, {"stringData": {"password": "another"}})
    host = await rack.until_error(key, "refused the password")
    assert host.state == "externally provisioned"
    rack.backend.let_go("register")
    await rack.client.patch(SECRETS, rack.bmc, {"stringData": {"password": "a better one"}})
    await rack.until_well(key, "externally provisioned")
    assert not TOUCHES & set(rack.backend.machines[key].orders)
