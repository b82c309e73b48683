"""The options of Ironic that differ from its own defaults: group, option, value, and the reason.

Pure. `ironic_conf` writes each reason above its option. What is not here is as Ironic has it; how much work Ironic takes on at
once, and how long it is patient with a BMC, is in `ironic_tuning`, what it can drive in `hardware`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot.services import hardware
from ingot.services.hardware import hardware_options
from ingot.services.ironic_tuning import tuning_options
from ingot.services.option import Option, switch
from ingot.services.ramdisk_arguments import for_every_ramdisk, for_inspection
from ingot.services.settings import IronicSettings


def options(settings: IronicSettings, drives: tuple[str, ...] = hardware.ALL) -> Iterator[Option]:
    """Every option that is set, group by group. `drives`: the hardware types that this machine has the programs for."""
    yield from _identity(settings)
    yield from hardware_options(drives)
    yield from _api(settings)
    yield from _database(settings)
    yield from _agent(settings)
    yield from tuning_options(settings)
    yield from _conductor(settings)
    yield from _deploy(settings)
    yield from _inspection(settings)
    yield from _bmc(settings)
    yield from _boot_files(settings)
    yield from _network_boot(settings)
    yield from _push(settings)


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
    yield Option(group, "debug", switch(settings.debug), "More log; also makes agents talkative.")
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


def _api(settings: IronicSettings) -> Iterator[Option]:
    if settings.api_socket:
        yield Option("api", "unix_socket", str(settings.api_socket), "Only who may open this file can call.")
        yield Option(
            "api", "unix_socket_mode", "600", "The operator and the front server run as the same user."
        )
    else:
        private = settings.reverse_proxy
        yield Option(
            "api",
            "host_ip",
            "127.0.0.1" if private else settings.listen_address,
            "Where the API listens; with a front server nobody else reaches it."
            if private
            else "Where the API listens.",
        )
        yield Option(
            "api", "port", settings.private_port if private else str(settings.listen_port), "Its port."
        )
        yield from _api_tls(settings)
    yield Option("api", "public_endpoint", settings.api_url, "The links in answers.")
    yield Option(
        "api",
        "ramdisk_heartbeat_timeout",
        str(settings.agent_heartbeat_timeout),
        "The agent calls every 0.3 to 0.6 of this many seconds; a call that was lost costs that long.",
    )
    yield Option(
        "service_catalog", "endpoint_override", settings.base_url, "The URL that agents are told to call."
    )


def _api_tls(settings: IronicSettings) -> Iterator[Option]:
    yield Option("api", "enable_ssl_api", "true", "Passwords and agent tokens travel here.")
    yield Option(
        "api",
        "cert_file",
        str(settings.cert_file),
        "A renewed certificate is taken up by the plugin, at once.",
    )
    yield Option("api", "key_file", str(settings.key_file), "The key of that certificate.")
    if settings.version != "38":  # which does not have it, and takes 1.2 anyway
        yield Option(
            "api",
            "server_tls_minimum_version",
            "1.2",
            "Ironic's default of 1.3 shuts out ramdisks with an older OpenSSL.",
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
        "database",
        "sqlite_max_wait_for_retry",
        "60",
        "With many busy hosts a write can lose the race for SQLite for longer than Ironic's 10 s, and what needed it fails.",
    )
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
        group, "automated_clean", switch(settings.automated_clean), "What the last user left is erased."
    )
    yield Option(
        group,
        "file_url_allowed_paths",
        ",".join(dict.fromkeys((str(settings.paths.http_root), *(file for _, file in settings.boot_files)))),
        "A file:// URL reaches these files and no others: what is published, and what hosts boot.",
    )
    yield Option(
        group,
        "verify_step_priority_override",
        "management.clear_job_queue:90",
        "An iDRAC that still has jobs of its last owner refuses new ones.",
    )
    usual = "What a host boots that names no ramdisk of its own."
    for name in ("deploy_kernel", "deploy_ramdisk", "deploy_kernel_by_arch", "deploy_ramdisk_by_arch"):
        if given := getattr(settings, name):
            yield Option(group, name, given, usual)
    for name in ("bootloader", "bootloader_by_arch"):
        if given := getattr(settings, name):
            yield Option(group, name, given, "The EFI partition of ISOs that Ironic builds.")
    yield Option("dhcp", "dhcp_provider", "none", "There is no Neutron.")
    yield Option("nova", "send_power_notifications", "false", "There is no Nova.")
    if settings.oci_auth_file:
        yield Option("oci", "authentication_config", str(settings.oci_auth_file), "Who we are at registries.")


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
    if settings.external_callback:
        yield Option(
            group,
            "external_callback_url",
            settings.external_callback,
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
        switch(settings.fast_track),
        "Whether a booted agent is kept for the next operation.",
    )
    yield Option(
        group, "erase_devices_priority", "0", "Overwriting whole disks takes hours; a user asks for it."
    )
    yield Option(group, "erase_devices_metadata_priority", "10", "Partition tables and signatures always go.")


def _inspection(settings: IronicSettings) -> Iterator[Option]:
    group = "inspector"
    yield Option(
        group, "power_off", switch(not settings.fast_track), "A host that waits to be used stays off."
    )
    yield Option(group, "add_ports", "all", "Every NIC is a port: with virtual media no NIC is the boot NIC.")
    yield Option(group, "keep_ports", "present", "A NIC that was taken out takes its port along.")
    yield Option(
        group,
        "require_managed_boot",
        "false",
        "A ramdisk that was booted in another way, by a person or by DHCP, may report too.",
    )
    yield Option(
        group,
        "extra_kernel_params",
        for_inspection(settings),
        "What the ramdisk looks at; only ramdisks that Ironic puts together are told.",
    )
    if settings.force_dhcp:
        yield Option(
            group, "force_dhcp", "true", "Network data of the host is for its image, not for inspection."
        )
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
    yield Option(group, "use_swift", "false", "There is no Swift: what is published lies in http_root.")
    reason = "The command line of ramdisks that Ironic puts together; never with ipa-insecure."
    yield Option(group, "kernel_append_params", for_every_ramdisk(settings), reason)
    yield Option("pxe", "kernel_append_params", for_every_ramdisk(settings), reason)


def _boot_files(settings: IronicSettings) -> Iterator[Option]:
    reason = "Ironic's default is a system folder."
    yield Option("pxe", "tftp_root", str(settings.paths.tftp_root), reason)
    yield Option("pxe", "images_path", str(settings.paths.images), reason)
    yield Option("pxe", "instance_master_path", str(settings.paths.master_images), reason)
    yield Option("pxe", "tftp_master_path", str(settings.paths.tftp_masters), reason)
    if settings.use_coreos:
        yield Option(
            "pxe",
            "image_cache_size",
            "2048",
            "MiB. Each host has an initramfs of its own: a copy that is kept is seldom asked for again.",
        )


def _network_boot(settings: IronicSettings) -> Iterator[Option]:
    if not settings.network_boot:
        return
    yield Option(
        "pxe",
        "ipxe_config_template",
        str(settings.paths.ipxe_template_file),
        "Scripts in which every path is relative: iPXE loads over plain HTTP what is behind TLS for everybody else.",
    )
    yield Option(
        "pxe",
        "enable_netboot_fallback",
        "true",
        "A machine that boots over the network, although it was told to boot its disk, is sent there.",
    )


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
