"""What is refused when a host is written, one rule a case, and what never is."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest

from ingot.api.admission import FieldError, Kind, check
from ingot.api.admission.baremetalhost import CREATE_RULES, Rule
from ingot.api.baremetalhost import BareMetalHost

Json = dict[str, Any]

REDFISH = "redfish-virtualmedia://10.0.0.7/redfish/v1/Systems/1"
MAC = "52:54:00:12:34:56"
IMAGE = {"url": "http://images/a.qcow2", "checksum": "http://images/a.sha256", "format": "qcow2"}
MIRROR = {"level": "1", "rootVolume": True}

R, I, F, N, D = Kind.REQUIRED, Kind.INVALID, Kind.FORBIDDEN, Kind.NOT_SUPPORTED, Kind.DUPLICATE  # noqa: E741 - a table reads better


def a_host(
    spec: Json | None = None, *, annotations: Json | None = None, name: str = "h1", status: Json | None = None
) -> Json:
    document: Json = {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {"name": name, "namespace": "lab", "annotations": annotations or {}},
        "spec": {
            "online": True,
            "bmc": {"address": REDFISH, "credentialsName": "h1-bmc"},
            "bootMACAddress": MAC,
            "automatedCleaningMode": "metadata",
        }
        | (spec or {}),
    }
    return document | ({"status": status} if status is not None else {})


def created(document: Json) -> list[FieldError]:
    return check("metal3.io", "BareMetalHost", document, None)


def changed(new: Json, old: Json) -> list[FieldError]:
    return check("metal3.io", "BareMetalHost", new, old)


def bmc(address: str) -> Json:
    return {"bmc": {"address": address, "credentialsName": "h1-bmc"}}


def image(**parts: str) -> Json:
    return {"image": {key: value for key, value in (IMAGE | parts).items() if value != "absent"}}


@pytest.mark.parametrize(
    "url",
    [
        "ftps://admin:hunter2@images/a.raw",
        "http://admin:hunter2@images:port/a.raw",
        "http://admin:hunter2@images/a b.raw",
        "http://admin:1/hunter2@images/a.raw\n",
        "http://admin:x/hunter2@images/a.raw",
        "http://admin:hunter2@",
    ],
)
@pytest.mark.parametrize("field", ["url", "checksum"])
def test_a_password_in_a_refused_url_is_not_repeated(field: str, url: str) -> None:
    errors = created(a_host(image(**{field: url})))
    assert [error.path for error in errors] == [f"spec.image.{field}"]
    assert "hunter2" not in str(errors[0]) + repr(errors[0])


def test_a_long_text_in_place_of_a_url_is_refused_at_once() -> None:
    """Each `://` could be where a password begins; looking on from each would take minutes."""
    (error,) = created(a_host(image(url="://" * 300_000)))
    assert error.path == "spec.image.url"


def status(state: str, operational: str = "OK") -> Json:
    return {"operationalStatus": operational, "provisioning": {"ID": "n1", "state": state}}


ACCEPTED = {
    "all that is usual": {
        **image(),
        "userData": {"name": "h1-user-data"},
        "rootDeviceHints": {"deviceName": "/dev/sda"},
    },
    "no BMC at all": {"bmc": {"address": "", "credentialsName": ""}},
    "ipmi by default": bmc("10.0.0.7"),
    "a Secret of the same namespace": {"userData": {"name": "u", "namespace": "lab"}},
    "a disk by its path": {"rootDeviceHints": {"deviceName": "/dev/disk/by-path/pci-0000:01:00.0-ata-1"}},
    "a checksum in digits": image(checksum="ab" * 32),
    "a live ISO without a checksum": image(format="live-iso", checksum="absent"),
    "CoreOS from the ramdisk": image(format="coreos", url="", checksum="absent"),
    "CoreOS from a URL": image(format="coreos"),
    "CoreOS asked for in both ways": {
        **image(format="coreos", url="", checksum="absent"),
        "customDeploy": {"method": "install_coreos"},
    },
    "an OCI image without a checksum": image(url="oci://registry/a:1", checksum="absent"),
    "an OCI image with credentials": image(
        url="oci://registry/a:1", checksum="absent", ociAuthSecretName="pull"
    ),
    "secure boot over Redfish": {"bootMode": "UEFISecureBoot"},
    "fast inspection over Redfish": {"inspectionMode": "fast"},
    "an InfiniBand address": {"bootMACAddress": ":".join(["a0"] * 20)},
    "inspection disabled with a MAC": {"inspectionMode": "disabled"},
    "inspection disabled without a BMC": {"inspectionMode": "disabled", "bootMACAddress": "", "bmc": {}},
    "no MAC where none is needed": {"bootMACAddress": ""},
    "power off disabled on a host that is on": {"disablePowerOff": True},
    "CoreOS where software RAID is removed": {
        **image(format="coreos", url="", checksum="absent"),
        "raid": {"softwareRAIDVolumes": []},
    },
    "CoreOS on a volume of a RAID controller": {
        "customDeploy": {"method": "install_coreos"},
        "raid": {"hardwareRAIDVolumes": [{"level": "1"}]},
    },
    "another deploy step on software RAID": {
        "customDeploy": {"method": "install_other"},
        "raid": {"softwareRAIDVolumes": [MIRROR]},
    },
    "hardware RAID": {
        "raid": {
            "hardwareRAIDVolumes": [
                {"level": "1", "controller": "c0", "physicalDisks": ["0", "1"], "numberOfPhysicalDisks": 2}
            ]
        }
    },
    "hardware RAID removed over IPMI": {**bmc("ipmi://h"), "raid": {"hardwareRAIDVolumes": []}},
    "one root volume": {"raid": {"softwareRAIDVolumes": [MIRROR, {"level": "0"}]}},
    "an empty list beside software RAID": {
        "raid": {"hardwareRAIDVolumes": [], "softwareRAIDVolumes": [MIRROR]}
    },
    "interfaces by name and by MAC": {
        "networkInterfaces": [{"name": "eth0"}, {"macAddress": MAC}, {"name": "eth1"}]
    },
    "externally provisioned from the start": {"externallyProvisioned": True},
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_is_right_is_accepted(spec: Json) -> None:
    assert created(a_host(spec)) == []


REFUSED: list[tuple[str, Json, str, Kind, str]] = [
    (
        "unknown scheme",
        bmc("irmc://10.0.0.7"),
        "spec.bmc.address",
        I,
        "no driver for the scheme 'irmc' any more",
    ),
    ("bad host", bmc("redfish://h_1/x"), "spec.bmc.address", I, "neither an IP address nor a DNS name"),
    ("firmware", {"firmware": {}}, "spec.firmware", F, "HostFirmwareSettings"),
    (
        "userData elsewhere",
        {"userData": {"name": "u", "namespace": "b"}},
        "spec.userData.namespace",
        F,
        "'lab', not in 'b'",
    ),
    (
        "networkData elsewhere",
        {"networkData": {"name": "u", "namespace": "b"}},
        "spec.networkData.namespace",
        F,
        "'b'",
    ),
    (
        "metaData elsewhere",
        {"metaData": {"name": "u", "namespace": "b"}},
        "spec.metaData.namespace",
        F,
        "'b'",
    ),
    (
        "credentials out of the namespace",
        {"bmc": {"address": REDFISH, "credentialsName": "../../kube-system/secrets/admin"}},
        "spec.bmc.credentialsName",
        I,
        "no Secret can have this name",
    ),
    ("userData name", {"userData": {"name": "a/b"}}, "spec.userData.name", I, "no Secret"),
    ("networkData name", {"networkData": {"name": ".."}}, "spec.networkData.name", I, "no Secret"),
    ("metaData name", {"metaData": {"name": "A"}}, "spec.metaData.name", I, "no Secret"),
    (
        "ramdisk network data name",
        {"preprovisioningNetworkDataName": "a?b"},
        "spec.preprovisioningNetworkDataName",
        I,
        "no Secret",
    ),
    (
        "pull secret name",
        image(url="oci://r/a", checksum="absent", ociAuthSecretName="a" * 254),
        "spec.image.ociAuthSecretName",
        I,
        "no Secret",
    ),
    (
        "both sorts of RAID",
        {"raid": {"hardwareRAIDVolumes": [{"level": "1"}], "softwareRAIDVolumes": [{"level": "1"}]}},
        "spec.raid.softwareRAIDVolumes",
        F,
        "either hardware or software",
    ),
    (
        "disks without a controller",
        {"raid": {"hardwareRAIDVolumes": [{"level": "0"}, {"level": "1", "physicalDisks": ["0", "1"]}]}},
        "spec.raid.hardwareRAIDVolumes[1].controller",
        R,
        "say which controller",
    ),
    (
        "disks and their number disagree",
        {
            "raid": {
                "hardwareRAIDVolumes": [
                    {"level": "1", "controller": "c", "physicalDisks": ["0"], "numberOfPhysicalDisks": 2}
                ]
            }
        },
        "spec.raid.hardwareRAIDVolumes[0].numberOfPhysicalDisks",
        I,
        "physicalDisks lists 1",
    ),
    (
        "two root volumes",
        {"raid": {"softwareRAIDVolumes": [MIRROR, MIRROR]}},
        "spec.raid.softwareRAIDVolumes[1].rootVolume",
        F,
        "volume 0 does",
    ),
    (
        "root volume and hints",
        {"raid": {"softwareRAIDVolumes": [MIRROR]}, "rootDeviceHints": {"model": "x"}},
        "spec.raid.softwareRAIDVolumes[0].rootVolume",
        F,
        "spec.rootDeviceHints says already",
    ),
    (
        "root volume that cannot boot",
        {"raid": {"softwareRAIDVolumes": [{"level": "0", "rootVolume": True}]}},
        "spec.raid.softwareRAIDVolumes[0].level",
        I,
        'has to be level "1"',
    ),
    (
        "CoreOS on software RAID",
        {
            **image(format="coreos", url="", checksum="absent"),
            "raid": {"softwareRAIDVolumes": [{"level": "1"}]},
        },
        "spec.raid.softwareRAIDVolumes",
        F,
        "have Ignition mirror the disks",
    ),
    (
        "CoreOS on software RAID by its step",
        {
            "customDeploy": {"method": "install_coreos"},
            "raid": {"softwareRAIDVolumes": [MIRROR], "hardwareRAIDVolumes": []},
        },
        "spec.raid.softwareRAIDVolumes",
        F,
        "have Ignition mirror the disks",
    ),
    (
        "hardware RAID over IPMI",
        {**bmc("ipmi://h"), "raid": {"hardwareRAIDVolumes": [{"level": "1"}]}},
        "spec.raid.hardwareRAIDVolumes",
        I,
        "through ipmi",
    ),
    (
        "libvirt without a MAC",
        {**bmc("libvirt://h"), "bootMACAddress": ""},
        "spec.bootMACAddress",
        R,
        "libvirt BMC needs",
    ),
    (
        "no inspection and no MAC",
        {"inspectionMode": "disabled", "bootMACAddress": ""},
        "spec.bootMACAddress",
        R,
        "inspection is disabled",
    ),
    (
        "a MAC with something after it",
        {"bootMACAddress": f"{MAC}zz"},
        "spec.bootMACAddress",
        I,
        "not a MAC address",
    ),
    ("a MAC of seven bytes", {"bootMACAddress": f"{MAC}:00"}, "spec.bootMACAddress", I, "not a MAC address"),
    (
        "secure boot over IPMI",
        {**bmc("ipmi://h"), "bootMode": "UEFISecureBoot"},
        "spec.bootMode",
        I,
        "through ipmi",
    ),
    (
        "fast inspection over IPMI",
        {**bmc("ipmi://h"), "inspectionMode": "fast"},
        "spec.inspectionMode",
        I,
        "agent or disabled",
    ),
    (
        "a disk by ID",
        {"rootDeviceHints": {"deviceName": "/dev/disk/by-id/x"}},
        "spec.rootDeviceHints.deviceName",
        I,
        "by-path",
    ),
    (
        "a disk elsewhere",
        {"rootDeviceHints": {"deviceName": "sda"}},
        "spec.rootDeviceHints.deviceName",
        I,
        "/dev/NAME",
    ),
    (
        "a hint that is an expression",
        {"rootDeviceHints": {"model": "<or> a <or> b"}},
        "spec.rootDeviceHints.model",
        I,
        "is an operator of Ironic's",
    ),
    (
        "a deploy step that is no word",
        {"customDeploy": {"method": "../sh"}},
        "spec.customDeploy.method",
        I,
        "the name of a deploy step",
    ),
    (
        "a disk and more",
        {"rootDeviceHints": {"deviceName": "/dev/a b"}},
        "spec.rootDeviceHints.deviceName",
        I,
        "/dev/NAME",
    ),
    ("no image URL", image(url=""), "spec.image.url", R, "say where the image is"),
    (
        "image from a file",
        image(url="file:///etc/shadow"),
        "spec.image.url",
        N,
        "one of: http, https, ftp, gopher, oci",
    ),
    ("image from nowhere", image(url="test1"), "spec.image.url", N, "one of: http"),
    ("image without a host", image(url="http:///a"), "spec.image.url", I, "names no host"),
    ("image with a bad port", image(url="http://h:port/a"), "spec.image.url", I, "is not a URL"),
    ("image with a space", image(url="http://h/a b"), "spec.image.url", I, "printable ASCII"),
    ("image with a line break", image(url="http://h/a\nb"), "spec.image.url", I, "printable ASCII"),
    ("image without a checksum", image(checksum="absent"), "spec.image.checksum", R, "needs a checksum"),
    ("checksum of no image", image(format="coreos", url=""), "spec.image.checksum", F, "with the ramdisk"),
    (
        "CoreOS from a URL without a checksum",
        image(format="coreos", checksum="absent"),
        "spec.image.checksum",
        R,
        "needs a checksum",
    ),
    (
        "CoreOS by another deploy step",
        {**image(format="coreos", url="", checksum="absent"), "customDeploy": {"method": "other"}},
        "spec.customDeploy.method",
        I,
        "install_coreos installs",
    ),
    ("OCI image with a checksum", image(url="oci://r/a"), "spec.image.checksum", F, "verified by its digest"),
    (
        "checksum from a file",
        image(checksum="file:///etc/shadow"),
        "spec.image.checksum",
        N,
        "one of: http, https",
    ),
    ("checksum with a line break", image(checksum="ab\ncd"), "spec.image.checksum", I, "hexadecimal"),
    ("never off and off", {"disablePowerOff": True, "online": False}, "spec.online", I, "disablePowerOff"),
    (
        "an interface told twice over",
        {"networkInterfaces": [{"name": "eth0", "macAddress": MAC}]},
        "spec.networkInterfaces[0].macAddress",
        F,
        "not both",
    ),
    (
        "an interface not told",
        {"networkInterfaces": [{}]},
        "spec.networkInterfaces[0]",
        R,
        "name or the macAddress",
    ),
    (
        "an interface listed twice",
        {"networkInterfaces": [{"macAddress": "aa:00:00:00:00:01"}, {"macAddress": "AA:00:00:00:00:01"}]},
        "spec.networkInterfaces[1].macAddress",
        D,
        "listed already",
    ),
]


@pytest.mark.parametrize(
    ("spec", "path", "kind", "words"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_a_spec_that_cannot_be_fulfilled_is_refused_by_one_rule(
    spec: Json, path: str, kind: Kind, words: str
) -> None:
    (error,) = created(a_host(spec))
    assert (error.path, error.kind) == (path, kind)
    assert words in error.message


@pytest.mark.parametrize("name", ["6f1e6a10-4cbb-4c8c-9a7b-2f2f1f0a9d5e", "6f1e6a104cbb4c8c9a7b2f2f1f0a9d5e"])
def test_a_host_is_not_named_like_a_uuid(name: str) -> None:
    (error,) = created(a_host(name=name))
    assert (error.path, error.kind) == ("metadata.name", I)


def test_a_host_is_not_named_with_a_tilde_which_the_back_end_puts_between_namespace_and_name() -> None:
    (error,) = created(a_host(name="a~b"))
    assert "only letters, digits" in error.message


STATUS = "baremetalhost.metal3.io/status"
DETAILS = "inspect.metal3.io/hardwaredetails"
DISABLED = {"inspectionMode": "disabled"}

ACCEPTED_ANNOTATIONS: dict[str, tuple[Json, Json]] = {
    "an empty status": ({STATUS: "{}"}, {}),
    "a status as Go writes it": (
        {
            STATUS: json.dumps(
                {
                    "operationalStatus": "OK",
                    "lastUpdated": None,
                    "errorMessage": "",
                    "poweredOn": True,
                    "provisioning": {
                        "state": "provisioned",
                        "ID": "n",
                        "image": {"url": ""},
                        "raid": {"hardwareRAIDVolumes": None},
                    },
                    "operationHistory": {"register": {"start": "2026-01-01T00:00:00Z", "end": None}},
                    "hardware": {
                        "hostname": "h",
                        "nics": [{"mac": MAC, "vlans": [{"id": 1}]}],
                        "cpu": {"clockMegahertz": 2000},
                    },
                }
            )
        },
        {},
    ),
    "a status while servicing": (
        {STATUS: '{"operationalStatus": "servicing", "errorType": "servicing error"}'},
        {},
    ),
    "a status of a host that could not be detached": ({STATUS: '{"errorType": "detach error"}'}, {}),
    "a reboot": ({"reboot.metal3.io": ""}, {}),
    "a hard reboot": ({"reboot.metal3.io": '{"mode": "hard", "force": true}'}, {}),
    "a held reboot": ({"reboot.metal3.io/me": '{"mode": ""}'}, {}),
    "an inspection": ({"inspect.metal3.io": ""}, {}),
    "no inspection": ({"inspect.metal3.io": "disabled"}, {}),
    "no inspection, said twice": ({"inspect.metal3.io": "disabled"}, DISABLED),
    "details instead of inspection": ({DETAILS: '{"cpu": {"arch": "x86_64"}}'}, DISABLED),
    "details instead of inspection, by annotation": ({DETAILS: "{}", "inspect.metal3.io": "disabled"}, {}),
    "detached with words": ({"baremetalhost.metal3.io/detached": "because"}, {}),
    "somebody else's": ({"reboot.metal3.iox": "{", "example.org/reboot.metal3.io": "{"}, {}),
}


@pytest.mark.parametrize(
    ("annotations", "spec"), ACCEPTED_ANNOTATIONS.values(), ids=ACCEPTED_ANNOTATIONS.keys()
)
def test_an_annotation_that_can_be_obeyed_is_accepted(annotations: Json, spec: Json) -> None:
    assert created(a_host(spec, annotations=annotations)) == []


REFUSED_ANNOTATIONS: list[tuple[str, Json, Json, str, Kind, str]] = [
    ("no JSON", {STATUS: "{"}, {}, STATUS, I, "is not JSON"),
    ("no object", {STATUS: "[]"}, {}, STATUS, I, "is not a JSON object"),
    (
        "an unknown field",
        {STATUS: '{"poweredon": true}'},
        {},
        STATUS,
        I,
        "the field poweredon, which does not exist",
    ),
    (
        "an unknown field within",
        {STATUS: '{"provisioning": {"image": {"uri": "x"}}}'},
        {},
        STATUS,
        I,
        "the field provisioning.image.uri, which",
    ),
    (
        "an unknown field in a list",
        {STATUS: '{"hardware": {"nics": [{}, {"max": 1}]}}'},
        {},
        STATUS,
        I,
        "a field hardware that has the field nics[1].max",
    ),
    ("a wrong sort of value", {STATUS: '{"poweredOn": "yes"}'}, {}, STATUS, I, "Expected `bool`"),
    ("a wrong sort of inventory", {STATUS: '{"hardware": {"cpu": 1}}'}, {}, STATUS, I, "Expected `object`"),
    ("an unknown word", {STATUS: '{"operationalStatus": "fine"}'}, {}, STATUS, I, "'fine'"),
    ("an unknown error", {STATUS: '{"errorType": "bad luck"}'}, {}, STATUS, I, "'bad luck'"),
    ("a reboot in words", {"reboot.metal3.io": "now"}, {}, "reboot.metal3.io", I, "mode is hard or soft"),
    (
        "a reboot of another mode",
        {"reboot.metal3.io/a": '{"mode": "x"}'},
        {},
        "reboot.metal3.io/a",
        I,
        "mode is hard",
    ),
    ("a reboot as a list", {"reboot.metal3.io": "[]"}, {}, "reboot.metal3.io", I, "leave the value empty"),
    ("an inspection in words", {"inspect.metal3.io": "now"}, {}, "inspect.metal3.io", I, "'disabled'"),
    (
        "a contradiction",
        {"inspect.metal3.io": "disabled"},
        {"inspectionMode": "agent"},
        "inspect.metal3.io",
        I,
        "asks for 'agent'",
    ),
    ("details and inspection", {DETAILS: "{}"}, {}, DETAILS, F, "inspection would overwrite"),
    ("details misspelt", {DETAILS: '{"cpus": 1}'}, DISABLED, DETAILS, I, "the field cpus, which"),
    ("details that are none", {DETAILS: "x"}, DISABLED, DETAILS, I, "is not JSON"),
]


@pytest.mark.parametrize(
    ("annotations", "spec", "key", "kind", "words"),
    [case[1:] for case in REFUSED_ANNOTATIONS],
    ids=[case[0] for case in REFUSED_ANNOTATIONS],
)
def test_an_annotation_that_cannot_be_obeyed_is_refused(
    annotations: Json, spec: Json, key: str, kind: Kind, words: str
) -> None:
    (error,) = created(a_host(spec, annotations=annotations))
    assert (error.path, error.kind) == (f"metadata.annotations[{key}]", kind)
    assert words in error.message


def test_a_long_annotation_is_not_repeated_in_full() -> None:
    (error,) = created(a_host(annotations={STATUS: "x" * 10_000}))
    assert len(str(error)) < 400


OTHER = "redfish-virtualmedia://10.0.0.8/redfish/v1/Systems/1"


@pytest.mark.parametrize(
    ("new", "old", "refused"),
    [
        (bmc(OTHER), status("available"), "spec.bmc.address"),
        (bmc(OTHER), status("provisioned"), "spec.bmc.address"),
        (bmc(""), status("available"), "spec.bmc.address"),
        (bmc(OTHER), status("registering"), None),
        (bmc(OTHER), status("provisioned", "detached"), None),
        ({"bootMACAddress": "52:54:00:00:00:99"}, status("registering"), "spec.bootMACAddress"),
        ({"bootMACAddress": ""}, status("available"), "spec.bootMACAddress"),
        ({"bootMACAddress": "52:54:00:AB:CD:EF"}, status("available"), None),
        ({"externallyProvisioned": True}, status("provisioned"), "spec.externallyProvisioned"),
        ({"externallyProvisioned": True}, status(""), "spec.externallyProvisioned"),
        ({"externallyProvisioned": True}, status("available"), None),
        ({"externallyProvisioned": True}, status("ready"), None),
    ],
)
def test_what_would_make_it_another_machine_cannot_be_changed(
    new: Json, old: Json, refused: str | None
) -> None:
    before = a_host({"bootMACAddress": "52:54:00:ab:cd:ef"}, status=old)
    after = copy.deepcopy(before)
    after["spec"] |= new
    assert [(error.path, error.kind) for error in changed(after, before)] == (
        [(refused, F)] if refused else []
    )


def test_an_address_and_a_mac_can_be_given_later() -> None:
    before = a_host(
        {"bmc": {"address": "", "credentialsName": ""}, "bootMACAddress": ""}, status=status("unmanaged")
    )
    assert changed(a_host(status=status("unmanaged")), before) == []


def test_external_provisioning_can_be_turned_off_in_any_state() -> None:
    state = status("externally provisioned")
    assert changed(a_host(status=state), a_host({"externallyProvisioned": True}, status=state)) == []


def test_the_rules_for_creating_hold_for_every_change_of_the_spec() -> None:
    (error,) = changed(a_host({"disablePowerOff": True, "online": False}), a_host())
    assert error.path == "spec.online"


BAD = a_host({"firmware": {}}, annotations={"reboot.metal3.io": "now"}, status=status("available"))


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": BAD["metadata"] | {"finalizers": []}},
        {"metadata": BAD["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"metadata": BAD["metadata"] | {"labels": {"a": "b"}}},
        {
            "metadata": BAD["metadata"]
            | {"annotations": BAD["metadata"]["annotations"] | {"example.org/a": "b"}}
        },
        {"status": status("provisioned")},
        {},
    ],
)
def test_a_host_that_breaks_a_newer_rule_can_still_be_changed_where_the_rule_is_not_concerned(
    change: Json,
) -> None:
    assert len(created(BAD)) == 2
    assert changed(BAD | change, BAD) == []


def test_removing_an_annotation_of_ours_is_a_change_that_is_checked() -> None:
    new = copy.deepcopy(BAD)
    del new["metadata"]["annotations"]["reboot.metal3.io"]
    assert [error.path for error in changed(new, BAD)] == ["spec.firmware"]


def test_all_that_is_wrong_is_said_at_once() -> None:
    errors = created(
        a_host({"firmware": {}, "disablePowerOff": True, "online": False, **image(checksum="absent")})
    )
    assert {error.path for error in errors} == {"spec.firmware", "spec.online", "spec.image.checksum"}


def test_a_host_whose_stored_version_cannot_be_read_can_be_mended() -> None:
    broken = a_host()
    broken["spec"]["online"] = "yes"
    assert changed(a_host(), broken) == []
    (error,) = changed(broken, a_host())
    assert "this is not a BareMetalHost" in error.message


def test_a_large_inventory_is_no_concern_of_admission() -> None:
    assert created(a_host(status=status("available") | {"hardware": {"hostname": "h1"}})) == []


def test_a_bare_host_and_kinds_without_rules_are_accepted() -> None:
    assert created({"metadata": {"name": "h1", "namespace": "lab"}}) == []
    assert check("metal3.io", "HardwareData", {"spec": {}}, None) == []
    assert check("", "Secret", {}, None) == []


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (FieldError("spec.a", R, None, "say it."), "spec.a: Required value: say it."),
        (FieldError("spec.a", I, "x", "no."), 'spec.a: Invalid value: "x": no.'),
        (FieldError("spec.a", F, "x", "no."), "spec.a: Forbidden: no."),
        (FieldError("spec.a", N, "x", "no."), 'spec.a: Unsupported value: "x": no.'),
        (FieldError("spec.a", D, "x", "no."), 'spec.a: Duplicate value: "x": no.'),
    ],
)
def test_an_error_reads_as_kubernetes_writes_it(error: FieldError, sentence: str) -> None:
    assert str(error) == sentence


@pytest.mark.parametrize("rule", CREATE_RULES, ids=lambda rule: rule.__name__)
def test_every_rule_is_broken_by_one_of_the_cases_above(rule: Rule) -> None:
    documents = [
        a_host(name="a~b"),
        *(a_host(case[1]) for case in REFUSED),
        *(a_host(case[2], annotations=case[1]) for case in REFUSED_ANNOTATIONS),
    ]
    assert any(list(rule(msgspec.convert(document, BareMetalHost))) for document in documents)
