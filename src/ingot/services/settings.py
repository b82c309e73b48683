"""The settings of the Ironic service and of its front server: one typed value, to and from the environment.

Owns the names of the environment variables. Where ironic-image has a name for something, it is that name; what it has no name
for starts with INGOT_. `from_environment` and `to_environment` are each other's inverse, so whoever starts the service builds
the value, and the service reads the same value. A value that is wrong cannot be built: the error names the variable, what was
found and what is expected (`settings_rules`). What ironic-image knows and we do not take is in `ironic_image`.

Nothing is read from disk here. Passwords and tokens are named by file; where ironic-image has a value instead (a database
password, the lines of an htpasswd file), it is a `Secret`.
Anything Ironic can be told beyond this goes by `OS_<GROUP>__<OPTION>`, which Ironic itself reads and prefers to its file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import quote

from ingot.services import ironic_image, settings_rules
from ingot.services.codec import Variable, defaults, from_text, to_text, variables
from ingot.services.errors import SettingsError
from ingot.services.ipxe import BOOT_SCRIPT
from ingot.trust import Secret

_STATE: Final = "INGOT_IRONIC_STATE"
_FILE: Final = "file:"


@dataclass(frozen=True, kw_only=True, slots=True)
class IronicPaths:
    """Every path the service writes. `below` derives them all from one folder; each can be set apart."""

    state: Annotated[Path, Variable(_STATE)]
    config_file: Annotated[Path, Variable("INGOT_IRONIC_CONFIG_FILE")]
    htpasswd_file: Annotated[Path, Variable("INGOT_IRONIC_HTPASSWD_FILE")]
    database_file: Annotated[Path, Variable("INGOT_IRONIC_DATABASE_FILE")]
    lock_file: Annotated[Path, Variable("INGOT_IRONIC_LOCK_FILE")]
    http_root: Annotated[Path, Variable("INGOT_IRONIC_HTTP_ROOT")]
    tftp_root: Annotated[Path, Variable("INGOT_IRONIC_TFTP_ROOT")]
    images: Annotated[Path, Variable("INGOT_IRONIC_IMAGES")]
    master_images: Annotated[Path, Variable("INGOT_IRONIC_MASTER_IMAGES")]
    master_isos: Annotated[Path, Variable("INGOT_IRONIC_MASTER_ISOS")]
    tftp_masters: Annotated[Path, Variable("INGOT_IRONIC_TFTP_MASTERS")]
    agent_certificates: Annotated[Path, Variable("INGOT_IRONIC_AGENT_CERTIFICATES")]
    agent_logs: Annotated[Path, Variable("INGOT_IRONIC_AGENT_LOGS")]
    temporary: Annotated[Path, Variable("INGOT_IRONIC_TEMPORARY")]
    locks: Annotated[Path, Variable("INGOT_IRONIC_LOCKS")]
    socket_file: Annotated[Path, Variable("INGOT_IRONIC_SOCKET_FILE")]
    files_key_file: Annotated[Path, Variable("INGOT_IRONIC_FILES_KEY_FILE")]
    programs: Annotated[Path, Variable("INGOT_IRONIC_PROGRAMS")]
    ipxe_template_file: Annotated[Path, Variable("INGOT_IRONIC_IPXE_TEMPLATE_FILE")]

    def __post_init__(self) -> None:
        for name, path in ((f.name, getattr(self, f.name)) for f in dataclasses.fields(self)):
            if not path.is_absolute():
                raise SettingsError(f"Ironic's path {name} is {str(path)!r}; it must be absolute.")
            # The one ends the file name in a database URL, the other an item of a list in ironic.conf.
            if set("?,") & set(str(path)):
                raise SettingsError(
                    f"Ironic's path {name} is {str(path)!r}; it must have no '?' and no comma."
                )

    @classmethod
    def below(cls, state: Path) -> IronicPaths:
        """The usual layout in one folder."""
        return cls(
            state=state,
            config_file=state / "ironic.conf",
            htpasswd_file=state / "htpasswd",
            database_file=state / "ironic.db",
            lock_file=state / "ironic.lock",
            http_root=state / "html",
            tftp_root=state / "tftp",
            images=state / "html" / "tmp",
            master_images=state / "html" / "master_images",
            master_isos=state / "html" / "master_iso_images",
            tftp_masters=state / "tftp" / "master_images",
            agent_certificates=state / "agent-certificates",
            agent_logs=state / "agent-logs",
            temporary=state / "tmp",
            locks=state / "locks",
            socket_file=state / "ironic.sock",
            files_key_file=state / "files-key",
            programs=state / "bin",
            ipxe_template_file=state / "ipxe_config.template",
        )

    @property
    def folders(self) -> tuple[Path, ...]:
        """What has to exist before Ironic starts."""
        places = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return tuple(
            dict.fromkeys(
                place.parent if name.endswith("_file") else place
                for name, place in sorted(places.items(), key=lambda item: item[0].endswith("_file"))
            )
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class IronicSettings:
    """All that decides how Ironic runs.

    `ip` is the address of this Ironic and the name of its conductor unless `conductor_host` says otherwise; that name must stay
    the same across restarts, because it is how a conductor finds its own locks again. Ironic listens on `ip` (every address
    with `listen_all`) and `listen_port`, unless there is a front server (`reverse_proxy`): then that one listens there, and
    Ironic on loopback or a Unix socket (`private_port`). With `network_boot` the front server also listens on `boot_port`,
    without TLS, for iPXE. `api_url` is where the operator calls, `base_url` where agents do, and
    `external_callback_url` replaces that for agents that come from elsewhere. Every interval is in whole seconds.
    """

    paths: IronicPaths
    cert_file: Annotated[Path, Variable("IRONIC_CERT_FILE")]
    key_file: Annotated[Path, Variable("IRONIC_KEY_FILE")]
    ca_file: Annotated[Path, Variable("IRONIC_CACERT_FILE")]

    # Who may call: a name and a password, or lines of an htpasswd file.
    username: Annotated[str | None, Variable("INGOT_IRONIC_USERNAME")] = None
    password_file: Annotated[Path | None, Variable("INGOT_IRONIC_PASSWORD_FILE")] = None
    htpasswd: Annotated[Secret | None, Variable("IRONIC_HTPASSWD")] = None

    version: Annotated[str, Variable("INGOT_IRONIC_VERSION")] = "39"
    ip: Annotated[str, Variable("IRONIC_IP")] = "127.0.0.1"
    listen_port: Annotated[int, Variable("IRONIC_LISTEN_PORT")] = 6385
    access_port: Annotated[int | None, Variable("IRONIC_ACCESS_PORT")] = None
    listen_all: Annotated[bool, Variable("LISTEN_ALL_INTERFACES")] = False
    reverse_proxy: Annotated[bool, Variable("IRONIC_REVERSE_PROXY_SETUP")] = False
    private_port: Annotated[str, Variable("IRONIC_PRIVATE_PORT")] = "unix"
    network_boot: Annotated[bool, Variable("INGOT_NETWORK_BOOT")] = False
    boot_port: Annotated[int, Variable("HTTP_PORT")] = 6180
    conductor_host: Annotated[str | None, Variable("IRONIC_CONDUCTOR_HOST")] = None
    public_url: Annotated[str | None, Variable("IRONIC_BASE_URL")] = None
    external_ip: Annotated[str | None, Variable("IRONIC_EXTERNAL_IP")] = None
    external_callback_url: Annotated[str | None, Variable("IRONIC_EXTERNAL_CALLBACK_URL")] = None
    http_url: Annotated[str | None, Variable("IRONIC_HTTP_URL")] = None
    external_http_url: Annotated[str | None, Variable("IRONIC_EXTERNAL_HTTP_URL")] = None
    bmc_ca_file: Annotated[Path | None, Variable("BMC_CACERT_FILE")] = None
    webserver_ca_file: Annotated[Path | None, Variable("WEBSERVER_CACERT_FILE")] = None
    oci_auth_file: Annotated[Path | None, Variable("IRONIC_OCI_AUTH_CONFIG")] = None

    database_url: Annotated[Secret | None, Variable("INGOT_IRONIC_DATABASE_URL")] = None
    use_mariadb: Annotated[bool, Variable("IRONIC_USE_MARIADB")] = False
    mariadb_host: Annotated[str, Variable("MARIADB_HOST")] = "127.0.0.1"
    mariadb_user: Annotated[str, Variable("MARIADB_USER")] = "ironic"
    mariadb_password: Annotated[Secret | None, Variable("MARIADB_PASSWORD")] = None
    mariadb_database: Annotated[str, Variable("MARIADB_DATABASE")] = "ironic"
    mariadb_ca_file: Annotated[Path | None, Variable("MARIADB_CACERT_FILE")] = None
    skip_dbsync: Annotated[bool, Variable("IRONIC_SKIP_DBSYNC")] = False

    push_url: Annotated[str | None, Variable("INGOT_PUSH_URL")] = None
    push_ca_file: Annotated[Path | None, Variable("INGOT_PUSH_CA_FILE")] = None
    push_token_file: Annotated[Path | None, Variable("INGOT_PUSH_TOKEN_FILE")] = None

    use_coreos: Annotated[bool, Variable("IRONIC_USE_COREOS_IPA")] = False
    deploy_kernel: Annotated[str | None, Variable("DEPLOY_KERNEL_URL")] = None
    deploy_ramdisk: Annotated[str | None, Variable("DEPLOY_RAMDISK_URL")] = None
    deploy_kernel_by_arch: Annotated[str | None, Variable("DEPLOY_KERNEL_BY_ARCH")] = None
    deploy_ramdisk_by_arch: Annotated[str | None, Variable("DEPLOY_RAMDISK_BY_ARCH")] = None
    bootloader: Annotated[str | None, Variable("BOOTLOADER")] = None
    bootloader_by_arch: Annotated[str | None, Variable("INGOT_BOOTLOADER_BY_ARCH")] = None
    kernel_params: Annotated[str, Variable("IRONIC_KERNEL_PARAMS")] = ""
    ramdisk_ssh_key: Annotated[str | None, Variable("IRONIC_RAMDISK_SSH_KEY")] = None
    fips_ramdisk: Annotated[bool, Variable("ENABLE_FIPS_IPA")] = False
    inspection_collectors: Annotated[str, Variable("IRONIC_IPA_COLLECTORS")] = "default,logs"
    vlan_interfaces: Annotated[str, Variable("IRONIC_ENABLE_VLAN_INTERFACES")] = "all"
    collect_lldp: Annotated[bool, Variable("IRONIC_IPA_COLLECT_LLDP")] = True
    force_dhcp: Annotated[bool, Variable("IRONIC_FORCE_DHCP")] = False

    automated_clean: Annotated[bool, Variable("IRONIC_AUTOMATED_CLEAN")] = True
    fast_track: Annotated[bool, Variable("IRONIC_FAST_TRACK")] = False
    boot_iso_source: Annotated[str, Variable("IRONIC_BOOT_ISO_SOURCE")] = "http"
    agent_heartbeat_timeout: Annotated[int, Variable("INGOT_IRONIC_AGENT_HEARTBEAT_TIMEOUT")] = 300
    agent_callback_timeout: Annotated[int, Variable("INGOT_IRONIC_AGENT_CALLBACK_TIMEOUT")] = 1800
    provision_check_interval: Annotated[int, Variable("INGOT_IRONIC_PROVISION_CHECK_INTERVAL")] = 60
    power_sync_interval: Annotated[int, Variable("INGOT_IRONIC_POWER_SYNC_INTERVAL")] = 120
    power_recovery_interval: Annotated[int, Variable("INGOT_IRONIC_POWER_RECOVERY_INTERVAL")] = 300
    power_off_poll_interval: Annotated[int, Variable("INGOT_IRONIC_POWER_OFF_POLL_INTERVAL")] = 1
    bmc_connect_timeout: Annotated[int, Variable("INGOT_IRONIC_BMC_CONNECT_TIMEOUT")] = 5
    bmc_task_interval: Annotated[int, Variable("INGOT_IRONIC_BMC_TASK_INTERVAL")] = 60
    agent_logs_mib: Annotated[int, Variable("INGOT_IRONIC_AGENT_LOGS_MIB")] = 256
    debug: Annotated[bool, Variable("INGOT_IRONIC_DEBUG")] = False

    def __post_init__(self) -> None:
        settings_rules.check(self)

    @property
    def base_url(self) -> str:
        """Where agents find the API, without `/v1`."""
        return self.public_url or f"https://{url_host(self.ip)}:{self.access_port or self.listen_port}"

    @property
    def api_url(self) -> str:
        """Where the operator finds the API, without `/v1`; with a Unix socket, what to say on it."""
        if not self.reverse_proxy:
            return self.base_url
        return "http://ironic" if self.api_socket else f"https://127.0.0.1:{self.private_port}"

    @property
    def api_socket(self) -> Path | None:
        """The socket that Ironic listens on, instead of an address."""
        return self.paths.socket_file if self.reverse_proxy and self.private_port == "unix" else None

    @property
    def listen_address(self) -> str:
        """Of the side where agents call."""
        return "::" if self.listen_all else self.ip

    @property
    def boot_url(self) -> str:
        """Where machines that boot over the network begin; the DHCP server tells iPXE."""
        return f"http://{url_host(self.ip)}:{self.boot_port}/{BOOT_SCRIPT}"

    @property
    def boot_files(self) -> tuple[tuple[str, str], ...]:
        """What is named by a file:// URL for hosts to boot: the variable, and the path as it stands after file://."""
        found = []
        for field in ("deploy_kernel", "deploy_ramdisk", "bootloader"):
            variable, by_arch = variables(IronicSettings)[field][0], f"{field}_by_arch"
            found += [(variable, getattr(self, field) or "")]
            for item in (getattr(self, by_arch) or "").split(","):
                found += [(variables(IronicSettings)[by_arch][0], item.partition(":")[2])]
        return tuple(
            (variable, url[len(_FILE) :].removeprefix("//"))
            for variable, url in found
            if url.lower().startswith(_FILE)
        )

    @property
    def external_callback(self) -> str | None:
        if self.external_callback_url or not self.external_ip:
            return self.external_callback_url
        return f"https://{url_host(self.external_ip)}:{self.access_port or self.listen_port}"

    @property
    def conductor(self) -> str:
        return self.conductor_host or self.ip

    @property
    def database(self) -> Secret:
        """The database URL: the one given, the MariaDB described, or SQLite in the state folder."""
        if self.use_mariadb:
            return self._mariadb()
        return self.database_url or Secret(f"sqlite:///{self.paths.database_file}?timeout=30")

    @property
    def uses_sqlite_file(self) -> bool:
        return self.database_url is None and not self.use_mariadb

    def _mariadb(self) -> Secret:
        password = quote(self.mariadb_password.reveal() if self.mariadb_password else "", safe="")
        where = f"{url_host(self.mariadb_host)}/{quote(self.mariadb_database, safe='')}"
        # With the CA alone both chain and name are verified; PyMySQL's own switches for that would undo it.
        trust = f"&ssl_ca={quote(str(self.mariadb_ca_file))}" if self.mariadb_ca_file else ""
        user = quote(self.mariadb_user, safe="")
        return Secret(f"mysql+pymysql://{user}:{password}@{where}?charset=utf8mb4{trust}")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> IronicSettings:
        """The settings in this environment; what is missing takes its default."""
        environment = ironic_image.translated(environment)
        places, given = from_text(IronicPaths, environment), from_text(cls, environment)
        missing = [_STATE] * ("state" not in places) + [
            variable
            for field, (variable, _) in variables(cls).items()
            if field not in given and field not in defaults(cls)
        ]
        if missing:
            raise SettingsError(
                f"Not set: {', '.join(missing)}. Ironic cannot start without; set them in its environment."
            )
        return cls(paths=replace(IronicPaths.below(places["state"]), **places), **given)

    def to_environment(self) -> dict[str, str]:
        """The environment that `from_environment` turns into this value again; what is usual is left out."""
        derived = dataclasses.asdict(IronicPaths.below(self.paths.state))
        return {
            _STATE: str(self.paths.state),
            **to_text(self.paths, usual=derived),
            **to_text(self, usual=defaults(IronicSettings)),
        }


def url_host(address: str) -> str:
    """An address as it stands in a URL: IPv6 in brackets."""
    return f"[{address}]" if ":" in address else address
