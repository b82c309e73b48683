"""Hosts whose BMC address, inspection or boot interface changes: the node follows where Ironic lets it; nothing is touched."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from fake_ironic import FakeIronic
from ironic_orders import MAC, NODE, until

from ingot.provisioner import Access, BackendUnavailable, Busy, Credentials, Failed, HostRef, Ready
from ingot.provisioner.ironic import IronicAccess, IronicProvisioner
from ingot.provisioner.ironic.client import LOCK_PAUSES
from ingot.provisioner.ironic.reaching import Reaching
from ingot.provisioner.ironic.site import Site
from ingot.trust import Secret

IPMI = "ipmi://127.0.0.1:6230"
DRAC = "idrac-virtualmedia://127.0.0.1:8443/redfish/v1/Systems/System.Embedded.1"


async def register(backend: IronicProvisioner, host: HostRef, access: Access, *, changed: bool = False):
    return await backend.register(host, access, credentials_changed=changed, again=False)


async def ready(backend: IronicProvisioner, host: HostRef, access: Access) -> HostRef:
    async with asyncio.timeout(20):
        while not isinstance(answer := await register(backend, host, access), Ready):
            assert isinstance(answer, Busy), answer
            await asyncio.sleep(0.01)
    return replace(host, backend_id=answer.value.backend_id)


async def registered(
    backend: IronicProvisioner, ironic: FakeIronic, host: HostRef, access: Access
) -> HostRef:
    assert isinstance(await register(backend, host, access, changed=True), Busy)
    ironic.finish(NODE)
    return await ready(backend, host, access)


async def test_a_host_that_is_reached_over_ipmi_is_registered_and_its_new_password_tried(
    backend, ironic, host, access
):
    over_ipmi = replace(access, address=IPMI)
    known = await registered(backend, ironic, host, over_ipmi)
    node = ironic.node(NODE)
    assert (node["driver"], node["boot_interface"], node["raid_interface"]) == ("ipmi", "ipxe", "no-raid")
    assert node["driver_info"]["ipmi_port"] == "6230"

    ironic.bmc_passwords["127.0.0.1"] = "n3w"
    changed = replace(over_ipmi, credentials=Credentials(username="admin", password=Secret("n3w")))
    assert isinstance(await register(backend, known, changed, changed=True), Busy)
    await until(lambda: ironic.asked("boot_device") == 1)
    await ready(backend, known, changed)
    assert ironic.node(NODE)["driver_info"]["ipmi_password"] == "n3w"


async def test_a_new_password_that_does_not_work_over_ipmi_is_told(backend, ironic, host, access):
    over_ipmi = replace(access, address=IPMI)
    known = await registered(backend, ironic, host, over_ipmi)
    ironic.bmc_passwords["127.0.0.1"] = "other"
    changed = replace(over_ipmi, credentials=Credentials(username="admin", password=Secret("n3w")))
    await register(backend, known, changed, changed=True)
    async with asyncio.timeout(20):
        while isinstance(told := await register(backend, known, changed), Busy):  # noqa: ASYNC110 - polls on purpose
            await asyncio.sleep(0.01)
    assert isinstance(told, Failed)
    assert "the new credentials do not work" in told.message
    assert "refused the user name or password (Ironic does not tell which)" in told.message


async def test_a_lock_says_nothing_of_new_credentials_and_they_are_tried_once_it_is_gone(
    backend, ironic, host, access
):
    known = await registered(backend, ironic, host, access)
    changed = replace(access, credentials=Credentials(username="admin", password=Secret("n3w")))
    # For longer than a call waits: Ironic looks at the power of a slow BMC meanwhile.
    ironic.trials_locked = len(LOCK_PAUSES) + 2
    assert isinstance(await register(backend, known, changed, changed=True), Busy)
    await ready(backend, known, changed)
    assert ironic.trials_locked == 0
    assert ironic.node(NODE)["driver_info"]["redfish_password"] == "n3w"


@pytest.mark.parametrize("state", ["manageable", "available"])
async def test_an_address_of_another_scheme_takes_over_a_node_at_rest(backend, ironic, host, access, state):
    known = await registered(backend, ironic, host, access)
    ironic.change(NODE, provision_state=state)
    for address, driver, kept in ((IPMI, "ipmi", "ipmi_"), (DRAC, "idrac", "redfish_")):
        await ready(backend, known, replace(access, address=address))
        node = ironic.node(NODE)
        assert (node["uuid"], node["driver"]) == (known.backend_id, driver)
        told = {key for key in node["driver_info"] if key.startswith(("ipmi_", "redfish_"))}
        assert all(key.startswith(kept) for key in told)
    assert ironic.power_targets == []
    assert ironic.verbs == ["manage"]


async def test_the_driver_of_a_machine_in_use_is_not_changed(backend, ironic, host, access):
    known = await registered(backend, ironic, host, access)
    ironic.change(NODE, provision_state="active", instance_uuid=host.uid)
    answer = await register(backend, known, replace(access, address=IPMI))
    assert isinstance(answer, Failed)
    assert "with the driver redfish, and ipmi is needed" in answer.message
    assert "Detach the host and attach it again" in answer.message
    assert ironic.node(NODE)["driver"] == "redfish"


async def test_the_driver_of_a_busy_node_is_changed_afterwards(backend, ironic, host, access):
    known = await registered(backend, ironic, host, access)
    ironic.change(NODE, provision_state="cleaning", target_provision_state="available")
    answer = await register(backend, known, replace(access, address=IPMI))
    assert isinstance(answer, Busy)
    assert "as soon as the node is at rest" in answer.why
    ironic.change(NODE, provision_state="available", target_provision_state=None)
    await ready(backend, known, replace(access, address=IPMI))
    assert ironic.node(NODE)["driver"] == "ipmi"


async def test_another_inspection_of_a_machine_in_use_is_chosen_when_it_is_at_rest(
    backend, ironic, plugin, host, access
):
    known = await registered(backend, ironic, host, access)
    fast = replace(access, inspection="fast")
    ironic.change(NODE, provision_state="active", instance_uuid=host.uid)
    await plugin.delivered()
    await ready(backend, known, fast)
    assert ironic.node(NODE)["inspect_interface"] == "agent"
    before = len(ironic.requests)
    await ready(backend, known, fast)
    assert len(ironic.requests) == before

    ironic.change(NODE, provision_state="available", instance_uuid=None)
    await plugin.delivered()
    await ready(backend, known, fast)
    assert ironic.node(NODE)["inspect_interface"] == "redfish"


async def test_another_inspection_than_the_one_that_failed_can_be_chosen(backend, ironic, host, access):
    fast = replace(access, inspection="fast")
    known = await registered(backend, ironic, host, fast)
    ironic.change(NODE, provision_state="inspect failed", last_error="the BMC says nothing")
    await ready(backend, known, fast)
    assert ironic.node(NODE)["provision_state"] == "inspect failed"

    await ready(backend, known, access)
    assert ironic.node(NODE)["provision_state"] == "manageable"
    assert ironic.node(NODE)["inspect_interface"] == "agent"


@pytest.mark.parametrize(
    ("address", "remedy"), [(IPMI, "install ipmitool where Ironic runs"), (DRAC, "enabled_hardware_types")]
)
async def test_a_driver_that_ironic_runs_without_is_named(backend, ironic, host, access, address, remedy):
    ironic.drivers = ["redfish"]
    answer = await register(backend, host, replace(access, address=address), changed=True)
    assert isinstance(answer, Failed)
    assert remedy in answer.message


async def test_an_ironic_that_has_no_driver_at_all_is_starting(backend, ironic, host, access):
    ironic.drivers = []
    with pytest.raises(BackendUnavailable):
        await register(backend, host, access, changed=True)


# Ports


async def test_a_boot_interface_that_is_told_later_becomes_a_port(backend, ironic, host, access):
    known = await registered(backend, ironic, host, replace(access, boot_mac=""))
    assert not ironic.ports
    await ready(backend, known, access)
    assert ironic.ports[MAC]["pxe_enabled"] is True
    before = len(ironic.requests)
    await ready(backend, known, access)
    assert len(ironic.requests) == before


@pytest.mark.parametrize(("address", "needs_it"), [(IPMI, True), (DRAC, False)])
async def test_the_interface_that_a_host_boots_from_is_marked_again_after_an_inspection_took_the_mark_off(
    backend, ironic, host, access, address, needs_it
):
    access = replace(access, address=address)
    known = await registered(backend, ironic, host, access)
    ironic.ports[MAC]["pxe_enabled"] = False
    # What the inspection has found.
    odd = ("", "not a MAC", "80:00:02:08:fe:80:00:00:00:00:00:00:f4:52:14:03:00:7b:cb:a1")
    found = replace(access, nic_macs=(MAC, "52:54:00:00:00:99", *odd))
    await ready(backend, known, found)
    assert ironic.ports[MAC]["pxe_enabled"] is needs_it
    assert ironic.ports["52:54:00:00:00:99"]["pxe_enabled"] is False
    assert len(ironic.ports) == 2


async def test_the_mark_is_left_where_ironic_lets_nobody_set_it(backend, ironic, host, access):
    known = await registered(backend, ironic, host, access)
    ironic.ports[MAC]["pxe_enabled"] = False
    ironic.change(NODE, provision_state="active", instance_uuid=host.uid)
    await ready(backend, known, replace(access, nic_macs=(MAC,)))
    assert ironic.ports[MAC]["pxe_enabled"] is False


async def test_ports_that_are_in_order_are_not_asked_for_again(backend, ironic, host, access):
    known = await registered(backend, ironic, host, access)
    # Only whether another node has the MAC address: the new one has the port that it was given.
    assert ironic.asked("GET /v1/ports") == 1
    found = replace(access, nic_macs=(MAC,))
    ironic.change(NODE, inspection_finished_at="2026-11-16T12:00:00+00:00")
    await ready(backend, known, found)
    assert ironic.asked("GET /v1/ports") == 2


# IPv6


@pytest.mark.parametrize(
    ("address", "over_v6"),
    [
        ("redfish-virtualmedia://[fd00::7]/x", True),
        ("redfish-virtualmedia://10.0.0.7/x", False),
        ("redfish-virtualmedia://name.that.does.not.exist.invalid/x", False),
        ("nonsense://x", False),
    ],
)
async def test_over_which_protocol_a_bmc_is_reached(address, over_v6):
    assert await Reaching().goes_over_v6(address) is over_v6


async def test_a_bmc_over_ipv6_finds_what_ironic_serves_at_another_address(
    where: IronicAccess, ironic, host, access
):
    site = Site(external_url_v6="https://[fd00::1]:6180")
    async with IronicProvisioner(replace(where, site=site), None) as backend:
        over_v6 = replace(access, address="redfish-virtualmedia://[::1]:8443/redfish/v1/Systems/1")
        await register(backend, host, over_v6, changed=True)
        assert ironic.node(NODE)["driver_info"]["external_http_url"] == "https://[fd00::1]:6180"
        ironic.finish(NODE)
        await ready(backend, host, access)
        assert "external_http_url" not in ironic.node(NODE)["driver_info"]
