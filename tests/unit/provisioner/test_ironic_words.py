"""Pure translations: reasons into sentences, inventories into hardware, hosts into records."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.api.baremetalhost import Image
from ingot.api.crd import crd
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.meta import Key
from ingot.embedded.server.kinds.schema import Shape
from ingot.provisioner.ironic.instance import image_info
from ingot.provisioner.ironic.inventory import InspectionData, findings, hardware_details
from ingot.provisioner.ironic.model import FullNode, HistoryEntry, Node
from ingot.provisioner.ironic.names import host_key, node_name
from ingot.provisioner.ironic.reasons import (
    LONGEST,
    explain,
    known_cause,
    newest_error,
    refuses_credentials,
    shorten,
)
from ingot.provisioner.ironic.record import differences, record_for
from ingot.provisioner.ironic.settings import Ramdisk
from ingot.trust import redact

NODE = FullNode(uuid="u", driver_info={"redfish_address": "https://10.0.0.7"})

# What Ironic 39 says, and what a person should read first.
SAID = [
    (
        "Failed to get power state for node 1be26c0b-03f2-4d2e-ae87-c02d7f33c123. Error: Redfish exception occurred. Error: "
        "HTTP GET https://10.0.0.7/redfish/v1/Systems/1 returned code 401. Base.1.0.GeneralError: no",
        "the BMC at https://10.0.0.7 refused the user name or password (HTTP 401)",
    ),
    (
        "Redfish connection failed for node U: Unable to connect to https://10.0.0.7. Error: Connection refused",
        "the BMC at https://10.0.0.7 does not answer",
    ),
    (
        "Failed to prepare to deploy: Validation of image href https://x failed, reason: Got HTTP code 404 instead of 200 in "
        "response to HEAD request.",
        "the image cannot be fetched: its URL answers HTTP 404",
    ),
    (
        "Failed to prepare to deploy: 401 Client Error: Unauthorized for url: https://registry.example.com/v2/",
        "the registry of the image refused the user name or password (HTTP 401); correct the Secret that "
        "spec.image.ociAuthSecretName names",
    ),
    (
        "Failed to prepare to deploy: The requested image oci://registry.example.com/a:b requires authentication which has not "
        "been provided. Unable to proceed.",
        "the registry of the image asks for a user name and password; name a Secret with both in",
    ),
    (
        "Deploy step deploy.write_image failed on node U. Image failed to verify against checksum. location: /x",
        "the image does not match its checksum",
    ),
    (
        "Node failed to start the first cleaning step: Connection to agent failed: HTTPSConnectionPool Max retries exceeded",
        "Ironic lost the connection to the ramdisk on the host",
    ),
    (
        "Failed to get power state for node 1. Error: Unterminated string starting at: line 1 column 396 (char 395)",
        "the BMC at https://10.0.0.7 gives answers that cannot be read",
    ),
    (
        "unable to start inspection: argument of type 'NoneType' is not iterable",
        "the BMC at https://10.0.0.7 gives answers that cannot be read",
    ),
    ("Timeout reached while cleaning the node", "the ramdisk on the host did not report in time"),
    (
        "Failed to get power state for node U. Error: IPMI call failed: power status.",
        "the BMC at https://10.0.0.7 does not answer over IPMI, or refused the user name or password",
    ),
    (
        "Error: IPMI call failed: power status. ipmitool says: Get Auth Capabilities error; Error issuing Get Channel "
        "Authentication Capabilities request",
        "the BMC at https://10.0.0.7 does not answer over IPMI. Ironic",
    ),
    (
        "IPMI call failed: power status. ipmitool says: RAKP 2 message indicates an error : unauthorized role requested",
        "the BMC at https://10.0.0.7 does not give this user the privileges that are asked for",
    ),
    (
        "IPMI call failed: power status. ipmitool says: Set Session Privilege Level to ADMINISTRATOR failed",
        "the BMC at https://10.0.0.7 does not give this user the privileges that are asked for",
    ),
    (
        "Redfish connection failed for node U: SSLError CERTIFICATE_VERIFY_FAILED",
        "the certificate of the BMC at https://10.0.0.7 is not trusted",
    ),
]


@pytest.mark.parametrize(("said", "sentence"), SAID)
def test_common_reasons_become_sentences_with_ironics_words_behind(said, sentence):
    text = explain(said, NODE)
    assert text.startswith(sentence)
    assert "Ironic says: " in text
    assert not text.endswith(".")
    assert redact(text) == text, "what we write ourselves looks like no secret"


@pytest.mark.parametrize(
    "printed",
    ["RAKP 2 HMAC is invalid", "RAKP 2 message indicates an error : unauthorized name"],
)
def test_a_refusal_over_ipmi_is_told_as_one(printed):
    said = f"Failed to get power state for node U. Error: IPMI call failed: power status. ipmitool says: {printed}"
    assert explain(said, NODE).startswith(
        "the BMC at https://10.0.0.7 refused the user name or password. Ironic"
    )
    assert refuses_credentials(said)


def test_only_a_refusal_by_the_bmc_counts_as_wrong_credentials():
    assert [refuses_credentials(said) for said, _ in SAID] == [True] + [False] * (len(SAID) - 1)


def test_what_has_no_sentence_of_its_own_is_ironics_text():
    assert explain("Something  rare\nhappened.", NODE) == "Something rare happened"


def test_a_token_is_never_told_and_long_texts_are_cut():
    text = shorten(
        "POST https://10.0.0.7:9999/v1/commands/?wait=true&agent_token=s3cr3tT0ken failed " + "x" * 2000
    )
    assert "s3cr3t" not in text
    assert len(text) <= LONGEST


def test_what_sushy_repeats_as_a_list_is_left_out():
    said = "returned code 401. Base: wrong password Extended information: [{'MessageId': 'Base'}]"
    assert shorten(said) == "returned code 401. Base: wrong password"


def test_the_newest_error_of_a_history_is_the_reason():
    entries = [
        HistoryEntry(severity="INFO", event="power on"),
        HistoryEntry(severity="ERROR", event="newest"),
        HistoryEntry(severity="ERROR", event="older"),
    ]
    assert newest_error(entries) == "newest"
    assert newest_error([]) == ""


# Inventory

FOUND = {
    "inventory": {
        "interfaces": [
            {
                "name": "eno1",
                "mac_address": "52:54:00:00:00:01",
                "ipv4_address": "10.0.0.9",
                "ipv6_address": "fd00::9",
                "vendor": "0x8086",
                "product": "0x1572",
                "speed_mbps": 25000,
                "pci_address": "0000:02:00.0",
                "lldp": None,
                "has_carrier": True,
            },
            {"name": "eno2", "mac_address": "52:54:00:00:00:02", "speed_mbps": None},
        ],
        "cpu": {
            "model_name": "A",
            "frequency": "2599.998",
            "count": 8,
            "architecture": "x86_64",
            "flags": ["vmx", "aes"],
        },
        "disks": [
            {
                "name": "/dev/sda",
                "size": 10,
                "rotational": True,
                "by_path": "/dev/disk/by-path/pci-0",
                "serial": "S",
            },
            {"name": "/dev/nvme0n1", "size": 20, "rotational": False},
            {"name": "/dev/vda", "size": 30, "rotational": False},
        ],
        "memory": {"physical_mb": 8192, "total": 1},
        "system_vendor": {
            "manufacturer": "M",
            "product_name": "P",
            "serial_number": "N",
            "firmware": {"vendor": "V", "version": "1", "build_date": "d"},
        },
        "hostname": "h",
        "bmc_address": "10.0.0.7",
    },
    "plugin_data": {
        "all_interfaces": {"eno1": {"pxe_enabled": True, "name": "eno1"}},
        "parsed_lldp": {
            "eno1": {
                "switch_chassis_id": "aa",
                "switch_port_id": "p1",
                "switch_system_name": "sw",
                "switch_port_untagged_vlan_id": 7,
                "switch_port_vlans": [{"id": 7, "name": "blue"}],
            }
        },
    },
}


def test_a_step_is_named_without_what_it_was_told():
    said = (
        "Node 0bae7557-a60d-49e2-9461-f7b0700a49e8 failed step {'interface': 'bios', 'step': 'apply_configuration', "
        "'args': {'settings': [{'name': 'SetupPassword', 'value': 'hunter2'}]}, 'abortable': False, 'priority': 0}: "
        "Redfish exception occurred. Error: {'code': 1}: not supported."
    )
    assert shorten(said) == (
        "the step bios.apply_configuration failed: Redfish exception occurred. Error: {'code': 1}: not supported"
    )


CONFIG = json.dumps({"ignition": {"version": "3.4.0"}, "storage": "it's }: sesame \\' } {'step': 'x'"})
INSTALL = {"interface": "deploy", "step": "install_coreos", "args": {"ignition": CONFIG}, "priority": 80}


@pytest.mark.parametrize("step", [INSTALL, dict(reversed(INSTALL.items()))], ids=["as told", "reversed"])
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "Cannot go on: node does not support this deploy step: {step}; sorry",
            "Cannot go on: node does not support this deploy step: deploy.install_coreos; sorry",
        ),
        (
            "Deploy step {step} has not been found. Agent is not running.",
            "Deploy step deploy.install_coreos has not been found. Agent is not running",
        ),
        (
            "Agent returned error for deploy step {step} on node x : it {{broke}}",
            "Agent returned error for deploy step deploy.install_coreos on node x : it {broke}",
        ),
        (
            "Node 0bae7557-a60d-49e2-9461-f7b0700a49e8 failed step {step}: it broke",
            "the step deploy.install_coreos failed: it broke",
        ),
    ],
)
def test_nothing_of_what_a_step_was_told_is_shown_wherever_ironic_repeats_it(step, said, shown):
    assert shorten(said.format(step=step)) == shown


def test_a_step_that_is_cut_off_takes_the_rest_with_it():
    assert shorten(f"no such step: {str(INSTALL)[:90]}") == "no such step: deploy.install_coreos"
    assert shorten("no such step: {'args': {'a': 'sesame") == "no such step: {…}"


@given(st.text(), st.text())
def test_no_argument_of_a_step_gets_out(name, value):
    step = {"interface": "deploy", "step": "s", "args": {name: [value, {value: name}]}}
    assert (
        shorten(f"it broke: {step}, twice: {[step, step]}")
        == "it broke: deploy.s, twice: [deploy.s, deploy.s]"
    )


@pytest.mark.parametrize(
    "said",
    ["node does not support this deploy step: {}", "Deploy step {} has not been found. Available: []."],
)
def test_a_ramdisk_without_the_step_is_called_that(said):
    text = said.format(INSTALL)
    assert known_cause(text, Node(uuid="u")) == (
        "the ramdisk on the host has no step deploy.install_coreos: another agent has to be in it"
    )
    assert "sesame" not in explain(text, Node(uuid="u"))


def test_an_inventory_becomes_hardware_in_the_words_of_the_api():
    details = hardware_details(msgspec.convert(FOUND, InspectionData))
    assert [(nic.name, nic.ip) for nic in details.nics] == [
        ("eno1", "10.0.0.9"),
        ("eno1", "fd00::9"),
        ("eno2", ""),
    ]
    first = details.nics[0]
    assert (first.model, first.speed_gbps, first.pxe, first.vlan_id) == ("0x8086 0x1572", 25, True, 7)
    assert first.lldp is not None
    assert first.lldp.switch_system_name == "sw"
    assert (details.cpu.clock_megahertz, details.cpu.flags) == (2600.0, ["aes", "vmx"])
    assert [(disk.name, disk.type) for disk in details.storage] == [
        ("/dev/disk/by-path/pci-0", "HDD"),
        ("/dev/nvme0n1", "NVME"),
        ("/dev/vda", "SSD"),
    ]
    assert details.storage[0].alternate_names == ["/dev/sda", "/dev/disk/by-path/pci-0"]
    assert details.firmware.bios.version == "1"
    assert details.ram_mebibytes == 8192


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"inventory": {}},
        {
            "inventory": {
                "cpu": None,
                "disks": None,
                "interfaces": None,
                "memory": None,
                "system_vendor": None,
            }
        },
        {"inventory": {"cpu": {"frequency": "fast"}}, "plugin_data": None},
        {"inventory": {"cpu": {"frequency": "nan"}}},
        {"inventory": {"cpu": {"frequency": "inf"}}},
        {"inventory": {"cpu": {"frequency": "-1e999"}}},
        {"inventory": {"cpu": {"frequency": "9" * 400}}},
        {"inventory": {"cpu": {"frequency": "-1"}}},
    ],
)
def test_hardware_that_tells_little_is_no_error(found):
    assert hardware_details(msgspec.convert(found, InspectionData)).cpu.clock_megahertz == 0


@pytest.mark.parametrize(
    ("number", "kept"),
    [(0, 0), (4094, 4094), (2**63 - 1, 2**63 - 1), (2**63, 0), (10**21, 0), (-1, 0)],
)
def test_a_size_that_no_machine_has_counts_as_not_told(number, kept):
    told = {"memory": {"physical_mb": number}, "cpu": {"count": number}, "disks": [{"size": number}]}
    details = hardware_details(msgspec.convert({"inventory": told}, InspectionData))
    assert (details.ram_mebibytes, details.cpu.count, details.storage[0].size_bytes) == (kept,) * 3


@pytest.mark.parametrize(("number", "kept"), [(1, 1), (4094, 4094), (4095, 0), (-1, 0), (2**40, 0)])
def test_a_vlan_that_cannot_be_counts_as_not_told(number, kept):
    port = {"switch_port_untagged_vlan_id": number, "switch_port_vlans": [{"id": number, "name": "blue"}]}
    told = {"inventory": {"interfaces": [{"name": "eno1"}]}, "plugin_data": {"parsed_lldp": {"eno1": port}}}
    (nic,) = hardware_details(msgspec.convert(told, InspectionData)).nics
    assert (nic.vlan_id, [vlan.id for vlan in nic.vlans]) == (kept, [kept])


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("52:54:00:12:34:56", True),
        ("80:00:02:08:fe:80:00:00:00:00:00:00:e4:1d:2d:03:00:a5:f0:11", True),
        ("52-54-00-12-34-56", False),
        ("none", False),
    ],
)
def test_what_is_no_mac_address_counts_as_not_told(told, kept):
    found = {"inventory": {"interfaces": [{"mac_address": told}]}}
    (nic,) = hardware_details(msgspec.convert(found, InspectionData)).nics
    assert nic.mac == (told if kept else "")


_NUMBERS = st.none() | st.integers(-(10**30), 10**30) | st.integers(-2, 5000)
_FLOATS = _NUMBERS | st.floats(allow_nan=False, allow_infinity=False)
_REPORTS = st.fixed_dictionaries(
    {
        "inventory": st.fixed_dictionaries(
            {
                "cpu": st.fixed_dictionaries(
                    {
                        "frequency": _FLOATS
                        | st.text(max_size=5)
                        | st.sampled_from(["inf", "-inf", "nan", "1e999", "1e308"]),
                        "count": _NUMBERS,
                    }
                ),
                "memory": st.fixed_dictionaries({"physical_mb": _NUMBERS}),
                "disks": st.lists(st.fixed_dictionaries({"size": _NUMBERS}), max_size=2),
                "interfaces": st.lists(
                    st.fixed_dictionaries(
                        {"name": st.just("eno1"), "mac_address": st.text(max_size=3), "speed_mbps": _FLOATS}
                    ),
                    max_size=2,
                ),
            }
        ),
        "plugin_data": st.fixed_dictionaries(
            {
                "parsed_lldp": st.fixed_dictionaries(
                    {
                        "eno1": st.fixed_dictionaries(
                            {
                                "switch_port_untagged_vlan_id": _NUMBERS,
                                "switch_port_vlans": st.lists(st.fixed_dictionaries({"id": _NUMBERS})),
                            }
                        )
                    }
                )
            }
        ),
    }
)
_HARDWARE_DATA = Shape(crd(HARDWARE_DATA)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


@given(_REPORTS)
def test_whatever_an_agent_reports_the_api_takes_what_becomes_of_it(report):
    details = hardware_details(msgspec.json.decode(json.dumps(report), type=InspectionData))
    document = {"spec": {"hardware": json.loads(msgspec.json.encode(details))}}
    assert _HARDWARE_DATA.problems(document) == []
    assert not [number for number in numbers(document) if not 0 <= number <= 2**63 - 1]


def numbers(value):
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return [number for part in parts for number in numbers(part)]
    return [value] if isinstance(value, int) else []


@pytest.mark.parametrize(
    ("told", "build"),
    [
        ({"build": "44.20260707.3.1", "name": "Fedora CoreOS", "agent": "0.1.0"}, "44.20260707.3.1"),
        ({"build": "fedora-coreos-44.20260707.3.1"}, "fedora-coreos-44.20260707.3.1"),
        ({"build": "44\nerror: all is lost"}, ""),
        ({"build": "4" * 65}, ""),
        ({"build": 44}, ""),
        ({}, ""),
        (None, ""),
        ("44.1", ""),
        ([{"build": "44.1"}], ""),
    ],
)
def test_the_build_that_looked_is_one_word_or_nothing(told, build):
    found = msgspec.convert({"inventory": {"coreos": told, "hostname": "h1"}}, InspectionData)
    assert (findings(found).ramdisk, findings(found).hardware.hostname) == (build, "h1")


# Names and records


LABELS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
NAMES = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,30}", fullmatch=True)


@given(LABELS, NAMES)
def test_a_node_name_leads_back_to_its_host(namespace, name):
    assert host_key(node_name(Key(namespace, name))) == Key(namespace, name)


@pytest.mark.parametrize("name", [None, "", "stranger", "~x", "x~"])
def test_a_node_that_is_not_ours_means_no_host(name):
    assert host_key(name) is None


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("sha512", {"image_os_hash_algo": "sha512", "image_os_hash_value": "c"}),
        ("auto", {"image_checksum": "c"}),
        (None, {"image_checksum": "c"}),
    ],
)
def test_a_checksum_is_told_with_its_kind_if_it_has_one(kind, expected):
    info = image_info(Image(url="http://x", checksum="c", checksum_type=kind, format="qcow2"))
    assert info == {"image_source": "http://x", "image_disk_format": "qcow2"} | expected


def test_a_record_that_is_as_wanted_needs_no_patch(host, access):
    wanted = record_for(host, replace(access, architecture="x86_64"), Ramdisk(iso="http://iso"))
    made = wanted.to_create()
    node = msgspec.convert({"uuid": "u", "provision_state": "manageable"} | made, FullNode)
    assert differences(node, wanted, new_password=False) == []


def test_a_patch_keeps_what_others_set_and_removes_what_we_no_longer_want(host, access):
    wanted = record_for(
        host, replace(access, boot_mode="legacy"), Ramdisk(kernel="http://k", initramfs="http://i")
    )
    node = msgspec.convert(
        {
            "uuid": "u",
            "name": wanted.name,
            "provision_state": "manageable",
            "automated_clean": True,
            **{f"{kind}_interface": name for kind, name in wanted.interfaces.items()},
            "driver_info": {**wanted.driver_info, "deploy_iso": "http://old", "theirs": 1},
            "properties": {"capabilities": "cpu_vt:true,boot_mode:uefi"},
        },
        FullNode,
    )
    patch = [(one.op, one.path, one.value) for one in differences(node, wanted, new_password=False)]
    assert patch == [
        ("remove", "/driver_info/deploy_iso", msgspec.UNSET),
        # It is another ramdisk than before.
        ("add", "/driver_info/fast_track", "no"),
        ("add", "/properties/capabilities", "cpu_vt:true,boot_mode:bios"),
    ]


def test_fingerprints_tell_passwords_apart_and_show_nothing(host, access):
    one = record_for(host, access, Ramdisk())
    other = replace(one, driver_info={**one.driver_info, "redfish_password": "other"})
    assert one.fingerprint() == other.fingerprint()
    assert one.fingerprint() != replace(one, architecture="x").fingerprint()
    assert one.credentials_fingerprint() != other.credentials_fingerprint()
    assert replace(one, architecture="x").credentials_fingerprint() == one.credentials_fingerprint()


def test_a_node_keeps_only_the_small_part_in_the_cache():
    full = FullNode(uuid="u", name="a~b", driver_info={"secret": "x"}, provision_state="active")
    kept = full.remembered()
    assert type(kept) is Node
    assert kept.name == "a~b"
