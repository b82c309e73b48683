"""What every host's ramdisk is told, from the environment.

The names are those of Metal3's image customization controller; what it has no name for starts with INGOT_. An empty variable
counts as not set. Files that variables name are read here, so that a value of this type is all that images depend on: when a
file changes, the value that is read anew differs, and so do the images made with it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self

from ingot.images.ramdisk import checks
from ingot.images.ramdisk.errors import SettingsError
from ingot.trust import Secret

AGENT_IMAGE: Final = "quay.io/metal3-io/ironic-agent"
PULL_SECRET_FILE: Final = Path("/run/secrets/pull-secret")
API_PORT: Final = 6385
INSPECTOR_PORT: Final = 5050
_LARGEST_FILE: Final = 1 << 20
NO_SECRET: Final = Secret("")

VlanInterfaces = Literal["always", "never", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Checked: whatever is in here can become a line of a unit, a URL or an argument of a kernel as it is."""

    api_urls: tuple[str, ...]
    """Where the agent calls Ironic; more than one are tried in turn."""
    inspection_urls: tuple[str, ...] = ()
    """Where it reports the hardware; empty: to Ironic itself."""
    image: str = AGENT_IMAGE
    """The container with the agent."""
    ca: bytes = b""
    """Who vouches for Ironic, PEM. Empty: somebody whom every system trusts."""
    ca_bundle: bytes = b""
    """Whom the ramdisk trusts besides: registries, proxies, image servers."""
    pull_secret: Secret = NO_SECRET
    registries_conf: bytes = b""
    ssh_key: str = ""
    vlan_interfaces: VlanInterfaces = ""
    """Empty: all that LLDP tells of, unless the host's network configuration says which there are."""
    ip_options: tuple[str, ...] = ()
    """Arguments of the kernel, also of a system that is installed from the ramdisk."""
    iso_arguments: tuple[str, ...] = ()
    """More of them, for ISO images alone: where Ironic starts kernel and initramfs, it adds these itself."""
    http_proxy: Secret = NO_SECRET
    https_proxy: Secret = NO_SECRET
    no_proxy: str = ""
    ntp_servers: tuple[str, ...] = ()

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], *, pull_secret_file: Path = PULL_SECRET_FILE
    ) -> Self:
        """Reads the files that are named. Raises `SettingsError` for the first thing that is wrong."""

        def given(variable: str) -> str:
            return environment.get(variable, "").strip()

        def content(variable: str) -> bytes:
            return _content(variable, given(variable)) if given(variable) else b""

        if not given("IRONIC_BASE_URL"):
            raise SettingsError(
                "Not set: IRONIC_BASE_URL. The agent in the ramdisk would not know whom to call; set it to the address of the "
                "front server, https://HOST:PORT."
            )
        inspector = given("IRONIC_INSPECTOR_BASE_URL")
        ca, bundle = content("IRONIC_CACERT_FILE"), content("CA_BUNDLE")
        key = given("IRONIC_RAMDISK_SSH_KEY")
        params = checks.kernel_words("IRONIC_KERNEL_PARAMS", given("IRONIC_KERNEL_PARAMS"))
        fips = checks.switch("ENABLE_FIPS_IPA", given("ENABLE_FIPS_IPA") or "false")
        http, https = given("HTTP_PROXY"), given("HTTPS_PROXY")
        return cls(
            api_urls=checks.api_urls("IRONIC_BASE_URL", given("IRONIC_BASE_URL"), port=API_PORT),
            inspection_urls=_inspector_urls(inspector) if inspector else (),
            image=checks.image_reference("IRONIC_AGENT_IMAGE", given("IRONIC_AGENT_IMAGE") or AGENT_IMAGE),
            ca=checks.certificates("IRONIC_CACERT_FILE", ca) if ca else b"",
            ca_bundle=checks.certificates("CA_BUNDLE", bundle) if bundle else b"",
            pull_secret=_pull_secret(given("IRONIC_AGENT_PULL_SECRET"), pull_secret_file),
            registries_conf=_registries_conf(content("REGISTRIES_CONF_PATH")),
            ssh_key=checks.ssh_key("IRONIC_RAMDISK_SSH_KEY", key) if key else "",
            vlan_interfaces=_vlan_interfaces(given("IRONIC_AGENT_VLAN_INTERFACES")),
            ip_options=checks.kernel_words("IP_OPTIONS", given("IP_OPTIONS")),
            iso_arguments=(*(("fips=1",) if fips else ()), *params),
            http_proxy=checks.proxy("HTTP_PROXY", http) if http else NO_SECRET,
            https_proxy=checks.proxy("HTTPS_PROXY", https) if https else NO_SECRET,
            no_proxy=checks.no_proxy("NO_PROXY", given("NO_PROXY")),
            ntp_servers=checks.time_servers("ADDITIONAL_NTP_SERVERS", given("ADDITIONAL_NTP_SERVERS")),
        )


def _content(variable: str, path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise SettingsError(f"{variable} names {path}, which cannot be read: {error.strerror}.") from error
    if len(content) > _LARGEST_FILE:
        raise SettingsError(f"{variable} names {path}, which has more than {_LARGEST_FILE} bytes.")
    return content


def _inspector_urls(text: str) -> tuple[str, ...]:
    found = checks.api_urls("IRONIC_INSPECTOR_BASE_URL", text, port=INSPECTOR_PORT)
    return tuple(url if url.endswith("/v1/continue") else f"{url}/v1/continue" for url in found)


def _pull_secret(text: str, file: Path) -> Secret:
    if text:
        return checks.pull_secret("IRONIC_AGENT_PULL_SECRET", text)
    try:
        content = file.read_text()
    except FileNotFoundError:
        return NO_SECRET
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"{file}, the pull secret, cannot be read: {why}.") from None
    return checks.pull_secret(str(file), content)


def _registries_conf(content: bytes) -> bytes:
    try:
        tomllib.loads(content.decode())
    except ValueError as error:  # also what is not UTF-8
        raise SettingsError(
            f"REGISTRIES_CONF_PATH names a file that containers would not read, because it is not TOML: {error}."
        ) from None
    return content


def _vlan_interfaces(text: str) -> VlanInterfaces:
    match text.lower():
        case "always":
            return "always"
        case "never":
            return "never"
        case "":
            return ""
    raise SettingsError(f"IRONIC_AGENT_VLAN_INTERFACES is {text!r}; expected always, never or nothing.")
