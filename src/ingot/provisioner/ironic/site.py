"""What holds for all hosts of a site: the ramdisks they boot, the networks there are, and what users may ask for.

From the environment that Metal3 uses, read by `IronicAccess.from_environment`; a wrong value is a `SettingsError` with the name
of the variable. A ramdisk is given for all architectures, or for each: `DEPLOY_ISO_URL_AARCH64`, or
`DEPLOY_ISO_URL_BY_ARCH=aarch64:https://…,x86_64:https://…`, or `DEPLOY_ISO_URL`, in this order; kernel and initramfs likewise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from ingot.provisioner.ironic.firewall.policy import Policy

ISO: Final = "DEPLOY_ISO_URL"
KERNEL: Final = "DEPLOY_KERNEL_URL"
INITRAMFS: Final = "DEPLOY_RAMDISK_URL"
_ARCHITECTURE: Final = re.compile(r"[a-z0-9_]+")
# What follows the name of a variable and is no architecture.
_BY_ARCH: Final = "_BY_ARCH"


class SettingsError(ValueError):
    """A setting is missing or cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramdisk:
    """What the servers boot while Ironic works on them; all empty means Ironic's own default."""

    iso: str = ""
    kernel: str = ""
    initramfs: str = ""
    by_architecture: Mapping[str, Ramdisk] = field(default_factory=dict)
    """What is booted instead by machines of an architecture."""

    def for_architecture(self, architecture: str) -> Ramdisk:
        """The one for a machine of which so much is known; "": nothing yet."""
        return self.by_architecture.get(architecture, self)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Ramdisk:
        base = _together(
            "", *(_checked(name, environment.get(name, "")) for name in (ISO, KERNEL, INITRAMFS))
        )
        lists = {name: _by_arch(name, environment) for name in (ISO, KERNEL, INITRAMFS)}
        named = set().union(*lists.values(), _named_architectures(environment))
        return cls(
            iso=base.iso,
            kernel=base.kernel,
            initramfs=base.initramfs,
            by_architecture={one: _for_one(one, environment, lists, base) for one in sorted(named)},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    provisioning_network: bool = True
    """Machines can boot over a network that Ironic serves."""
    external_url_v6: str = ""
    """Where BMCs that are reached over IPv6 find what Ironic serves; "": where all others do."""
    policy: Policy = field(default_factory=Policy)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Site:
        name = "IRONIC_EXTERNAL_URL_V6"
        try:
            policy = Policy.from_environment(environment)
        except ValueError as problem:
            raise SettingsError(str(problem)) from None
        return cls(
            provisioning_network=not flag(environment, "PROVISIONING_NETWORK_DISABLED"),
            external_url_v6=_url(name, environment.get(name, ""), ("http", "https")),
            policy=policy,
        )


def flag(environment: Mapping[str, str], name: str) -> bool:
    text = environment.get(name) or ""
    match text.strip().lower():
        case "" | "0" | "f" | "false" | "no":
            return False
        case "1" | "t" | "true" | "yes":
            return True
    raise SettingsError(f"{name} is {text!r}; expected true or false")


def _for_one(
    architecture: str, environment: Mapping[str, str], lists: Mapping[str, Mapping[str, str]], base: Ramdisk
) -> Ramdisk:
    usual = {ISO: base.iso, KERNEL: base.kernel, INITRAMFS: base.initramfs}
    found = []
    for name, otherwise in usual.items():
        variable = f"{name}_{architecture.upper()}"
        found.append(
            _checked(variable, environment.get(variable) or lists[name].get(architecture) or otherwise)
        )
    return _together(f"_{architecture.upper()}", *found)


def _named_architectures(environment: Mapping[str, str]) -> Iterable[str]:
    for name in (ISO, KERNEL, INITRAMFS):
        for variable, value in environment.items():
            if value and variable.startswith(f"{name}_") and variable != f"{name}{_BY_ARCH}":
                yield variable.removeprefix(f"{name}_").lower()


def _by_arch(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    variable = f"{name}{_BY_ARCH}"
    found: dict[str, str] = {}
    for item in filter(None, (item.strip() for item in environment.get(variable, "").split(","))):
        architecture, _, url = item.partition(":")
        if not _ARCHITECTURE.fullmatch(architecture) or not url:
            raise SettingsError(
                f"{variable} has {item!r}; expected ARCHITECTURE:URL, such as aarch64:https://…"
            )
        found[architecture] = _checked(variable, url)
    return found


def _together(suffix: str, iso: str, kernel: str, initramfs: str) -> Ramdisk:
    if bool(kernel) != bool(initramfs):
        raise SettingsError(
            f"{KERNEL}{suffix} and {INITRAMFS}{suffix} belong together; only one of them is set"
        )
    return Ramdisk(iso=iso, kernel=kernel, initramfs=initramfs)


def _checked(name: str, url: str) -> str:
    """The operator's own: also a file that lies beside Ironic."""
    return _url(name, url, ("http", "https", "file"))


def _url(name: str, url: str, schemes: tuple[str, ...]) -> str:
    if url and urlsplit(url).scheme not in schemes:
        raise SettingsError(
            f"{name} is {url!r}; expected a URL with {', '.join(schemes[:-1])} or {schemes[-1]}"
        )
    return url
