"""The input firewall: what a site allows, and that nothing gets past it which means more than it says."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.api.baremetalhost import (
    RAID,
    CustomDeploy,
    HardwareRAIDVolume,
    Image,
    RootDeviceHints,
    SoftwareRAIDVolume,
)
from ingot.api.hostfirmwarecomponents import FirmwareUpdate
from ingot.api.inputs.documents import MOST_VALUES, TooMuch, is_within_bounds, load
from ingot.api.inputs.network_data import UnreadableNetworkData
from ingot.api.inputs.weaknesses import Weakness
from ingot.api.meta import Key
from ingot.provisioner import (
    Access,
    ConfigDrive,
    Credentials,
    Deployment,
    Failed,
    FirmwareChange,
    HostRef,
    OwnRamdisk,
    Preparation,
    Subscription,
)
from ingot.provisioner.ironic import IronicAccess, Ramdisk, SettingsError
from ingot.provisioner.ironic.firewall import Firewall, Policy
from ingot.provisioner.ironic.instance import instance_differences
from ingot.provisioner.ironic.model import FullNode
from ingot.provisioner.ironic.network_data import parse
from ingot.provisioner.ironic.record import Unsupported, record_for
from ingot.provisioner.ironic.settings import PersistentBoot
from ingot.trust import Secret

HOST = HostRef(Key("rack", "h1"), "uid")
DIGEST = "ab" * 32
WALL = Firewall(Policy())


def image(**fields: Any) -> Image:
    return Image(
        **{"url": "https://x/y", "checksum": DIGEST, "checksum_type": "sha256", "format": "raw"} | fields
    )


# What a site allows


@pytest.mark.parametrize(
    ("weak", "weakness"),
    [
        (image(checksum="ab" * 16, checksum_type="md5"), Weakness.MD5),
        (image(checksum="https://x/sums", checksum_type=None), Weakness.CHECKSUM_URL),
        (image(url="https://u:hush@x/y"), Weakness.URL_CREDENTIALS),
        (image(url="http://x/y.iso", checksum="", format="live-iso"), Weakness.UNVERIFIED),
    ],
)
def test_what_is_weak_passes_unless_the_site_forbids_it(weak, weakness):
    assert WALL.image(weak, None) is None
    others = Policy(forbidden=frozenset(Weakness) - {weakness})
    assert Firewall(others).image(weak, None) is None
    refused = Firewall(Policy(forbidden=frozenset({weakness}))).image(weak, None)
    assert refused is not None
    assert f"(INGOT_FORBID forbids {weakness})" in refused.message
    assert "hush" not in refused.message


@pytest.mark.parametrize(
    ("host", "called"),
    [
        ("169.254.169.254", "a link-local address"),
        ("[fe80::1]", "a link-local address"),
        ("[::ffff:169.254.169.254]", "a link-local address"),
        ("[::169.254.169.254]", "a link-local address"),
        ("[::ffff:0:169.254.169.254]", "a link-local address"),
        ("[64:ff9b::a9fe:a9fe]", "a link-local address"),
        ("[64:ff9b:1::169.254.169.254]", "a link-local address"),
        ("[2002:a9fe:a9fe::]", "a link-local address"),
        ("[2002:a9fe:a9fe::1]", "a link-local address"),
        ("[2001:0:7f00:1:0:ffff:5601:5601]", "a link-local address"),
        ("[FD00:EC2::254]", "where a cloud tells its machines about themselves"),
        ("[fd20:ce::254]", "where a cloud tells its machines about themselves"),
        ("100.100.100.200", "where a cloud tells its machines about themselves"),
        ("[::ffff:100.100.100.200]", "where a cloud tells its machines about themselves"),
        ("0.0.0.0", "no address of anybody"),
        ("[::]", "no address of anybody"),
        ("[::ffff:0.0.0.0]", "no address of anybody"),
    ],
)
def test_nothing_is_fetched_where_whoever_asks_is_trusted_unless_the_site_names_it(host, called):
    for answer in (
        WALL.image(image(url=f"http://{host}/latest/meta-data"), None),
        WALL.image(image(checksum=f"http://{host}/latest", checksum_type=None), None),
        WALL.data_image(f"http://{host}/latest"),
    ):
        assert answer is not None
        plain = host.strip("[]").lower()
        assert answer.message.endswith(
            f"nothing is fetched from {plain}, which is {called}, unless INGOT_IMAGE_HOSTS names it"
        )
    named = Firewall(Policy(image_hosts=(host.strip("[]").lower(),)))
    assert named.image(image(url=f"http://{host}/x"), None) is None


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.1",
        "127.0.0.1",
        "[::1]",
        "[fd00::1]",
        "[fd00:ec2::1]",
        "[64:ff9b::10.0.0.1]",
        "[2002:a00:1::1]",
        "[2001:db8::a9fe:a9fe]",
        "images.example.com",
    ],
)
def test_a_site_that_names_no_hosts_fetches_from_all_others(host):
    assert WALL.image(image(url=f"http://{host}/x"), None) is None


def test_a_bmc_may_post_its_events_to_the_server_it_is_in():
    assert WALL.subscription(Subscription(destination="https://169.254.1.2/events")) is None


@given(st.ip_addresses(v=4, network="169.254.0.0/16"))
def test_no_way_to_write_a_link_local_address_as_another_passes(hidden):
    number, flipped = int(hidden), int(hidden) ^ 0xFFFFFFFF
    for prefix in ("::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::", "64:ff9b:1:a::"):
        assert not Policy().allows(str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) + number)))
    assert not Policy().allows(str(ipaddress.IPv6Address((0x2002 << 112) + (number << 80) + 1)))
    assert not Policy().allows(str(ipaddress.IPv6Address((0x20010000 << 96) + flipped)))


@pytest.mark.parametrize(
    ("entries", "host", "allowed"),
    [
        ("a.example.com", "A.Example.com.", True),
        (".example.com", "a.example.com", True),
        (".example.com", "example.com", False),
        (".example.com", "aexample.com", False),
        ("10.0.0.0/8, fd00::/8", "10.1.2.3", True),
        ("10.0.0.0/8,fd00::/8", "fd00::1", True),
        ("10.0.0.0/8", "::ffff:10.0.0.1", True),
        ("10.0.0.0/8", "10.example.com", False),
        ("10.0.0.1", "10.0.0.1", True),
    ],
)
def test_a_site_names_hosts_domains_and_networks(entries, host, allowed):
    assert Policy.from_environment({"INGOT_IMAGE_HOSTS": entries}).allows(host) is allowed


ENDPOINT = {"IRONIC_ENDPOINT": "https://127.0.0.1:6385", "METAL3_AUTH_ROOT_DIR": "/nowhere"}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("INGOT_IMAGE_HOSTS", "https://x/", "expected a network such as"),
        ("INGOT_IMAGE_HOSTS", "a b", "expected a host, .domain or network"),
        ("INGOT_FORBID", "sha1", "expected some of md5, checksum-url, url-credentials, unverified"),
        ("PROVISIONING_NETWORK_DISABLED", "perhaps", "expected true or false"),
        ("IRONIC_EXTERNAL_URL_V6", "fd00::1", "expected a URL with http or https"),
        ("DEPLOY_ISO_URL", "ftp://x", "expected a URL with http, https or file"),
        ("DEPLOY_ISO_URL_AARCH64", "ftp://x", "DEPLOY_ISO_URL_AARCH64 is 'ftp://x'"),
        ("DEPLOY_ISO_URL_BY_ARCH", "https://x", "expected a URL with"),
        ("DEPLOY_ISO_URL_BY_ARCH", "aarch64", "expected ARCHITECTURE:URL"),
        ("DEPLOY_KERNEL_URL", "https://x", "DEPLOY_KERNEL_URL and DEPLOY_RAMDISK_URL belong together"),
        (
            "DEPLOY_KERNEL_URL_AARCH64",
            "https://x",
            "DEPLOY_KERNEL_URL_AARCH64 and DEPLOY_RAMDISK_URL_AARCH64",
        ),
    ],
)
def test_a_wrong_setting_is_told_by_its_name(name, value, words):
    with pytest.raises(SettingsError, match=re.escape(words)) as caught:
        IronicAccess.from_environment({**ENDPOINT, name: value})
    assert name in str(caught.value)


def test_what_holds_for_all_hosts_is_read_from_the_environment():
    where = IronicAccess.from_environment(
        {
            **ENDPOINT,
            "PROVISIONING_NETWORK_DISABLED": "true",
            "IRONIC_EXTERNAL_URL_V6": "https://[fd00::1]:6180",
            "INGOT_FORBID": "md5, unverified",
        }
    )
    assert not where.site.provisioning_network
    assert where.site.external_url_v6 == "https://[fd00::1]:6180"
    assert where.site.policy.forbidden == {Weakness.MD5, Weakness.UNVERIFIED}


def test_machines_boot_the_ramdisk_of_their_architecture():
    ramdisk = Ramdisk.from_environment(
        {
            "DEPLOY_ISO_URL": "https://x/usual.iso",
            "DEPLOY_ISO_URL_BY_ARCH": "aarch64:https://x/listed.iso, ppc64le:https://x/ppc.iso",
            "DEPLOY_ISO_URL_AARCH64": "https://x/arm.iso",
            "DEPLOY_KERNEL_URL": "https://x/k",
            "DEPLOY_RAMDISK_URL": "https://x/i",
            "DEPLOY_KERNEL_URL_AARCH64": "https://x/k-arm",
            "DEPLOY_RAMDISK_URL_BY_ARCH": "aarch64:https://x/i-arm",
        }
    )
    found = {
        one: (chosen.iso, chosen.kernel, chosen.initramfs)
        for one in ("", "x86_64", "aarch64", "ppc64le")
        for chosen in [ramdisk.for_architecture(one)]
    }
    usual = ("https://x/usual.iso", "https://x/k", "https://x/i")
    assert found == {
        "": usual,
        "x86_64": usual,
        "aarch64": ("https://x/arm.iso", "https://x/k-arm", "https://x/i-arm"),
        "ppc64le": ("https://x/ppc.iso", "https://x/k", "https://x/i"),
    }


# What passes and what does not


def test_a_stricter_rule_is_no_reason_to_let_go_of_a_machine_that_runs():
    wall = Firewall(Policy(image_hosts=("images.example.com",), forbidden=frozenset(Weakness)))
    weak = image(url="http://elsewhere/x", checksum="ab" * 16, checksum_type="md5")
    assert wall.image(weak, None) is not None
    assert wall.installed(weak) is None
    assert wall.installed(None) is None
    assert wall.installed(image(url="file:///etc/shadow")) is not None


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda: _hints(serial_number="a\nb"), r"spec.rootDeviceHints.serialNumber is 'a\nb'"),
        (lambda: _hints(model="<or> a"), "'<or>' is an operator of Ironic's"),
        (lambda: _hints(vendor="a s== b"), "'s==' is an operator"),
        (lambda: _hints(device_name="/dev/sd a"), "write /dev/NAME"),
        (
            lambda: _volumes(hardware_raid_volumes=[HardwareRAIDVolume(level="1", name="a\x1b[2J")]),
            "hardwareRAIDVolumes",
        ),
        (
            lambda: _volumes(
                software_raid_volumes=[
                    SoftwareRAIDVolume(level="1", physical_disks=[RootDeviceHints(wwn="\x00")])
                ]
            ),
            "softwareRAIDVolumes.physicalDisks.wwn",
        ),
        (lambda: _firmware(settings={"a\nb": "c"}), "spec.settings of the HostFirmwareSettings is"),
        (
            lambda: _firmware(settings={"a": "hush\n"}),
            "spec.settings[a] of the HostFirmwareSettings: expected",
        ),
        (
            lambda: _firmware(updates=(FirmwareUpdate(component="cpld;x", url="https://x"),)),
            "expected bios, bmc, or nic:NAME",
        ),
        (lambda: WALL.access(HostRef(Key("rack", "../h1"), "u"), _access()), "metadata.name is '../h1'"),
        (lambda: WALL.access(HOST, _access(boot_mac="52:54:00")), "spec.bootMACAddress is '52:54:00'"),
        (lambda: WALL.access(HOST, _access(architecture="../x86")), "spec.architecture is '../x86'"),
        (
            lambda: WALL.subscription(Subscription(destination="gopher://x/y")),
            "spec.destination is 'gopher://x/y'",
        ),
        (
            lambda: WALL.subscription(Subscription(destination="https://x/y", context="a\rb")),
            "spec.context is",
        ),
        (
            lambda: WALL.subscription(
                Subscription(destination="https://x/y", headers={"a b": Secret("hush")})
            ),
            "not the name of an HTTP header",
        ),
    ],
)
def test_a_refusal_names_the_field_what_was_found_and_what_is_expected(answer, words):
    refused = answer()
    assert isinstance(refused, Failed)
    assert words in refused.message
    assert refused.message.isprintable()
    assert "hush" not in refused.message


def _hints(**fields: Any) -> Failed | None:
    order = Deployment(image=image(), config_drive=ConfigDrive(), root_device=RootDeviceHints(**fields))
    return WALL.deployment(order)


def _volumes(**fields: Any) -> Failed | None:
    return WALL.preparation(Preparation(name="n", raid=RAID(**fields)))


def _firmware(**fields: Any) -> Failed | None:
    return WALL.preparation(Preparation(name="n", firmware=FirmwareChange(**fields)))


def _access(**fields: Any) -> Access:
    return Access(address="redfish-virtualmedia://10.0.0.7/x", **{"credentials": None} | fields)


def test_yaml_that_means_a_billion_values_is_refused_and_not_written_out():
    with pytest.raises(UnreadableNetworkData, match="more values than anybody could have meant"):
        parse(Secret(_a_billion_values()))
    with pytest.raises(UnreadableNetworkData, match="too large"):
        parse(Secret("#" * ((1 << 20) + 1)))
    assert is_within_bounds({"links": [{"id": "a"}] * 100})
    assert not is_within_bounds([0] * MOST_VALUES)


def test_meta_data_that_mean_a_billion_values_are_refused_and_not_written_out():
    given = load(_a_billion_values())
    assert isinstance(given, dict)
    refused = WALL.deployment(Deployment(image=image(), config_drive=ConfigDrive(meta_data=given)))
    assert refused is not None
    assert "spec.metaData: it means more values than anybody could have meant" in refused.message
    assert WALL.deployment(Deployment(image=image(), config_drive=ConfigDrive(meta_data={"a": 1}))) is None


@pytest.mark.parametrize("opening", ["[", "{a: "])
def test_a_document_that_is_nested_without_end_is_refused_before_it_is_read(opening):
    deep = f"links: {opening * 200_000}"
    with pytest.raises(TooMuch, match="nested more than 100 deep"):
        load(deep)
    with pytest.raises(UnreadableNetworkData, match="nobody could have meant that"):
        parse(Secret(deep))
    assert load("a: " + "[" * 90 + "]" * 90)


def _a_billion_values() -> str:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for last, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{last}'] * 10)}]")
    return "\n".join(lines)


# Whatever is asked for

_WORDS = st.sampled_from(
    [
        "sda",
        "/dev/sda",
        "install_coreos",
        "aarch64",
        "52:54:00:12:34:56",
        "ip=dhcp",
        "https://x/y",
        "--x",
        "; reboot",
        "$(x)",
    ]
)
_TEXT = st.text(max_size=12) | _WORDS | st.tuples(_WORDS, st.text(max_size=3)).map("".join)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SHELL = re.compile(r"[$;&|<>`\\#{}']")


@given(
    address=st.sampled_from(
        ["redfish://h/", "redfish-virtualmedia://h/", "ipmi://h?privilegelevel=", "idrac-redfish://h"]
    ),
    more=_TEXT,
    username=_TEXT,
    architecture=_TEXT,
    mac=_TEXT,
    kernel=_TEXT,
    arguments=_TEXT,
)
def test_nothing_that_a_record_holds_is_more_than_one_word(
    address, more, username, architecture, mac, kernel, arguments
):
    wanted = Access(
        address=address + more,
        credentials=Credentials(username=username, password=Secret(more)),
        boot_mac=mac,
        architecture=architecture,
        ramdisk=OwnRamdisk(url="https://x/i", format="initrd", kernel_url=kernel, kernel_params=arguments),
    )
    if WALL.access(HOST, wanted) is not None:
        return
    try:
        body = record_for(HOST, wanted, Ramdisk(kernel="https://x/k", initramfs="https://x/i")).to_create()
    except Unsupported:
        return
    assert not [one for one in texts(body) if _CONTROL.search(one)]
    info = body["driver_info"]
    assert isinstance(info, dict)
    told = str(info.get("kernel_append_params", "")).removeprefix("%default% ")
    assert not _SHELL.search(told)
    assert not [word for word in told.split() if word.startswith("-")]
    for key in ("deploy_kernel", "deploy_ramdisk"):
        assert str(info[key]).startswith(("http://", "https://"))
    assert ".." not in str(info.get("redfish_system_id", "")).split("/")


@given(url=_TEXT, checksum=_TEXT, method=_TEXT, device=_TEXT, serial=_TEXT, pull_secret=_TEXT)
def test_nothing_that_an_instance_holds_is_more_than_one_word(
    url, checksum, method, device, serial, pull_secret
):
    wanted = Deployment(
        image=Image(url=url, checksum=checksum) if url else None,
        custom_deploy=CustomDeploy(method=method) if method else None,
        config_drive=ConfigDrive(),
        root_device=RootDeviceHints(device_name=device, serial_number=serial),
        pull_secret=Secret(pull_secret),
    )
    if WALL.deployment(wanted) is not None:
        return
    patch = instance_differences(FullNode(uuid="u"), HOST, wanted, PersistentBoot())
    values = [text for one in patch for text in texts(one.value)]
    assert not [one for one in values if _CONTROL.search(one)]
    told = {one.path: one.value for one in patch}
    source = told.get("/instance_info/image_source", "https://x")
    assert str(source).startswith(("http://", "https://", "oci://"))
    root = told.get("/instance_info/root_device", {})
    assert isinstance(root, dict)
    name = str(root.get("name", "s== /dev/x")).removeprefix("s== ")
    assert re.fullmatch(r"/dev/[^/\s]+", name)


def texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for one in pair for text in texts(one)]
    return [text for one in value for text in texts(one)] if isinstance(value, list) else []
