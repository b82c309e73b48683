"""The options of Ironic that differ from its own defaults: group, option, value, and the reason.

Pure. The reason is a sentence for whoever opens ironic.conf on a broken machine; `ironic_conf` writes it above its option.
What is not here is as Ironic has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ingot.services.settings import IronicSettings

# What a redfish host can be made of. Every kind needs at least one interface that works, or Ironic's worker does not start;
# so each list is written out. Other hardware types join here.
_INTERFACES: Final = {
    "bios": "redfish,no-bios",
    "boot": "redfish-virtual-media",
    "console": "no-console",
    "deploy": "direct,ramdisk,custom-agent",
    "firmware": "redfish,no-firmware",
    "inspect": "agent,redfish,no-inspect",
    "management": "redfish",
    "network": "noop",
    "power": "redfish",
    "raid": "no-raid,agent,redfish",
    "rescue": "no-rescue",
    "storage": "noop",
    "vendor": "redfish,no-vendor",
}


class Option(NamedTuple):
    """One line of ironic.conf, and why it is there."""

    group: str
    name: str
    value: str
    reason: str


def options(settings: IronicSettings) -> Iterator[Option]:
    """Every option that is set, group by group."""
    yield from _identity(settings)
    yield from _hardware()
    yield from _api(settings)
    yield from _database(settings)
    yield from _agent(settings)
    yield from _conductor(settings)
    yield from _deploy(settings)
    yield from _inspection(settings)
    yield from _bmc(settings)
    yield from _boot_files(settings)
    yield from _push(settings)


def _switch(value: bool) -> str:
    return "true" if value else "false"


def _identity(settings: IronicSettings) -> Iterator[Option]:
    group = "DEFAULT"
    yield Option(group, "my_ip", settings.ip, "The address of this Ironic.")
    yield Option(
        group,
        "host",
        settings.conductor,
        "The name of the conductor, and so of the holder of its locks: the same after a restart, or they are never released.",
    )
    yield Option(
        group, "rpc_transport", "none", "API and conductor are one process; nothing listens for RPC."
    )
    yield Option(group, "auth_strategy", "http_basic", "Nobody but the operator talks to this API.")
    yield Option(
        group,
        "http_basic_auth_user_file",
        str(settings.paths.htpasswd_file),
        "Read again at each request, so a new password works at once.",
    )
    yield Option(
        group, "tempdir", str(settings.paths.temporary), "Config drives are built here; they hold user data."
    )
    yield Option(group, "use_stderr", "true", "Whoever runs this process keeps its log.")
    yield Option(group, "debug", _switch(settings.debug), "More log; also makes agents talkative.")
    yield Option(
        group,
        "notification_level",
        "info",
        "Unset means that no event reaches the plugin; all node events are info or error.",
    )
    yield Option(
        group,
        "webserver_verify_ca",
        str(settings.webserver_ca_file or True),
        "Who is believed when Ironic looks at an image: this CA, or (True) the public ones.",
    )
    yield Option(
        group,
        "webserver_tls_minimum_version",
        "1.2",
        "Ironic's default of 1.3 refuses many an image server that is still well with 1.2.",
    )


def _hardware() -> Iterator[Option]:
    yield Option("DEFAULT", "enabled_hardware_types", "redfish", "What drives hosts today.")
    for kind, names in _INTERFACES.items():
        reason = f"The {kind} interfaces that hosts may use."
        yield Option("DEFAULT", f"enabled_{kind}_interfaces", names, reason)
    yield Option(
        "DEFAULT", "default_deploy_interface", "direct", "The agent downloads and writes the image itself."
    )
    yield Option(
        "DEFAULT",
        "default_inspect_interface",
        "agent",
        "Only the agent sees disks and NICs as the host will.",
    )
    yield Option("DEFAULT", "default_network_interface", "noop", "There is no Neutron.")


def _api(settings: IronicSettings) -> Iterator[Option]:
    yield Option("api", "host_ip", settings.listen_address, "Where the API listens.")
    yield Option("api", "port", str(settings.listen_port), "Its port.")
    yield Option("api", "enable_ssl_api", "true", "Passwords and agent tokens travel here.")
    yield Option(
        "api", "cert_file", str(settings.cert_file), "A renewed certificate is loaded at SIGHUP or restart."
    )
    yield Option("api", "key_file", str(settings.key_file), "The key of that certificate.")
    yield Option(
        "api",
        "server_tls_minimum_version",
        "1.2",
        "Ironic's default of 1.3 shuts out ramdisks with an older OpenSSL.",
    )
    yield Option("api", "public_endpoint", settings.base_url, "The links in answers.")
    yield Option(
        "api",
        "ramdisk_heartbeat_timeout",
        str(settings.agent_heartbeat_timeout),
        "The agent calls every 0.3 to 0.6 of this many seconds; a call that was lost costs that long.",
    )
    yield Option(
        "service_catalog", "endpoint_override", settings.base_url, "The URL that agents are told to call."
    )


def _database(settings: IronicSettings) -> Iterator[Option]:
    yield Option(
        "database",
        "connection",
        settings.database.reveal(),
        "Disposable: every host is registered again when it is lost.",
    )
    yield Option(
        "database",
        "max_retries",
        "2",
        "With Ironic's default each command hangs 100 s on a wrong database; who runs this service tries again anyway.",
    )
    yield Option("database", "retry_interval", "1", "As above.")
    yield Option(
        "oslo_concurrency", "lock_path", str(settings.paths.locks), "Ironic's default is a system folder."
    )


def _agent(settings: IronicSettings) -> Iterator[Option]:
    yield Option("agent", "require_tls", "true", "An agent that offers plain HTTP is refused.")
    yield Option("agent", "tls_minimum_version", "1.2", "As for the API: older ramdisks.")
    yield Option(
        "agent",
        "certificates_path",
        str(settings.paths.agent_certificates),
        "The certificate that each agent sent with its heartbeat, against which it is verified.",
    )
    yield Option(
        "agent",
        "api_ca_file",
        str(settings.ca_file),
        "Given to ramdisks that Ironic builds, to verify this API.",
    )
    yield Option(
        "agent",
        "deploy_logs_local_path",
        str(settings.paths.agent_logs),
        "What a ramdisk logged before it failed.",
    )
    yield Option(
        "agent",
        "image_download_source",
        "http",
        "The agent fetches the image where it is; no copy passes through here.",
    )
    yield Option(
        "agent",
        "post_deploy_get_power_state_retry_interval",
        str(settings.power_off_poll_interval),
        "How often Ironic looks whether the deployed host is off; the default of 5 s costs up to 4 s for each deployment.",
    )
    retries = max(6, 30 // settings.power_off_poll_interval)
    yield Option(
        "agent",
        "post_deploy_get_power_state_retries",
        str(retries),
        "Half a minute in all, as with Ironic's defaults.",
    )


def _conductor(settings: IronicSettings) -> Iterator[Option]:
    group = "conductor"
    yield Option(
        group,
        "force_power_state_during_sync",
        "false",
        "Power is the operator's decision. Forcing it back could switch off a running host after one wrong reading.",
    )
    yield Option(
        group,
        "node_history",
        "true",
        "The only place where the reason of a failed step survives: the power-off after it clears last_error.",
    )
    yield Option(
        group,
        "sync_power_state_interval",
        str(settings.power_sync_interval),
        "Five requests to each BMC in each cycle; this is how a change behind our back is noticed.",
    )
    yield Option(
        group,
        "power_failure_recovery_interval",
        str(settings.power_recovery_interval),
        "How soon a BMC that came back is noticed.",
    )
    yield Option(
        group,
        "power_state_change_timeout",
        "120",
        "Large servers take more than Ironic's minute to switch on.",
    )
    yield Option(
        group,
        "check_provision_state_interval",
        str(settings.provision_check_interval),
        "How often waiting hosts are checked against the time-outs below.",
    )
    for name in ("deploy_callback", "clean_callback", "service_callback", "inspect_wait"):
        reason = "How long a host may go without a word from its agent."
        yield Option(group, f"{name}_timeout", str(settings.agent_callback_timeout), reason)
    yield Option(
        group, "automated_clean", _switch(settings.automated_clean), "What the last user left is erased."
    )
    yield Option(group, "workers_pool_size", "300", "Waiting for power or for an agent holds a worker each.")
    yield Option(
        group, "max_concurrent_deploy", "250", "Most of a deployment is waiting; more is refused, not queued."
    )
    yield Option(
        group,
        "max_concurrent_clean",
        "250",
        "A rack that is registered is cleaned all at once; more is refused, not queued.",
    )
    yield Option(
        group,
        "file_url_allowed_paths",
        str(settings.paths.http_root),
        "A file:// URL reaches these files and no others.",
    )
    yield Option("dhcp", "dhcp_provider", "none", "There is no Neutron.")
    yield Option("nova", "send_power_notifications", "false", "There is no Nova.")


def _deploy(settings: IronicSettings) -> Iterator[Option]:
    group = "deploy"
    yield Option(
        group, "http_root", str(settings.paths.http_root), "Where Ironic puts files that hosts boot from."
    )
    if settings.http_url:
        yield Option(group, "http_url", settings.http_url, "The URL of that folder.")
    if settings.external_http_url:
        yield Option(
            group, "external_http_url", settings.external_http_url, "The same folder, as BMCs reach it."
        )
    if settings.external_callback_url:
        yield Option(
            group,
            "external_callback_url",
            settings.external_callback_url,
            "This API, as agents on virtual media reach it.",
        )
    yield Option(
        group,
        "ramdisk_image_download_source",
        settings.boot_iso_source,
        "http: a boot ISO's own URL goes to the BMC, so nothing is copied through here.",
    )
    yield Option(
        group, "iso_master_path", str(settings.paths.master_isos), "Cache of boot ISOs, when they are copied."
    )
    yield Option(
        group,
        "fast_track",
        _switch(settings.fast_track),
        "Whether a booted agent is kept for the next operation.",
    )
    yield Option(
        group, "erase_devices_priority", "0", "Overwriting whole disks takes hours; a user asks for it."
    )
    yield Option(group, "erase_devices_metadata_priority", "10", "Partition tables and signatures always go.")


def _inspection(settings: IronicSettings) -> Iterator[Option]:
    group = "inspector"
    yield Option(
        group, "power_off", _switch(not settings.fast_track), "A host that waits to be used stays off."
    )
    yield Option(group, "add_ports", "all", "Every NIC is a port: with virtual media no NIC is the boot NIC.")
    yield Option(group, "keep_ports", "present", "A NIC that was taken out takes its port along.")
    yield Option(
        group,
        "hooks",
        "ramdisk-error,validate-interfaces,ports,architecture,parse-lldp",
        "Ironic's own, and what switches say about themselves.",
    )


def _bmc(settings: IronicSettings) -> Iterator[Option]:
    group = "redfish"
    if settings.bmc_ca_file:
        yield Option(
            group, "verify_ca", str(settings.bmc_ca_file), "Who is believed when a BMC shows its certificate."
        )
    yield Option(
        group,
        "connection_attempts",
        "1",
        "The Redfish library tries again by itself; Ironic's five rounds around it hold a worker for minutes on a dead BMC.",
    )
    yield Option(
        group,
        "connect_timeout",
        str(settings.bmc_connect_timeout),
        "A BMC that is there answers within this many seconds.",
    )
    interval = str(settings.bmc_task_interval)
    yield Option(
        group,
        "firmware_update_status_interval",
        interval,
        "Also the pace of settings applied without a ramdisk.",
    )
    yield Option(group, "raid_config_status_interval", interval, "The pace of looking after a RAID job.")


def _boot_files(settings: IronicSettings) -> Iterator[Option]:
    reason = "Ironic's default is a system folder."
    yield Option("pxe", "tftp_root", str(settings.paths.tftp_root), reason)
    yield Option("pxe", "images_path", str(settings.paths.images), reason)
    yield Option("pxe", "instance_master_path", str(settings.paths.master_images), reason)
    yield Option("pxe", "tftp_master_path", str(settings.paths.tftp_masters), reason)


def _push(settings: IronicSettings) -> Iterator[Option]:
    group = "oslo_messaging_notifications"
    yield Option(
        group,
        "driver",
        "ingot",
        "Loads the plugin ingot-ironic: push to the operator, and patches that keep Ironic quick.",
    )
    yield Option(group, "transport_url", "fake://", "There is no message bus; the plugin needs none.")
    if settings.push_url:
        yield Option("ingot", "push_url", settings.push_url, "The operator's receiver.")
        yield Option(
            "ingot", "push_ca_file", str(settings.push_ca_file), "The CA that receiver is verified against."
        )
        yield Option(
            "ingot", "push_token_file", str(settings.push_token_file), "The token that receiver wants."
        )
