"""The CoreOS that runs around the agent: which build it is, and what the machine is called.

Its root file system is seen below a folder. Reading it promises nothing about what is found there: every value is optional.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ingot_agent.order import is_hostname

# What the makers of live images write into them; the first is in the initramfs, the second beside the root file system.
_BUILD_FILES: Final = ("etc/coreos-live-initramfs", "etc/coreos-live-rootfs")
_LONGEST: Final = 4096


@dataclass(frozen=True, slots=True)
class Build:
    """What runs: its version and its full name."""

    version: str
    name: str


def is_there(root: Path) -> bool:
    """Whether the root of a running system is mounted here."""
    return (root / "etc" / "os-release").is_file()


def build(root: Path) -> Build | None:
    """Which build this is; None where it does not say."""
    release = _assignments(_read(root / "etc" / "os-release"))
    told = next((text for file in _BUILD_FILES if (text := _read(root / file).strip())), "")
    version = told or release.get("OSTREE_VERSION") or release.get("VERSION") or ""
    return Build(version, release.get("PRETTY_NAME") or version) if version else None


def better_hostname(current: str, default: str) -> str | None:
    """What the machine should be called instead; None where its name is good, or no better one is known."""
    return default if not is_hostname(current) and is_hostname(default) else None


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(_LONGEST)
    except OSError:
        return ""


def _assignments(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and name.isidentifier():
            found[name] = _unquoted(value)
    return found


def _unquoted(value: str) -> str:
    try:
        return " ".join(shlex.split(value))
    except ValueError:
        return value
