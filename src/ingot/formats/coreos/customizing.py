"""Customizing a live system: from what a user asks for to the members of the archive that is embedded.

Owns the one Ignition config of the live system that carries it all: configs of the user to be merged, scripts as units around
the installer's, configuration of the installer, the Ignition config of the installed system. Pure: contents in, members out.
An empty config is never embedded, because its presence alone takes away the live system's login on the console.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final, TypeVar

import msgspec

from ingot.formats.coreos.console import consoles_in, normal_console
from ingot.formats.coreos.features import Features
from ingot.formats.coreos.installer_config import Value, check_installer_config, installer_config
from ingot.formats.coreos.live import IGNITION, NETWORK
from ingot.formats.errors import FormatError
from ingot.formats.ignition import IgnitionConfig, parse_ignition
from ingot.formats.initrd import Members
from ingot.formats.network import keyfiles_of_nmstate

_SPECIFICATION: Final = "3.3.0"
_DESTINATION: Final = "/etc/coreos/dest.ign"
_Result = TypeVar("_Result")
_UNIT_NAME: Final = re.compile(r"[A-Za-z0-9:_.@-]+")


@dataclass(frozen=True, slots=True)
class Input:
    """A file that the user gave."""

    path: str
    content: bytes

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


@dataclass(frozen=True, slots=True)
class Customization:
    """What a user asks for; `dest` is the system that the installer writes, `live` the one that runs it."""

    dest_ignition: Sequence[Input] = ()
    dest_device: str | None = None
    dest_console: Sequence[str] = ()
    dest_karg_append: Sequence[str] = ()
    dest_karg_delete: Sequence[str] = ()
    network_keyfile: Sequence[Input] = ()
    network_nmstate: Sequence[Input] = ()
    ignition_ca: Sequence[Input] = ()
    pre_install: Sequence[Input] = ()
    post_install: Sequence[Input] = ()
    installer_config: Sequence[Input] = ()
    live_ignition: Sequence[Input] = ()


def customized(wanted: Customization, features: Features) -> tuple[Members, list[str]]:
    """The members to embed, and what the user should know about them."""
    live = _Live(features)
    destination = [live.parsed(config) for config in wanted.dest_ignition]
    consoles = [normal_console(console) for console in wanted.dest_console]
    if consoles:
        features.check_console()
    live.advise_consoles(wanted.dest_karg_append)
    members = _keyfiles(wanted.network_keyfile, wanted.network_nmstate, features)
    for bundle in wanted.ignition_ca:
        live.config.add_authority(bundle.content)
    for script in wanted.pre_install:
        live.add_hook("pre", script, after="coreos-installer-pre.target", before="coreos-installer.service")
    for script in wanted.post_install:
        live.add_hook("post", script, after="coreos-installer.service", before="coreos-installer.target")
    for config in wanted.installer_config:
        _said("parsing installer config", config, check_installer_config)
        live.add_installer_config(config.name, config.content)
    for config in wanted.live_ignition:
        live.config.merge(live.parsed(config))
    settings: dict[str, Value | None] = {
        "ignition-file": live.add_destination(destination, wanted.ignition_ca),
        "console": consoles,
        "append-karg": list(wanted.dest_karg_append),
        "delete-karg": list(wanted.dest_karg_delete),
        "dest-device": wanted.dest_device,
    }
    copy_network = bool(wanted.network_keyfile or wanted.network_nmstate)
    live.run_installer({key: value for key, value in settings.items() if value}, copy_network=copy_network)
    if live.config:
        members[IGNITION] = live.config.encoded()
    return members, live.notes


@dataclass(slots=True)
class _Live:
    """The live system's config while it is put together."""

    features: Features
    config: IgnitionConfig = field(default_factory=lambda: IgnitionConfig(_SPECIFICATION))
    notes: list[str] = field(default_factory=list)
    installer_configs: int = 0

    def parsed(self, config: Input) -> dict[str, Any]:
        parsed, warnings = _said("parsing Ignition config", config, parse_ignition)
        self.notes += [f"Warning parsing {config.path}: {warning}" for warning in warnings]
        return parsed

    def advise_consoles(self, arguments: Sequence[str]) -> None:
        if consoles := consoles_in(arguments):
            better = " ".join(f"--dest-console {console}" for console in consoles)
            self.notes.append(
                f'Note: "{better}" sets the console of the boot loader too, the kernel argument does not.'
            )

    def add_hook(self, kind: str, script: Input, *, after: str, before: str) -> None:
        name = f"{kind}-install-{script.name}"
        if not _UNIT_NAME.fullmatch(name):
            raise FormatError(
                f"{script.path}: the script becomes a unit of systemd, so its name may have letters, digits and :_.@- only"
            )
        self.config.add_file(f"/usr/local/bin/{name}", script.content, mode=0o700)
        self.config.add_unit(
            f"{name}.service", _HOOK.format(name=name, kind=kind, after=after, before=before)
        )

    def add_installer_config(self, name: str, content: bytes) -> None:
        self.features.check_installer()
        path = f"/etc/coreos/installer.d/{self.installer_configs:04}-{name}"
        self.config.add_file(path, content, mode=0o600)
        self.installer_configs += 1

    def add_destination(self, configs: Sequence[dict[str, Any]], bundles: Sequence[Input]) -> str | None:
        """The config of the installed system, and where the installer finds it."""
        if not configs:
            return None
        if len(configs) == 1 and not bundles:
            content = msgspec.json.encode(configs[0]) + b"\n"
        else:
            whole = IgnitionConfig(_SPECIFICATION)
            for bundle in bundles:
                whole.add_authority(bundle.content)
            for config in configs:
                whole.merge(config)
            content = whole.encoded()
        self.config.add_file(_DESTINATION, content, mode=0o600)
        return _DESTINATION

    def run_installer(self, settings: dict[str, Value], *, copy_network: bool) -> None:
        """Our own configuration of the installer, if it is to run at all."""
        if not settings and not self.installer_configs:
            return
        device = settings.get("dest-device")
        doing = f"install to {device} by itself, without asking" if device else "run the installer by itself"
        self.notes.append(f"The live system will {doing}.")
        if copy_network:
            settings["copy-network"] = True
        if settings:
            self.add_installer_config("customize.yaml", installer_config(settings))


_HOOK: Final = """\
[Unit]
Description={kind}-install script {name}
After={after}
Before={before}

[Service]
Type=oneshot
ExecStart=/usr/local/bin/{name}
RemainAfterExit=true
StandardOutput=kmsg+console
StandardError=kmsg+console

[Install]
RequiredBy={before}
"""


def _keyfiles(files: Sequence[Input], states: Sequence[Input], features: Features) -> Members:
    members: Members = {}
    for file in files:
        features.check_network()
        path = f"{NETWORK}/{file.name}"
        if path in members:
            raise FormatError(f"config already specifies keyfile {file.name}")
        members[path] = file.content
    for state in states:
        features.check_network()
        made = _said("generating configuration from nmstate", state, keyfiles_of_nmstate)
        for name, content in made.items():
            path = f"{NETWORK}/{name}"
            if path in members:
                raise FormatError(f"config already specifies keyfile {path}")
            members[path] = content
    return members


def _said(doing: str, file: Input, check: Callable[[bytes], _Result]) -> _Result:
    try:
        return check(file.content)
    except FormatError as error:
        raise FormatError(f"{doing} {file.path}: {error}") from error
