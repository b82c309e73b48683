"""Every scheme of BMC addresses, and the record that Ironic gets of such a host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ironic_orders import MAC

from ingot.api import bmc
from ingot.api.meta import Key
from ingot.provisioner import Access, Credentials, HostRef
from ingot.provisioner.ironic import Ramdisk
from ingot.provisioner.ironic.drivers import DRIVERS, FAMILIES, IPMI, REDFISH
from ingot.provisioner.ironic.model import FullNode
from ingot.provisioner.ironic.record import Unsupported, differences, record_for, waits_for_rest
from ingot.provisioner.ironic.site import Site
from ingot.trust import Secret

HOST = HostRef(Key("rack", "h1"), "uid")
RAMDISK = Ramdisk(iso="https://x/ipa.iso", kernel="https://x/vmlinuz", initramfs="https://x/initrd")
SYSTEM = "/redfish/v1/Systems/1"

_KERNEL = {"deploy_kernel": "https://x/vmlinuz", "deploy_ramdisk": "https://x/initrd"}
_ISO = {"deploy_iso": "https://x/ipa.iso"}
_REDFISH = {"raid": "redfish", "firmware": "redfish"}
_IDRAC = {
    "management": "idrac-redfish",
    "power": "idrac-redfish",
    "raid": "idrac-redfish",
    "bios": "idrac-redfish",
    "firmware": "redfish",
    "vendor": "idrac-redfish",
}
# scheme: (driver, interfaces, interface of a fast inspection, what the ramdisk is)
GOLDEN = {
    "ipmi": ("ipmi", {"boot": "ipxe", "raid": "no-raid"}, "", _KERNEL),
    "libvirt": ("ipmi", {"boot": "ipxe", "raid": "no-raid"}, "", _KERNEL),
    "redfish": ("redfish", {"boot": "ipxe", **_REDFISH}, "redfish", _KERNEL),
    "ilo5-redfish": ("redfish", {"boot": "ipxe", **_REDFISH}, "redfish", _KERNEL),
    "redfish-virtualmedia": ("redfish", {"boot": "redfish-virtual-media", **_REDFISH}, "redfish", _ISO),
    "ilo5-virtualmedia": ("redfish", {"boot": "redfish-virtual-media", **_REDFISH}, "redfish", _ISO),
    "redfish-uefihttp": ("redfish", {"boot": "redfish-https", **_REDFISH}, "redfish", _ISO),
    "idrac-redfish": ("idrac", {"boot": "ipxe", **_IDRAC}, "idrac-redfish", _KERNEL),
    "idrac-virtualmedia": (
        "idrac",
        {"boot": "idrac-redfish-virtual-media", **_IDRAC},
        "idrac-redfish",
        _ISO,
    ),
}


def access(address: str, **others: Any) -> Access:
    usual = Access(
        address=address,
        credentials=Credentials(username="admin", password=Secret("s3cret")),
        boot_mac=MAC,
    )
    return replace(usual, **others)


def test_every_scheme_has_a_driver_and_every_driver_a_scheme():
    assert set(GOLDEN) == set(DRIVERS) == set(bmc.SCHEMES)


@pytest.mark.parametrize("scheme", GOLDEN)
def test_a_scheme_becomes_a_driver_with_its_interfaces(scheme):
    driver, interfaces, fast, ramdisk = GOLDEN[scheme]
    record = record_for(HOST, access(f"{scheme}://10.0.0.7:8000{SYSTEM}"), RAMDISK)
    body = record.to_create()
    assert body["driver"] == driver
    found = {key.removesuffix("_interface"): body[key] for key in body if key.endswith("_interface")}
    assert found == interfaces | {"inspect": "agent"}
    assert {key: value for key, value in record.driver_info.items() if key.startswith("deploy_")} == ramdisk
    assert DRIVERS[scheme].fast_inspection == fast
    assert bool(fast) is bmc.SCHEMES[scheme].fast_inspection


@pytest.mark.parametrize("scheme", GOLDEN)
def test_a_fast_inspection_has_its_interface_or_is_refused(scheme):
    wanted = access(f"{scheme}://10.0.0.7{SYSTEM}", inspection="fast")
    fast = GOLDEN[scheme][2]
    if fast:
        assert record_for(HOST, wanted, RAMDISK).interfaces["inspect"] == fast
    else:
        with pytest.raises(Unsupported, match=f"fast inspection is not possible .* {scheme}"):
            record_for(HOST, wanted, RAMDISK)


@pytest.mark.parametrize("scheme", GOLDEN)
def test_secure_boot_is_set_where_the_bmc_can(scheme):
    wanted = access(f"{scheme}://10.0.0.7{SYSTEM}", boot_mode="UEFISecureBoot")
    if bmc.SCHEMES[scheme].secure_boot:
        assert record_for(HOST, wanted, RAMDISK).capabilities["secure_boot"] == "true"
    else:
        with pytest.raises(Unsupported, match=f"secure boot cannot be set .* {scheme}"):
            record_for(HOST, wanted, RAMDISK)


@pytest.mark.parametrize("scheme", GOLDEN)
def test_a_site_without_provisioning_network_takes_only_what_boots_without(scheme):
    wanted = access(f"{scheme}://10.0.0.7{SYSTEM}")
    site = Site(provisioning_network=False)
    if bmc.SCHEMES[scheme].boots_from_iso:
        record_for(HOST, wanted, RAMDISK, site)
    else:
        with pytest.raises(Unsupported, match=f"{scheme} boot over the provisioning network"):
            record_for(HOST, wanted, RAMDISK, site)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        (
            "ipmi://10.0.0.7",
            {"ipmi_address": "10.0.0.7", "ipmi_port": "623", "ipmi_priv_level": "ADMINISTRATOR"},
        ),
        (
            "libvirt://[fd00::7]:6230?privilegelevel=OPERATOR",
            {"ipmi_address": "fd00::7", "ipmi_port": "6230", "ipmi_priv_level": "OPERATOR"},
        ),
        (
            "redfish+http://10.0.0.7:8000/redfish/v1/Systems/1",
            {"redfish_address": "http://10.0.0.7:8000", "redfish_system_id": SYSTEM},
        ),
        (
            "idrac-virtualmedia://[fd00::7]/redfish/v1/Systems/System.Embedded.1",
            {
                "redfish_address": "https://[fd00::7]",
                "redfish_system_id": "/redfish/v1/Systems/System.Embedded.1",
            },
        ),
        (
            "redfish-virtualmedia://bmc.example.com/redfish/v1/",
            {"redfish_address": "https://bmc.example.com"},
        ),
        ("redfish-uefihttp://bmc.example.com", {"redfish_address": "https://bmc.example.com"}),
    ],
)
def test_what_a_driver_is_told_of_a_bmc(address, told):
    family = IPMI if "ipmi_address" in told else REDFISH
    usual = record_for(HOST, access(address), Ramdisk()).driver_info
    assert usual == told | {family.username: "admin", family.password: "s3cret"}
    anybody = record_for(HOST, access(address, verify_certificate=False), Ramdisk()).driver_info
    assert anybody == usual | {family.verify: False}
    assert set(anybody) <= set(family.keys)


def test_a_libvirt_host_needs_its_mac_address():
    with pytest.raises(Unsupported, match=r"libvirt needs spec\.bootMACAddress"):
        record_for(HOST, access("libvirt://10.0.0.7", boot_mac=""), RAMDISK)
    record_for(HOST, access("ipmi://10.0.0.7", boot_mac=""), RAMDISK)


def test_a_bmc_over_ipv6_is_told_where_it_finds_what_ironic_serves():
    site = Site(external_url_v6="https://[fd00::1]:6180")
    v6, v4 = (
        record_for(HOST, access("redfish-virtualmedia://h/"), RAMDISK, site, over_v6=over)
        for over in (True, False)
    )
    assert v6.driver_info["external_http_url"] == "https://[fd00::1]:6180"
    assert "external_http_url" not in v4.driver_info


def node_of(address: str, state: str = "manageable") -> FullNode:
    """A node that is as the host's record says."""
    record = record_for(HOST, access(address), RAMDISK)
    interfaces = {f"{kind}_interface": name for kind, name in record.interfaces.items()}
    return FullNode(
        uuid="u",
        name=record.name,
        provision_state=state,
        driver=record.driver,
        driver_info=record.driver_info | {record.family.password: "******"},
        properties={"capabilities": "boot_mode:uefi"},
        automated_clean=True,
        **interfaces,
    )


@pytest.mark.parametrize("scheme", GOLDEN)
def test_a_node_that_is_as_it_should_be_is_left_alone(scheme):
    address = f"{scheme}://10.0.0.7{SYSTEM}"
    wanted = record_for(HOST, access(address), RAMDISK)
    assert differences(node_of(address), wanted, new_password=False) == []
    assert not wanted.is_of_another_bmc(node_of(address))


def test_another_driver_takes_over_the_whole_record():
    node = node_of("idrac-virtualmedia://10.0.0.7/redfish/v1/Systems/System.Embedded.1")
    wanted = record_for(HOST, access("ipmi://10.0.0.7"), RAMDISK)
    patch = {one.path: one for one in differences(node, wanted, new_password=True)}
    assert patch["/driver"].value == "ipmi"
    assert patch["/boot_interface"].value == "ipxe"
    assert patch["/raid_interface"].value == "no-raid"
    gone = {path for path, one in patch.items() if one.op == "remove"}
    assert {f"/{kind}_interface" for kind in ("bios", "firmware", "management", "power", "vendor")} <= gone
    assert {f"/driver_info/{key}" for key in node.driver_info if key.startswith("redfish_")} <= gone
    assert patch["/driver_info/ipmi_password"].value == "s3cret"
    assert wanted.is_of_another_bmc(node)


@pytest.mark.parametrize(
    ("state", "changes"),
    [
        ("enroll", True),
        ("manageable", True),
        ("available", True),
        ("active", False),
        ("inspect failed", False),
    ],
)
def test_another_interface_is_chosen_only_where_ironic_lets_one(state, changes):
    node = node_of(f"redfish://10.0.0.7{SYSTEM}", state)
    wanted = record_for(HOST, access(f"redfish-virtualmedia://10.0.0.7{SYSTEM}"), RAMDISK)
    paths = {one.path for one in differences(node, wanted, new_password=False)}
    assert ("/boot_interface" in paths) is changes
    assert waits_for_rest(node, wanted) is not changes


def test_the_raid_interface_that_was_chosen_for_software_volumes_stays():
    node = node_of(f"redfish-virtualmedia://10.0.0.7{SYSTEM}")
    software = FullNode(
        **{**{f: getattr(node, f) for f in node.__struct_fields__}, "raid_interface": "agent"}
    )
    wanted = record_for(HOST, access(f"redfish-virtualmedia://10.0.0.7{SYSTEM}"), RAMDISK)
    assert differences(software, wanted, new_password=False) == []


@pytest.mark.parametrize(
    ("before", "after", "another"),
    [
        ("ipmi://10.0.0.7:6230", "ipmi://10.0.0.7:6231", True),
        ("ipmi://10.0.0.7", "ipmi://10.0.0.7:623", False),
        ("redfish://10.0.0.7/a", "redfish://10.0.0.8/a", True),
        ("redfish://10.0.0.7/a", "redfish-virtualmedia://10.0.0.7/a", False),
    ],
)
def test_another_port_is_another_bmc(before, after, another):
    assert record_for(HOST, access(after), RAMDISK).is_of_another_bmc(node_of(before)) is another


def test_records_differ_by_what_is_told_and_credentials_apart():
    first = record_for(HOST, access("ipmi://10.0.0.7"), RAMDISK)
    for address in ("ipmi://10.0.0.7:6230", "redfish://10.0.0.7", "ipmi://10.0.0.7?privilegelevel=USER"):
        assert record_for(HOST, access(address), RAMDISK).fingerprint() != first.fingerprint()
    other = Credentials(username="admin", password=Secret("other"))
    second = record_for(HOST, access("ipmi://10.0.0.7", credentials=other), RAMDISK)
    assert second.fingerprint() == first.fingerprint()
    assert second.credentials_fingerprint() != first.credentials_fingerprint()
    assert (
        record_for(HOST, access("ipmi://10.0.0.7", credentials=None), RAMDISK).credentials_fingerprint()
        is None
    )


def test_no_two_families_share_a_key():
    keys = [key for family in FAMILIES for key in family.keys]
    assert len(keys) == len(set(keys))
