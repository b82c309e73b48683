"""ironic.conf: the text as it is, for a reader; and what must hold for any settings."""

from __future__ import annotations

import configparser
from dataclasses import replace
from pathlib import Path

from ingot.services.hardware import TYPES
from ingot.services.ironic_conf import render
from ingot.services.ironic_options import options
from ingot.services.settings import IronicPaths, IronicSettings
from ingot.trust import Secret

GOLDEN = Path(__file__).parent / "ironic.conf"

SETTINGS = IronicSettings(
    paths=IronicPaths.below(Path("/state/ironic")),
    cert_file=Path("/state/ironic/tls/ironic.crt"),
    key_file=Path("/state/ironic/tls/ironic.key"),
    ca_file=Path("/state/ca/ca.crt"),
    username="ingot",
    password_file=Path("/state/ironic/auth/password"),
    push_url="https://127.0.0.1:7443/v1/push",
    push_ca_file=Path("/state/ca/ca.crt"),
    push_token_file=Path("/state/operator/push-token"),
    bmc_ca_file=Path("/state/ca/ca.crt"),
    webserver_ca_file=Path("/state/ca/ca.crt"),
    agent_heartbeat_timeout=30,
)


def parsed(settings: IronicSettings) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, default_section="none")
    parser.read_string(render(settings))
    return parser


def test_the_file_is_what_it_was() -> None:
    """After a wanted change: write `render(SETTINGS)` to tests/unit/services/ironic.conf and read the difference."""
    assert render(SETTINGS) == GOLDEN.read_text()


def test_each_group_stands_once_and_each_option_once() -> None:
    parsed(SETTINGS)  # configparser refuses both kinds of repetition


def test_each_option_has_a_reason_written_as_a_sentence() -> None:
    for option in options(SETTINGS):
        assert option.reason.endswith("."), option.name


def test_a_dollar_is_not_a_reference() -> None:
    settings = replace(SETTINGS, database_url=Secret("mysql+pymysql://ironic:p$ss@db/ironic"))
    assert parsed(settings)["database"]["connection"] == "mysql+pymysql://ironic:p$$ss@db/ironic"


def test_without_push_the_plugin_is_still_loaded_for_its_patches() -> None:
    settings = replace(SETTINGS, push_url=None, push_ca_file=None, push_token_file=None)
    conf = parsed(settings)
    assert conf["oslo_messaging_notifications"]["driver"] == "ingot"
    assert "ingot" not in conf


def test_power_is_never_forced_back_and_history_is_kept() -> None:
    conductor = parsed(SETTINGS)["conductor"]
    assert conductor["force_power_state_during_sync"] == "false"
    assert conductor["node_history"] == "true"


def test_a_clean_wipes_metadata_and_no_whole_disk_unasked() -> None:
    deploy = parsed(SETTINGS)["deploy"]
    assert (deploy["erase_devices_priority"], deploy["erase_devices_metadata_priority"]) == ("0", "10")


def test_every_path_that_ironic_writes_is_below_the_state_folder() -> None:
    for option in options(SETTINGS):
        if option.value.startswith("/"):
            assert option.value.startswith("/state/"), option.name


def test_a_host_that_waits_for_its_next_use_stays_on_with_fast_track_only() -> None:
    assert parsed(SETTINGS)["inspector"]["power_off"] == "true"
    assert parsed(replace(SETTINGS, fast_track=True))["inspector"]["power_off"] == "false"


def test_behind_a_front_server_nobody_else_reaches_the_api() -> None:
    behind = replace(SETTINGS, ip="10.0.0.1", reverse_proxy=True, private_port="6388")
    conf = parsed(behind)
    assert (conf["api"]["host_ip"], conf["api"]["port"]) == ("127.0.0.1", "6388")
    assert conf["api"]["enable_ssl_api"] == "true"
    assert conf["api"]["public_endpoint"] == "https://127.0.0.1:6388"
    assert conf["service_catalog"]["endpoint_override"] == "https://10.0.0.1:6385"


def test_on_a_socket_there_is_no_port() -> None:
    api = parsed(replace(SETTINGS, reverse_proxy=True))["api"]
    assert (api["unix_socket"], api["unix_socket_mode"]) == ("/state/ironic/ironic.sock", "600")
    assert not {"host_ip", "port", "enable_ssl_api"} & set(api)


def test_the_ramdisk_always_verifies_whom_it_calls() -> None:
    conf = parsed(
        replace(SETTINGS, kernel_params="console=ttyS0", ramdisk_ssh_key="ssh-ed25519 AAAA me@there")
    )
    assert conf["agent"]["api_ca_file"] == "/state/ca/ca.crt"
    for group in ("pxe", "redfish"):
        assert conf[group]["kernel_append_params"] == (
            'nofb nomodeset vga=normal sshkey="ssh-ed25519 AAAA me@there" console=ttyS0'
        )
    assert "insecure" not in render(SETTINGS).replace("never with ipa-insecure", "")


def test_a_coreos_ramdisk_is_told_what_coreos_is_told_and_its_image_stays_where_it_is() -> None:
    conf = parsed(
        replace(
            SETTINGS,
            use_coreos=True,
            kernel_params="console=ttyS0",
            fips_ramdisk=True,
            ramdisk_ssh_key="ssh-ed25519 AAAA me@there",
        )
    )
    for group in ("pxe", "redfish"):
        assert conf[group]["kernel_append_params"] == "fips=1 console=ttyS0"
    assert conf["deploy"]["ramdisk_image_download_source"] == "http"
    assert conf["pxe"]["image_cache_size"] == "2048"


def test_machines_that_boot_over_the_network_get_our_scripts_and_are_sent_to_their_disk_afterwards() -> None:
    pxe = parsed(replace(SETTINGS, reverse_proxy=True, network_boot=True))["pxe"]
    assert pxe["ipxe_config_template"] == "/state/ironic/ipxe_config.template"
    assert pxe["enable_netboot_fallback"] == "true"
    assert not {"ipxe_config_template", "enable_netboot_fallback"} & set(parsed(SETTINGS)["pxe"])


def test_what_a_ramdisk_reports_can_be_chosen() -> None:
    chosen = replace(SETTINGS, inspection_collectors="default", vlan_interfaces="eno1", collect_lldp=False)
    assert parsed(chosen)["inspector"]["extra_kernel_params"] == (
        "ipa-inspection-collectors=default ipa-enable-vlan-interfaces=eno1 ipa-inspection-dhcp-all-interfaces=1 "
        "ipa-collect-lldp=0"
    )


def test_default_ramdisks_and_boot_loader_are_passed_on() -> None:
    chosen = replace(
        SETTINGS,
        deploy_kernel="http://images/kernel",
        deploy_ramdisk="http://images/initramfs",
        bootloader="file:///state/ironic/html/esp.img",
    )
    conductor = parsed(chosen)["conductor"]
    assert (conductor["deploy_kernel"], conductor["deploy_ramdisk"], conductor["bootloader"]) == (
        "http://images/kernel",
        "http://images/initramfs",
        "file:///state/ironic/html/esp.img",
    )
    assert "deploy_kernel" not in parsed(SETTINGS)["conductor"]


def test_of_file_urls_exactly_what_hosts_boot_is_allowed_beside_what_is_published() -> None:
    assert parsed(SETTINGS)["conductor"]["file_url_allowed_paths"] == "/state/ironic/html"
    chosen = replace(
        SETTINGS,
        deploy_kernel="file:///images/kernel",
        deploy_ramdisk="https://images/initramfs",
        deploy_kernel_by_arch="aarch64:file:///images/kernel-a,x86_64:file:///images/kernel",
        deploy_ramdisk_by_arch="aarch64:file:///images/ramdisk-a,x86_64:http://images/initramfs",
        bootloader="file:///templates/uefi_esp_x86_64.img",
        bootloader_by_arch="aarch64:file:///templates/uefi_esp_aarch64.img",
    )
    conductor = parsed(chosen)["conductor"]
    assert conductor["file_url_allowed_paths"].split(",") == [
        "/state/ironic/html",
        "/images/kernel",
        "/images/kernel-a",
        "/images/ramdisk-a",
        "/templates/uefi_esp_x86_64.img",
        "/templates/uefi_esp_aarch64.img",
    ]
    assert conductor["bootloader_by_arch"] == "aarch64:file:///templates/uefi_esp_aarch64.img"


def test_a_type_without_its_program_is_left_out_with_all_that_needs_it() -> None:
    text = render(SETTINGS, ("redfish", "idrac"))
    assert "enabled_hardware_types = redfish,idrac\n" in text
    assert "Without ipmi: the program ipmitool is not on PATH." in text
    assert not [line for line in text.splitlines() if "ipmitool" in line and not line.startswith("#")]


def test_every_default_interface_is_usable_by_every_type() -> None:
    conf = parsed(SETTINGS)["DEFAULT"]
    for kind in {kind for hardware in TYPES for kind in hardware.interfaces}:
        usual = conf.get(f"default_{kind}_interface")
        for hardware in TYPES:
            assert hardware.interfaces[kind], f"{hardware.name} has no {kind} interface"
            assert usual is None or usual in hardware.interfaces[kind]


def test_looking_for_power_off_lasts_half_a_minute_at_any_pace() -> None:
    for pace in (1, 2, 5):
        agent = parsed(replace(SETTINGS, power_off_poll_interval=pace))["agent"]
        retries = int(agent["post_deploy_get_power_state_retries"])
        assert retries * pace == 30
