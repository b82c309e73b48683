"""The settings of the Ironic service: one typed value, to and from the environment.

Owns the names of the environment variables. Where ironic-image has a name for something, it is that name; what it has no name
for starts with INGOT_. `from_environment` and `to_environment` are each other's inverse, so whoever starts the service builds
the value, and the service reads the same value. A value that is wrong cannot be built: the error names the variable, what was
found and what is expected.

Nothing is read from disk here. Passwords and tokens are named by file, never by value; the one exception is a database URL,
which may hold a password and is therefore a `Secret`.
Anything Ironic can be told beyond this goes by `OS_<GROUP>__<OPTION>`, which Ironic itself reads and prefers to its file.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from ingot.services.codec import Variable, defaults, from_text, to_text, variables
from ingot.services.errors import SettingsError
from ingot.trust import Secret

_STATE: Final = "INGOT_IRONIC_STATE"


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
    programs: Annotated[Path, Variable("INGOT_IRONIC_PROGRAMS")]

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
            programs=state / "bin",
        )

    @property
    def folders(self) -> tuple[Path, ...]:
        """What has to exist before Ironic starts."""
        files = (self.config_file, self.htpasswd_file, self.database_file, self.lock_file)
        named = (getattr(self, f.name) for f in dataclasses.fields(self) if not f.name.endswith("_file"))
        return tuple(dict.fromkeys((*named, *(file.parent for file in files))))


@dataclass(frozen=True, kw_only=True, slots=True)
class IronicSettings:
    """All that decides how Ironic runs.

    `ip` is the address it listens on (every address with `listen_all`) and the name of its conductor unless `conductor_host`
    says otherwise; that name must stay the same across restarts, because it is how a conductor finds its own locks again.
    `base_url` is where the operator and the agents call; `external_callback_url` replaces it for agents that reach Ironic by
    another way. Every interval is in whole seconds.
    """

    paths: IronicPaths
    cert_file: Annotated[Path, Variable("IRONIC_CERT_FILE")]
    key_file: Annotated[Path, Variable("IRONIC_KEY_FILE")]
    ca_file: Annotated[Path, Variable("IRONIC_CACERT_FILE")]
    username: Annotated[str, Variable("INGOT_IRONIC_USERNAME")]
    password_file: Annotated[Path, Variable("INGOT_IRONIC_PASSWORD_FILE")]

    version: Annotated[str, Variable("INGOT_IRONIC_VERSION")] = "39"
    ip: Annotated[str, Variable("IRONIC_IP")] = "127.0.0.1"
    listen_port: Annotated[int, Variable("IRONIC_LISTEN_PORT")] = 6385
    listen_all: Annotated[bool, Variable("LISTEN_ALL_INTERFACES")] = False
    conductor_host: Annotated[str | None, Variable("IRONIC_CONDUCTOR_HOST")] = None
    public_url: Annotated[str | None, Variable("IRONIC_BASE_URL")] = None
    external_callback_url: Annotated[str | None, Variable("IRONIC_EXTERNAL_CALLBACK_URL")] = None
    http_url: Annotated[str | None, Variable("IRONIC_HTTP_URL")] = None
    external_http_url: Annotated[str | None, Variable("IRONIC_EXTERNAL_HTTP_URL")] = None
    bmc_ca_file: Annotated[Path | None, Variable("BMC_CACERT_FILE")] = None
    webserver_ca_file: Annotated[Path | None, Variable("WEBSERVER_CACERT_FILE")] = None
    database_url: Annotated[Secret | None, Variable("INGOT_IRONIC_DATABASE_URL")] = None

    push_url: Annotated[str | None, Variable("INGOT_PUSH_URL")] = None
    push_ca_file: Annotated[Path | None, Variable("INGOT_PUSH_CA_FILE")] = None
    push_token_file: Annotated[Path | None, Variable("INGOT_PUSH_TOKEN_FILE")] = None

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
    debug: Annotated[bool, Variable("INGOT_IRONIC_DEBUG")] = False

    def __post_init__(self) -> None:
        _check(self)

    @property
    def base_url(self) -> str:
        """Where clients and agents find the API, without `/v1`."""
        return self.public_url or f"https://{url_host(self.ip)}:{self.listen_port}"

    @property
    def listen_address(self) -> str:
        return "::" if self.listen_all else self.ip

    @property
    def conductor(self) -> str:
        return self.conductor_host or self.ip

    @property
    def database(self) -> Secret:
        """The database URL: the one given, or SQLite in the state folder."""
        return self.database_url or Secret(f"sqlite:///{self.paths.database_file}")

    @property
    def uses_sqlite_file(self) -> bool:
        return self.database_url is None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> IronicSettings:
        """The settings in this environment; what is missing takes its default."""
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


def _check(settings: IronicSettings) -> None:
    _check_address(settings.ip)
    if not 1 <= settings.listen_port <= 65535:
        raise SettingsError(f"IRONIC_LISTEN_PORT is {settings.listen_port}; expected a port from 1 to 65535.")
    for variable, seconds in _intervals(settings):
        if seconds < 1:
            raise SettingsError(f"{variable} is {seconds}; expected at least 1 second.")
    if not settings.username or ":" in settings.username:
        raise SettingsError(
            "INGOT_IRONIC_USERNAME is empty or holds a colon; HTTP basic authentication allows neither."
        )
    if settings.boot_iso_source not in ("http", "local"):
        raise SettingsError(
            f"IRONIC_BOOT_ISO_SOURCE is {settings.boot_iso_source!r}; expected 'http' or 'local'."
        )
    _check_url("IRONIC_HTTP_URL", settings.http_url, "http", "https")
    _check_url("IRONIC_EXTERNAL_HTTP_URL", settings.external_http_url, "http", "https")
    # Passwords and tokens travel to these.
    _check_url("IRONIC_BASE_URL", settings.public_url, "https")
    _check_url("IRONIC_EXTERNAL_CALLBACK_URL", settings.external_callback_url, "https")
    _check_url("INGOT_PUSH_URL", settings.push_url, "https")
    push = (settings.push_url, settings.push_ca_file, settings.push_token_file)
    if any(push) and not all(push):
        raise SettingsError(
            "Push is half set up: INGOT_PUSH_URL, INGOT_PUSH_CA_FILE and INGOT_PUSH_TOKEN_FILE belong together. "
            "Set all three, or none."
        )
    _check_printable(settings)


def _intervals(settings: IronicSettings) -> Iterator[tuple[str, int]]:
    for field, (variable, _) in variables(IronicSettings).items():
        if field.endswith(("_timeout", "_interval")):
            yield variable, getattr(settings, field)


def _check_address(address: str) -> None:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise SettingsError(f"IRONIC_IP is {address!r}; expected an IPv4 or IPv6 address.") from None


def _check_url(variable: str, url: str | None, *schemes: str) -> None:
    """Nothing given is fine; what is given has one of these schemes and a host."""
    if url is None:
        return
    try:
        parts = urlsplit(url)
        good = parts.scheme in schemes and bool(parts.hostname)
    except ValueError:
        good = False
    if not good:
        raise SettingsError(f"{variable} is {url!r}; expected {' or '.join(schemes)}://HOST…")


def _check_printable(settings: IronicSettings) -> None:
    """A line break in a value would become an option of its own in ironic.conf."""
    for name, text in (to_text(settings, usual={}) | to_text(settings.paths, usual={})).items():
        if not text.isprintable() or text != text.strip():
            raise SettingsError(f"{name} holds a control character, or blanks around its value; remove them.")
