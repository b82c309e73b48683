"""Where Ironic is and how to talk to it, from the environment that Metal3 uses.

`IronicAccess.from_environment` reads the names that existing deployments set; a wrong value is a `SettingsError` with the
name of the variable. The user name and password are files below METAL3_AUTH_ROOT_DIR, read when they are needed, so that a
rotated password is picked up without a restart.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from ingot.provisioner.census import ORPHANED_AFTER
from ingot.provisioner.ironic.inspections import AT_ONCE
from ingot.provisioner.ironic.site import Ramdisk, SettingsError, Site, flag
from ingot.trust import Secret, client_context

__all__ = ["ClientCertificate", "IronicAccess", "PersistentBoot", "Ramdisk", "SettingsError", "Site"]

DEFAULT_AUTH_ROOT: Final = "/opt/metal3/auth"
DEFAULT_CA: Final = "/opt/metal3/certs/ca/tls.crt"
DEFAULT_CLIENT_CERTIFICATE: Final = "/opt/metal3/certs/client/tls.crt"
DEFAULT_CLIENT_KEY: Final = "/opt/metal3/certs/client/tls.key"
ON_A_SOCKET: Final = "http://ironic/v1"
_UNIX: Final = "unix:"
_LONGEST_SOCKET: Final = 107
_DURATION: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h)?")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}


Persistence = Literal["Default", "Always", "Never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistentBoot:
    """Whether what a host boots from is set for one boot or for all; `Default` leaves it to Ironic."""

    live_iso: Persistence = "Default"
    installed: Persistence = "Default"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCertificate:
    """The operator's own certificate and its key; read when a connection pool is made."""

    certificate: Path
    key: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> ClientCertificate | None:
        """None where neither is there. One without the other is a mistake, as is a name that leads nowhere."""
        files = []
        for name, usual in (
            ("IRONIC_CLIENT_CERT_FILE", DEFAULT_CLIENT_CERTIFICATE),
            ("IRONIC_CLIENT_PRIVATE_KEY_FILE", DEFAULT_CLIENT_KEY),
        ):
            given = environment.get(name)
            if given and not Path(given).is_file():
                raise SettingsError(f"{name} names {given}, and there is no such file")
            files.append(Path(given or usual))
        certificate, key = files
        if certificate.is_file() != key.is_file():
            raise SettingsError(
                f"a client certificate needs both its files, IRONIC_CLIENT_CERT_FILE and IRONIC_CLIENT_PRIVATE_KEY_FILE; only "
                f"{certificate if certificate.is_file() else key} is there"
            )
        return cls(certificate=certificate, key=key) if certificate.is_file() else None

    def load_into(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                f"the client certificate {self.certificate} with the key {self.key} cannot be used: {error}"
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class IronicAccess:
    """Where Ironic is, who we are there, which ramdisk it shall boot and how, and what holds for all hosts here."""

    endpoint: str
    """With the version, without a slash at the end: https://127.0.0.1:6385/v1."""
    socket: Path | None = None
    """The Unix socket that Ironic listens on; then the endpoint is only what is said there, and there is no TLS."""
    ca_file: Path | None = None
    insecure: bool = False
    skip_name_check: bool = False
    """The certificate has to be of an authority we trust, but may be for another name."""
    client_certificate: ClientCertificate | None = None
    """Who we are, where Ironic, or what stands before it, asks for a certificate."""
    auth_folder: Path | None = None
    """Holds `username` and `password`; None: Ironic asks for no credentials."""
    ramdisk: Ramdisk = field(default_factory=Ramdisk)
    persistent_boot: PersistentBoot = PersistentBoot()
    site: Site = field(default_factory=Site)
    timeout: float = 30.0
    shared: bool = False
    """Another Ingot uses this Ironic too: nodes that none of our hosts owns may be its."""
    orphaned_after: float = ORPHANED_AFTER
    """For how many seconds a node has to be without a host before it is given away or removed."""
    inspections: int = AT_ONCE
    """How many hosts are inspected at the same time."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> IronicAccess:
        get = environment.get
        ca_file = Path(get("IRONIC_CACERT_FILE") or DEFAULT_CA)
        folder = Path(get("METAL3_AUTH_ROOT_DIR") or DEFAULT_AUTH_ROOT) / "ironic"
        if get("IRONIC_CACERT_FILE") and not ca_file.is_file():
            raise SettingsError(f"IRONIC_CACERT_FILE names {ca_file}, and there is no such file")
        socket = _socket(get("IRONIC_ENDPOINT") or "")
        return cls(
            endpoint=ON_A_SOCKET if socket else _endpoint(environment),
            socket=socket,
            ca_file=ca_file if ca_file.is_file() else None,
            insecure=flag(environment, "IRONIC_INSECURE"),
            skip_name_check=flag(environment, "IRONIC_SKIP_CLIENT_SAN_VERIFY"),
            client_certificate=ClientCertificate.from_environment(environment),
            auth_folder=folder if folder.is_dir() else None,
            ramdisk=Ramdisk.from_environment(environment),
            persistent_boot=PersistentBoot(
                live_iso=_persistence(environment, "LIVE_ISO_FORCE_PERSISTENT_BOOT_DEVICE"),
                installed=_persistence(environment, "DIRECT_DEPLOY_FORCE_PERSISTENT_BOOT_DEVICE"),
            ),
            site=Site.from_environment(environment),
            timeout=_seconds("IRONIC_CLIENT_TIMEOUT", get("IRONIC_CLIENT_TIMEOUT") or "30s"),
            shared=flag(environment, "IRONIC_SHARED"),
            inspections=_number("INGOT_INSPECTIONS", get("INGOT_INSPECTIONS") or str(AT_ONCE)),
        )

    @property
    def place(self) -> str:
        """Where that is, for people."""
        return f"{_UNIX}{self.socket}" if self.socket else self.endpoint

    def credentials(self) -> tuple[str, Secret] | None:
        """User name and password as they are on disk now."""
        if self.auth_folder is None:
            return None
        try:
            username = (self.auth_folder / "username").read_text().strip()
            password = (self.auth_folder / "password").read_text().strip()
        except OSError as error:
            raise SettingsError(f"Ironic's user name and password are not readable: {error}") from None
        return username, Secret(password)

    def tls(self) -> ssl.SSLContext | bool:
        """What aiohttp calls `ssl`: a context, True for the system's authorities, False to trust anybody."""
        if not self.client_certificate and not self.skip_name_check:
            if self.insecure:
                return False
            return client_context(self.ca_file) if self.ca_file else True
        context = client_context(self.ca_file) if self.ca_file else ssl.create_default_context()
        context.check_hostname = not (self.insecure or self.skip_name_check)
        if self.insecure:
            context.verify_mode = ssl.CERT_NONE
        if self.client_certificate is not None:
            self.client_certificate.load_into(context)
        return context


def _socket(text: str) -> Path | None:
    """unix:/run/ironic/ironic.sock, also with three slashes; None where it is no socket."""
    if not text.startswith(_UNIX):
        return None
    path = text.removeprefix(_UNIX).removeprefix("//")
    if not path.startswith("/") or "\0" in path:
        raise SettingsError(f"IRONIC_ENDPOINT is {text!r}; expected unix:/PATH, the whole path of a socket")
    if len(path.encode()) > _LONGEST_SOCKET:
        raise SettingsError(
            f"IRONIC_ENDPOINT is {text!r}; the path of a socket has at most {_LONGEST_SOCKET} bytes. Set "
            "INGOT_IRONIC_SOCKET_FILE of the Ironic service to a shorter one"
        )
    return Path(path)


def _endpoint(environment: Mapping[str, str]) -> str:
    text, name = environment.get("IRONIC_ENDPOINT") or "", environment.get("IRONIC_NAME") or ""
    if not text and name:
        raise SettingsError(
            f"IRONIC_NAME is {name!r}, and Ingot does not read where Ironic is from an Ironic object. Set IRONIC_ENDPOINT to "
            f"the URL of its Service, such as https://{name}.{environment.get('IRONIC_NAMESPACE') or 'NAMESPACE'}.svc, and "
            "mount its credentials at METAL3_AUTH_ROOT_DIR/ironic and its certificate at IRONIC_CACERT_FILE"
        )
    if not text:
        raise SettingsError(
            "IRONIC_ENDPOINT is not set; it is Ironic's URL, for example https://127.0.0.1:6385/v1"
        )
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(
            f"IRONIC_ENDPOINT is {text!r}; expected a URL with http or https and a host, or unix:/PATH of a socket"
        )
    if parts.username or parts.password:
        raise SettingsError(
            "IRONIC_ENDPOINT must hold no password; put it in METAL3_AUTH_ROOT_DIR/ironic/password"
        )
    url = text.rstrip("/")
    return url if url.endswith("/v1") else f"{url}/v1"


def _persistence(environment: Mapping[str, str], name: str) -> Persistence:
    match environment.get(name, ""):
        case "" | "Default":
            return "Default"
        case "Always":
            return "Always"
        case "Never":
            return "Never"
        case other:
            raise SettingsError(f"{name} is {other!r}; expected Default, Always or Never")


def _seconds(name: str, text: str) -> float:
    found = _DURATION.fullmatch(text.strip())
    seconds = float(found["number"]) * _SECONDS[found["unit"]] if found else 0.0
    if seconds <= 0:
        raise SettingsError(f"{name} is {text!r}; expected a time such as 30s or 1m")
    return seconds


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise SettingsError(f"{name} is {text!r}; expected a number from 1 on")
    return int(text)
