"""The network of an installed system: which Secret counts, in which language, and what is refused before a machine is touched."""

from __future__ import annotations

from typing import Any

import pytest
from rack import IMAGE, Rack

from ingot.api.core import SECRETS
from ingot.api.inputs import network_data
from ingot.api.inputs.coreos import KEYFILES
from ingot.api.meta import Key
from ingot.formats.network import keyfiles_of_network_data, keyfiles_of_nmstate, sources
from ingot.provisioner import ConfigDrive

NMSTATE = """\
interfaces:
- {name: eno1, type: ethernet, ipv4: {enabled: true, address: [{ip: 10.4.0.17, prefix-length: 24}]}}
"""
OPENSTACK = """\
{"links": [{"id": "eno1", "type": "phy", "ethernet_mac_address": "52:54:00:12:34:56"}],
 "networks": [{"id": "n0", "type": "ipv4", "link": "eno1", "ip_address": "10.4.0.18", "netmask": "255.255.255.0"}]}
"""
COREOS = {"image": {"url": "", "format": "coreos"}}
STEP = {"customDeploy": {"method": "install_coreos"}}


def told(rack: Rack, key: Key) -> ConfigDrive:
    deployed = rack.backend.machines[key].deployment
    assert deployed is not None
    return deployed.config_drive


def keyfiles(rack: Rack, key: Key) -> Any:
    return told(rack, key).meta_data.get(KEYFILES)


def made(files: dict[str, bytes]) -> dict[str, str]:
    return {name: content.decode() for name, content in files.items()}


# CoreOS


@pytest.mark.parametrize("spec", [COREOS, STEP], ids=["by format", "by step"])
@pytest.mark.parametrize(
    ("values", "files"),
    [
        ({"nmstate": NMSTATE}, keyfiles_of_nmstate(NMSTATE.encode())),
        ({"networkData": NMSTATE}, keyfiles_of_nmstate(NMSTATE.encode())),
        ({"networkData": OPENSTACK}, keyfiles_of_network_data(OPENSTACK.encode())),
        ({"value": OPENSTACK}, keyfiles_of_network_data(OPENSTACK.encode())),
        ({"nmstate": "", "networkData": OPENSTACK}, keyfiles_of_network_data(OPENSTACK.encode())),
    ],
    ids=["nmstate", "nmstate by its shape", "network_data", "as Cluster API writes it", "one that is empty"],
)
async def test_an_installed_coreos_has_the_network_that_is_asked_for(
    rack: Rack, spec: dict[str, Any], values: dict[str, str], files: dict[str, bytes]
) -> None:
    await rack.secret("net", **values)
    key = await rack.host(**spec, networkData={"name": "net"})
    await rack.until_well(key, "provisioned")
    assert keyfiles(rack, key) == made(files)
    assert not told(rack, key).network_data, "CoreOS reads no config drive"


async def test_an_installed_coreos_has_the_ramdisks_network_where_it_has_none_of_its_own(rack: Rack) -> None:
    await rack.secret("net", networkData=OPENSTACK)
    key = await rack.host(**COREOS, preprovisioningNetworkDataName="net")
    await rack.until_well(key, "provisioned")
    assert keyfiles(rack, key) == made(keyfiles_of_network_data(OPENSTACK.encode()))


async def test_its_own_network_wins_over_the_ramdisks_and_over_what_the_metadata_say(rack: Rack) -> None:
    await rack.secret("net", networkData=OPENSTACK)
    await rack.secret("other", nmstate=NMSTATE)
    await rack.secret("meta", metaData="{coreos_copy_network: true, coreos_network_keyfiles: {a: b}}")
    key = await rack.host(
        **COREOS,
        preprovisioningNetworkDataName="net",
        networkData={"name": "other"},
        metaData={"name": "meta"},
    )
    await rack.until_well(key, "provisioned")
    assert keyfiles(rack, key) == made(keyfiles_of_nmstate(NMSTATE.encode()))


@pytest.mark.parametrize(
    ("meta", "files"),
    [
        ("coreos_copy_network: true", None),
        ("coreos_copy_network: false", None),
        ("coreos_network_keyfiles: {eth0.nmconnection: x}", {"eth0.nmconnection": "x"}),
    ],
)
async def test_what_the_metadata_say_wins_over_the_ramdisks_network(
    rack: Rack, meta: str, files: dict[str, str] | None
) -> None:
    await rack.secret("net", networkData=OPENSTACK)
    await rack.secret("meta", metaData=f"{{{meta}}}")
    key = await rack.host(**COREOS, preprovisioningNetworkDataName="net", metaData={"name": "meta"})
    await rack.until_well(key, "provisioned")
    assert keyfiles(rack, key) == files


@pytest.mark.parametrize("values", [{}, {"networkData": " \n"}], ids=["no Secret", "an empty one"])
async def test_without_a_network_the_metadata_say_nothing_of_one(rack: Rack, values: dict[str, str]) -> None:
    if values:
        await rack.secret("net", **values)
    key = await rack.host(**COREOS, **({"networkData": {"name": "net"}} if values else {}))
    await rack.until_well(key, "provisioned")
    assert KEYFILES not in told(rack, key).meta_data


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"nmstate": "interfaces: [{name: sesame, type: ovs-bridge}]"}, "interfaces[0].type"),
        ({"networkData": "interfaces: [}"}, "not YAML or JSON"),
        ({"networkData": '{"sesame": 1}'}, "neither nmstate (interfaces) nor OpenStack's network_data"),
        ({"networkData": '{"links": []}'}, "no interface to configure"),
        ({"other": "sesame"}, "neither the key nmstate nor the key networkData"),
    ],
)
async def test_a_network_that_coreos_cannot_have_is_refused_by_name_before_the_machine_is_touched(
    rack: Rack, values: dict[str, str], words: str
) -> None:
    await rack.secret("net", **values)
    key = await rack.host(**COREOS, networkData={"name": "net"})
    host = await rack.until_error(key, "Secret net, named by spec.networkData")
    assert words in host.status.error_message
    assert "sesame" not in host.status.error_message
    assert host.state == "available"
    assert "deploy" not in rack.backend.machines[key].orders
    await rack.client.patch(SECRETS, Key(rack.namespace, "net"), {"stringData": {"nmstate": NMSTATE}})
    await rack.until_well(key, "provisioned")


async def test_a_running_host_is_not_emptied_for_a_network_that_coreos_cannot_have(rack: Rack) -> None:
    await rack.secret("net", networkData='{"links": []}')
    key = await rack.host(image=IMAGE, networkData={"name": "net"})
    await rack.until_well(key, "provisioned")
    await rack.change(key, STEP | {"image": None})
    host = await rack.until_error(key, "no interface to configure")
    assert host.state == "provisioned"
    assert "undeploy" not in rack.backend.machines[key].orders


# Systems that read their config drive


@pytest.mark.parametrize("spec", [{"image": IMAGE}, {"customDeploy": {"method": "another_way"}}])
@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"networkData": NMSTATE}, "is nmstate; what is needed here is OpenStack's network_data.json"),
        ({"value": NMSTATE}, "is nmstate"),
        ({"nmstate": NMSTATE}, "has the key nmstate alone"),
        ({"networkData": "links: [\nsesame: ]}"}, "cannot be read in line 2"),
        ({"networkData": "[sesame]"}, "must be a mapping"),
    ],
)
async def test_what_a_config_drive_cannot_hold_is_refused_before_the_machine_is_touched(
    rack: Rack, spec: dict[str, Any], values: dict[str, str], words: str
) -> None:
    await rack.secret("net", **values)
    key = await rack.host(**spec, networkData={"name": "net"})
    host = await rack.until_error(key, "Secret net, named by spec.networkData,")
    assert words in host.status.error_message
    assert "sesame" not in host.status.error_message
    assert "deploy" not in rack.backend.machines[key].orders
    await rack.client.patch(SECRETS, Key(rack.namespace, "net"), {"stringData": {"networkData": OPENSTACK}})
    await rack.until_well(key, "provisioned")
    assert told(rack, key).network_data.reveal() == OPENSTACK
    assert KEYFILES not in told(rack, key).meta_data


async def test_nmstate_of_the_ramdisk_is_not_taken_for_the_network_of_the_installed_system(
    rack: Rack,
) -> None:
    await rack.secret("net", networkData=NMSTATE)
    key = await rack.host(image=IMAGE, preprovisioningNetworkDataName="net")
    host = await rack.until_error(key, "Secret net, named by spec.preprovisioningNetworkDataName, is nmstate")
    assert "belongs under the key nmstate" in host.status.error_message
    assert "deploy" not in rack.backend.machines[key].orders
    await rack.secret("own", networkData=OPENSTACK)
    await rack.change(key, {"networkData": {"name": "own"}})
    await rack.until_well(key, "provisioned")
    assert told(rack, key).network_data.reveal() == OPENSTACK


async def test_nmstate_that_is_for_the_ramdisk_by_its_key_stays_there(rack: Rack) -> None:
    await rack.secret("net", nmstate=NMSTATE, networkData="")
    key = await rack.host(image=IMAGE, preprovisioningNetworkDataName="net")
    await rack.until_well(key, "provisioned")
    assert not told(rack, key).network_data


async def test_a_live_image_has_no_config_drive_and_is_not_held_up_for_one(rack: Rack) -> None:
    await rack.secret("net", networkData=NMSTATE)
    live = {"url": "https://images.example/live.iso", "format": "live-iso"}
    key = await rack.host(image=live, preprovisioningNetworkDataName="net")
    await rack.until_well(key, "provisioned")
    assert not told(rack, key).network_data


def test_both_languages_are_told_apart_by_the_same_words() -> None:
    assert (network_data.OPENSTACK, network_data.NMSTATE) == (sources._OPENSTACK, sources._NMSTATE)
