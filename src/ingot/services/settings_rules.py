"""When the settings of the Ironic service are right: each rule names the variable, what was found and what is expected.

Pure. What a value may be follows from where it ends up: a line of ironic.conf, a URL, the command line of a kernel.
"""

from __future__ import annotations

import ipaddress
import posixpath
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ingot.services.codec import to_text, variables
from ingot.services.errors import SettingsError

if TYPE_CHECKING:
    from ingot.services.settings import IronicSettings

# One argument of a kernel: a boot loader's script would take a quote, a dollar or a bracket for its own.
_KERNEL_ARGUMENT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*(=[A-Za-z0-9_.,:/@+%=\-]*)?")
_SSH_KEY: Final = re.compile(
    r"(ssh-(rsa|ed25519|dss)|ecdsa-sha2-nistp\d+|sk-[a-z0-9@.\-]+) [A-Za-z0-9+/]+=*( [A-Za-z0-9@._\-]+)?"
)
_WORDS: Final = re.compile(r"[A-Za-z0-9_.\-]+(,[A-Za-z0-9_.\-]+)*")
_HTPASSWD_LINE: Final = re.compile(r"[^:\s]+:\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}")
_BY_ARCHITECTURE: Final = re.compile(
    r"[a-z0-9_]+:(https?|file)://[^,\s]+(,[a-z0-9_]+:(https?|file)://[^,\s]+)*"
)
# What Ironic hands out of no file:// URL, whatever it is told to allow.
BLOCKED: Final = ("/boot", "/dev", "/etc", "/proc", "/run", "/sys")


def check(settings: IronicSettings) -> None:
    """Raises for the first rule that is broken."""
    _addresses(settings)
    _network_boot(settings)
    _intervals(settings)
    _callers(settings)
    _urls(settings)
    _database(settings)
    _ramdisk(settings)
    _printable(settings)


def _addresses(settings: IronicSettings) -> None:
    for variable, address in (("IRONIC_IP", settings.ip), ("IRONIC_EXTERNAL_IP", settings.external_ip)):
        try:
            ipaddress.ip_address(address or "127.0.0.1")
        except ValueError:
            raise SettingsError(f"{variable} is {address!r}; expected an IPv4 or IPv6 address.") from None
    _port("IRONIC_LISTEN_PORT", str(settings.listen_port))
    if settings.access_port is not None:
        _port("IRONIC_ACCESS_PORT", str(settings.access_port))
    _port("HTTP_PORT", str(settings.boot_port))
    if settings.private_port != "unix":
        _port("IRONIC_PRIVATE_PORT", settings.private_port, "'unix' or ")
    if settings.reverse_proxy and settings.private_port == str(settings.listen_port):
        raise SettingsError(
            f"IRONIC_PRIVATE_PORT and IRONIC_LISTEN_PORT are both {settings.listen_port}; the front server listens on "
            "the second and Ironic on the first. Choose another one for Ironic, or 'unix'."
        )


def _network_boot(settings: IronicSettings) -> None:
    if not settings.network_boot:
        return
    if not settings.reverse_proxy:
        raise SettingsError(
            "INGOT_NETWORK_BOOT is true and IRONIC_REVERSE_PROXY_SETUP is not: the front server is who hands out boot files. "
            "Set both, and run `ingot service front`."
        )
    if str(settings.boot_port) in (str(settings.listen_port), settings.private_port):
        raise SettingsError(
            f"HTTP_PORT is {settings.boot_port}, where another listener of this service is already. Choose another port for "
            "boot files."
        )


def _port(variable: str, text: str, also: str = "") -> None:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise SettingsError(f"{variable} is {text}; expected {also}a port from 1 to 65535.")


def _intervals(settings: IronicSettings) -> None:
    for field, (variable, _) in variables(type(settings)).items():
        if field.endswith(("_timeout", "_interval")) and (seconds := getattr(settings, field)) < 1:
            raise SettingsError(f"{variable} is {seconds}; expected at least 1 second.")
    if settings.agent_logs_mib < 1:
        raise SettingsError(
            f"INGOT_IRONIC_AGENT_LOGS_MIB is {settings.agent_logs_mib}; expected at least 1. To keep no logs of ramdisks, set "
            "OS_AGENT__DEPLOY_LOGS_COLLECT=never."
        )


def _callers(settings: IronicSettings) -> None:
    if settings.htpasswd:
        lines = settings.htpasswd.reveal().splitlines()
        if not (lines and all(_HTPASSWD_LINE.fullmatch(line.strip()) for line in lines)):
            raise SettingsError(
                "IRONIC_HTPASSWD does not hold lines of the form NAME:$2y$…; Ironic takes bcrypt only (`htpasswd -nB`)."
            )
        return
    missing = [
        variable
        for variable, value in (
            ("INGOT_IRONIC_USERNAME", settings.username),
            ("INGOT_IRONIC_PASSWORD_FILE", settings.password_file),
        )
        if not value
    ]
    if missing:
        raise SettingsError(
            f"Not set: {', '.join(missing)}. Nobody could call Ironic: set them, or IRONIC_HTPASSWD."
        )
    if ":" in (settings.username or ""):
        raise SettingsError(
            "INGOT_IRONIC_USERNAME holds a colon, which HTTP basic authentication does not allow."
        )


def _urls(settings: IronicSettings) -> None:
    if settings.boot_iso_source not in ("http", "local"):
        raise SettingsError(
            f"IRONIC_BOOT_ISO_SOURCE is {settings.boot_iso_source!r}; expected 'http' or 'local'."
        )
    if settings.use_coreos and settings.boot_iso_source != "http":
        raise SettingsError(
            "IRONIC_USE_COREOS_IPA is true and IRONIC_BOOT_ISO_SOURCE is 'local': Ironic would store a whole image for each "
            "host. Take the second one away; BMCs read the image where it is served."
        )
    _url("IRONIC_HTTP_URL", settings.http_url, "http", "https")
    _url("IRONIC_EXTERNAL_HTTP_URL", settings.external_http_url, "http", "https")
    for name in ("deploy_kernel", "deploy_ramdisk", "bootloader"):
        _url(variables(type(settings))[name][0], getattr(settings, name), "http", "https", "file")
    for variable, file in settings.boot_files:
        _boot_file(variable, file)
    # Passwords and tokens travel to these.
    _url("IRONIC_BASE_URL", settings.public_url, "https")
    _url("IRONIC_EXTERNAL_CALLBACK_URL", settings.external_callback_url, "https")
    _url("INGOT_PUSH_URL", settings.push_url, "https")
    push = (settings.push_url, settings.push_ca_file, settings.push_token_file)
    if any(push) and not all(push):
        raise SettingsError(
            "Push is half set up: INGOT_PUSH_URL, INGOT_PUSH_CA_FILE and INGOT_PUSH_TOKEN_FILE belong together. "
            "Set all three, or none."
        )


def _boot_file(variable: str, file: str) -> None:
    """The path is what Ironic makes of the URL, and becomes an item of the list of files that it may read."""
    plain = (
        file != "/"
        and file.startswith("/")
        and not file.startswith("//")
        and posixpath.normpath(file) == file
    )
    if not plain or set(",?#") & set(file):
        raise SettingsError(
            f"{variable} names the file {file!r}; expected file:///PATH, with no host, no '..', no '?', no '#' and no comma."
        )
    if any(file == blocked or file.startswith(f"{blocked}/") for blocked in BLOCKED):
        raise SettingsError(
            f"{variable} names {file}, and Ironic reads no file of {', '.join(BLOCKED)}. Put it elsewhere, for example into "
            "INGOT_IRONIC_HTTP_ROOT."
        )


def _url(variable: str, url: str | None, *schemes: str) -> None:
    """Nothing given is fine; what is given has one of these schemes and a host, or a path for a file."""
    if url is None:
        return
    try:
        parts = urlsplit(url)
        good = parts.scheme in schemes and bool(parts.path if parts.scheme == "file" else parts.hostname)
    except ValueError:
        good = False
    if not good:
        raise SettingsError(f"{variable} is {url!r}; expected {' or '.join(schemes)}://HOST…")


def _database(settings: IronicSettings) -> None:
    if not settings.use_mariadb:
        return
    if settings.database_url:
        raise SettingsError(
            "IRONIC_USE_MARIADB and INGOT_IRONIC_DATABASE_URL are both set; one database is enough. Set one of them."
        )
    if not settings.mariadb_password:
        raise SettingsError("IRONIC_USE_MARIADB is true and MARIADB_PASSWORD is not set.")
    if not settings.mariadb_password.reveal().isascii():
        raise SettingsError(
            "MARIADB_PASSWORD holds a character outside ASCII, which PyMySQL sends in another way than MariaDB reads it. "
            "Choose another password."
        )


def _ramdisk(settings: IronicSettings) -> None:
    for argument in settings.kernel_params.split():
        if not _KERNEL_ARGUMENT.fullmatch(argument):
            raise SettingsError(
                f"IRONIC_KERNEL_PARAMS holds {argument!r}; expected arguments like name or name=value, of letters, digits "
                "and _ . , : / @ + % = -."
            )
        if argument.split("=")[0] == "ipa-insecure":
            raise SettingsError(
                "IRONIC_KERNEL_PARAMS holds ipa-insecure: the agent would send its token to whoever answers. Take it out; "
                "the ramdisk is given the CA of this installation."
            )
    if settings.ramdisk_ssh_key and not _SSH_KEY.fullmatch(settings.ramdisk_ssh_key):
        raise SettingsError("IRONIC_RAMDISK_SSH_KEY is not one line of an OpenSSH public key.")
    for name in ("inspection_collectors", "vlan_interfaces"):
        if not _WORDS.fullmatch(getattr(settings, name)):
            raise SettingsError(
                f"{variables(type(settings))[name][0]} is not a list of words with commas between."
            )
    for name in ("deploy_kernel_by_arch", "deploy_ramdisk_by_arch", "bootloader_by_arch"):
        given = getattr(settings, name)
        if given and not _BY_ARCHITECTURE.fullmatch(given):
            raise SettingsError(
                f"{variables(type(settings))[name][0]} is {given!r}; expected ARCHITECTURE:URL with commas between."
            )
    for kernel, ramdisk in (
        ("deploy_kernel", "deploy_ramdisk"),
        ("deploy_kernel_by_arch", "deploy_ramdisk_by_arch"),
    ):
        if bool(getattr(settings, kernel)) != bool(getattr(settings, ramdisk)):
            names = [variables(type(settings))[name][0] for name in (kernel, ramdisk)]
            raise SettingsError(f"{' and '.join(names)} belong together; only one of them is set.")


def _printable(settings: IronicSettings) -> None:
    """A line break in a value would become an option of its own in ironic.conf."""
    for name, text in _as_text(settings):
        if not text.isprintable() or text != text.strip():
            raise SettingsError(f"{name} holds a control character, or blanks around its value; remove them.")


def _as_text(settings: IronicSettings) -> Iterator[tuple[str, str]]:
    for name, text in (to_text(settings, usual={}) | to_text(settings.paths, usual={})).items():
        if name != "IRONIC_HTPASSWD":  # lines by nature; it goes into a file of its own
            yield name, text
