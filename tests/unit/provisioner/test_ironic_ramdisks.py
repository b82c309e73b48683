"""Which ramdisk Ironic is told to boot, and with which network configuration."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_ironic import FakeIronic
from ironic_orders import NODE

from ingot.api import bmc
from ingot.provisioner import Access, Failed, HostRef, OwnRamdisk, Ready
from ingot.provisioner.ironic import IronicProvisioner, Ramdisk
from ingot.provisioner.ironic.model import FullNode
from ingot.provisioner.ironic.ramdisks import (
    UnusableRamdisk,
    boots_over_network,
    driver_info,
    ramdisk_formats,
)
from ingot.provisioner.ironic.record import differences, record_for
from ingot.trust import Secret

ISO = OwnRamdisk(url="https://x/h1.iso", format="iso")
INITRD = OwnRamdisk(url="https://x/h1.initrd", format="initrd")
USUAL = Ramdisk(iso="https://x/usual.iso", kernel="https://x/vmlinuz", initramfs="https://x/initrd")
MEDIA, NETWORK = bmc.SCHEMES["redfish-virtualmedia"], bmc.SCHEMES["redfish"]


@pytest.mark.parametrize(
    ("address", "formats", "over_network"),
    [
        ("redfish-virtualmedia://10.0.0.1/x", ("iso", "initrd"), False),
        ("idrac-virtualmedia+http://10.0.0.1/x", ("iso", "initrd"), False),
        ("redfish-uefihttp://10.0.0.1/x", ("iso", "initrd"), False),
        ("redfish://10.0.0.1/x", ("initrd",), True),
        ("ipmi://10.0.0.1", ("initrd",), True),
        ("10.0.0.1", ("initrd",), True),
        ("nonsense://10.0.0.1", (), False),
    ],
)
async def test_what_a_host_boots_follows_from_its_address(backend, address, formats, over_network):
    assert ramdisk_formats(address) == backend.ramdisk_formats(address) == formats
    assert boots_over_network(address) is backend.boots_over_network(address) is over_network


@pytest.mark.parametrize(
    ("scheme", "own", "usual", "told"),
    [
        (MEDIA, None, USUAL, {"deploy_iso": "https://x/usual.iso"}),
        (
            NETWORK,
            None,
            USUAL,
            {"deploy_kernel": "https://x/vmlinuz", "deploy_ramdisk": "https://x/initrd"},
        ),
        (MEDIA, None, Ramdisk(), {}),
        (MEDIA, ISO, USUAL, {"deploy_iso": "https://x/h1.iso"}),
        (
            NETWORK,
            INITRD,
            USUAL,
            {"deploy_kernel": "https://x/vmlinuz", "deploy_ramdisk": "https://x/h1.initrd"},
        ),
        (
            MEDIA,
            replace(INITRD, kernel_url="https://x/own", kernel_params="rd.debug console=ttyS1"),
            Ramdisk(),
            {
                "deploy_kernel": "https://x/own",
                "deploy_ramdisk": "https://x/h1.initrd",
                "kernel_append_params": "%default% rd.debug console=ttyS1",
            },
        ),
    ],
)
def test_what_ironic_is_told(scheme, own, usual, told):
    assert driver_info(scheme, own, usual) == told


@pytest.mark.parametrize(
    ("scheme", "own", "words"),
    [
        (NETWORK, ISO, "an initrd is needed"),
        (MEDIA, INITRD, "names no kernel"),
    ],
)
def test_what_cannot_be_booted_is_said(scheme, own, words):
    with pytest.raises(UnusableRamdisk, match=words):
        driver_info(scheme, own, Ramdisk())


async def registered(
    backend: IronicProvisioner, ironic: FakeIronic, host: HostRef, access: Access
) -> dict[str, object]:
    answer = await backend.register(host, access, credentials_changed=False, again=False)
    assert not isinstance(answer, Failed)
    node: dict[str, object] = ironic.node(NODE)
    return node


async def test_a_ramdisk_of_the_hosts_own_takes_the_place_of_the_usual_one(backend, ironic, host, access):
    node = await registered(backend, ironic, host, access)
    assert node["driver_info"]["deploy_iso"] == "https://127.0.0.1/ramdisk.iso"
    ironic.finish(NODE)
    own = replace(INITRD, kernel_url="https://x/vmlinuz", kernel_params="debug")
    await registered(backend, ironic, host, replace(access, ramdisk=own))
    info = node["driver_info"]
    assert "deploy_iso" not in info
    assert (info["deploy_ramdisk"], info["kernel_append_params"]) == (INITRD.url, "%default% debug")
    await registered(backend, ironic, host, access)
    assert "kernel_append_params" not in node["driver_info"]
    assert node["driver_info"]["deploy_iso"] == "https://127.0.0.1/ramdisk.iso"


async def test_an_agent_of_another_ramdisk_is_not_used_again(backend, ironic, host, access):
    node = await registered(backend, ironic, host, replace(access, ramdisk=ISO))
    ironic.finish(NODE)
    await registered(backend, ironic, host, replace(access, ramdisk=ISO))
    assert "fast_track" not in node["driver_info"], "it has booted nothing else yet"
    new = replace(access, ramdisk=replace(ISO, url="https://x/new.iso"))
    await registered(backend, ironic, host, new)
    assert (node["driver_info"]["deploy_iso"], node["driver_info"]["fast_track"]) == (
        "https://x/new.iso",
        "no",
    )
    patches = ironic.asked("PATCH")
    await registered(backend, ironic, host, new)
    assert ironic.asked("PATCH") == patches


@pytest.mark.parametrize(
    ("state", "before", "after"),
    [
        ("available", None, "no"),
        ("manageable", None, "no"),
        ("inspect wait", None, "no"),
        ("deploy failed", None, "no"),
        ("available", "no", "no"),
        ("available", True, "no"),
        ("enroll", None, None),
        ("active", None, None),
        ("active", "no", None),
        ("active", False, False),
    ],
)
def test_where_an_agent_may_run_from_another_ramdisk(state, before, after, host, access):
    wanted = record_for(host, replace(access, ramdisk=ISO), Ramdisk())
    info = wanted.driver_info | {"deploy_iso": "https://x/old.iso"}
    if before is not None:
        info |= {"fast_track": before}
    node = FullNode(uuid=NODE, provision_state=state, driver_info=info)
    for operation in differences(node, wanted, new_password=False):
        key = operation.path.removeprefix("/driver_info/")
        if operation.path.startswith("/driver_info/"):
            info = {name: value for name, value in info.items() if name != key}
            if operation.op == "add":
                info[key] = operation.value
    assert info.get("fast_track") == after
    assert info["deploy_iso"] == ISO.url


async def test_the_network_configuration_of_the_ramdisk_is_kept_with_the_node(backend, ironic, host, access):
    network = replace(access, ramdisk_network=Secret("links:\n- id: eno1\n"))
    node = await registered(backend, ironic, host, network)
    assert node["network_data"] == {"links": [{"id": "eno1"}]}
    ironic.finish(NODE)
    patches = ironic.asked("PATCH")
    await registered(backend, ironic, host, network)
    assert ironic.asked("PATCH") == patches
    await registered(backend, ironic, host, replace(network, ramdisk_network=Secret("links: []")))
    assert node["network_data"] == {"links": []}
    await registered(backend, ironic, host, access)
    assert not node["network_data"]


async def test_a_ramdisk_of_the_hosts_own_brings_its_network_configuration_along(
    backend, ironic, host, access
):
    own = replace(access, ramdisk=ISO, ramdisk_network=Secret("links: []"))
    assert (await registered(backend, ironic, host, own))["network_data"] == {}


async def test_where_nothing_is_put_into_the_image_that_is_said_of_the_network_configuration(
    backend, ironic, host, access
):
    network = replace(access, ramdisk_network=Secret("links: []"))
    await registered(backend, ironic, host, network)
    ironic.finish(NODE)

    async def remark(access: Access) -> str:
        answer = await backend.register(host, access, credentials_changed=False, again=False)
        assert isinstance(answer, Ready)
        return answer.value.remark

    said = await remark(network)
    assert "spec.preprovisioningNetworkDataName has no effect here" in said
    assert "--build-preprov-image" in said
    assert await remark(network) == said, "also from memory"
    assert await remark(access) == ""
    assert await remark(replace(network, ramdisk=ISO)) == ""


def test_where_ironic_puts_the_image_together_the_network_configuration_has_its_effect(host, access):
    network = replace(access, ramdisk_network=Secret("links: []"))
    parts = Ramdisk(kernel="https://x/vmlinuz", initramfs="https://x/initrd")
    assert record_for(host, network, parts).remark == ""
    assert record_for(host, network, USUAL).remark != ""
    assert record_for(host, access, USUAL).remark == ""
    over_network = replace(network, address="redfish://10.0.0.1/x")
    assert record_for(host, over_network, USUAL).remark == ""


async def test_network_configuration_that_cannot_be_read_is_told_without_showing_it(backend, host, access):
    network = replace(access, ramdisk_network=Secret("links: [\nsecret-gateway: ]}"))
    answer = await backend.register(host, network, credentials_changed=False, again=False)
    assert isinstance(answer, Failed)
    assert "network data of the ramdisk is neither YAML nor JSON" in answer.message
    assert "gateway" not in answer.message


async def test_nmstate_is_not_given_to_a_ramdisk_that_reads_another_language(backend, ironic, host, access):
    network = replace(access, ramdisk_network=Secret("interfaces: [{name: secret-gateway}]"))
    answer = await backend.register(host, network, credentials_changed=False, again=False)
    assert isinstance(answer, Failed)
    assert "the network data of the ramdisk is nmstate; what is needed here is OpenStack's" in answer.message
    assert "gateway" not in answer.message
    assert ironic.asked("POST") == 0


@pytest.mark.parametrize("known_before", [False, True])
async def test_network_configuration_that_ironic_refuses_is_told_without_showing_it(
    backend, ironic, host, access, known_before
):
    """Ironic repeats what it refuses."""
    if known_before:
        await registered(backend, ironic, host, access)
        ironic.finish(NODE)
    network = replace(access, ramdisk_network=Secret("secret-gateway: 10.9.8.7"))
    answer = await backend.register(host, network, credentials_changed=False, again=False)
    assert isinstance(answer, Failed)
    assert "the network data of the ramdisk" in answer.message
    assert "gateway" not in answer.message
