"""The back ends that the operator can drive machines with, as they are asked for on the command line.

Each is made when the operator starts and opened by whoever leads; `announcement` is what it has to say once it works.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import click

from ingot.cli.parts.listen import Listen, cannot_listen
from ingot.cli.parts.state import StateFolder
from ingot.provisioner import Provisioner
from ingot.provisioner.demo import DemoProvisioner, DemoStateError, Script, ScriptError, read_script
from ingot.provisioner.ironic import IronicAccess, IronicProvisioner, PushListen, SettingsError
from ingot.trust import ServingTls, kept_token


class Opened(Provisioner, AbstractAsyncContextManager[Any], Protocol):
    """A back end that is opened and closed."""


class Backend(Protocol):
    """Which back end is wanted."""

    @property
    def hosts(self) -> list[str]:
        """Names and addresses under which it is reached; for the certificate."""
        ...

    def made(self, state: StateFolder, tls: ServingTls) -> Opened: ...

    def cannot_open(self, error: Exception) -> click.ClickException | None:
        """What to say when opening it failed; None for what nobody foresaw."""
        ...

    def announcement(self, made: Opened) -> str: ...


@dataclass(frozen=True, slots=True)
class IronicBackend:
    access: IronicAccess
    push: Listen

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], push: Listen) -> IronicBackend:
        try:
            return cls(IronicAccess.from_environment(environment), push)
        except SettingsError as error:
            raise click.ClickException(str(error)) from error

    @property
    def hosts(self) -> list[str]:
        return [self.push.host]

    def made(self, state: StateFolder, tls: ServingTls) -> IronicProvisioner:
        token = kept_token(state.operator / "push-token")
        return IronicProvisioner(
            self.access,
            PushListen(host=self.push.host, port=self.push.port, tls=tls.context, token=token),
        )

    def cannot_open(self, error: Exception) -> click.ClickException | None:
        if isinstance(error, OSError):
            return cannot_listen(error, self.push, "for Ironic's reports", "--push-listen")
        return None

    def announcement(self, made: Opened) -> str:
        assert isinstance(made, IronicProvisioner)
        return f"push received on port {made.push_port}"


@dataclass(frozen=True, slots=True)
class DemoBackend:
    """Machines that are not there; see docs/demo.md."""

    script: Script

    @classmethod
    def from_file(cls, path: Path | None) -> DemoBackend:
        try:
            return cls(read_script(path) if path is not None else Script())
        except ScriptError as error:
            raise click.ClickException(f"{error}. Correct it, or leave out --demo-script.") from error

    @property
    def hosts(self) -> list[str]:
        return []

    def made(self, state: StateFolder, tls: ServingTls) -> DemoProvisioner:
        return DemoProvisioner(state.operator / "demo-machines.sqlite", self.script)

    def cannot_open(self, error: Exception) -> click.ClickException | None:
        return click.ClickException(str(error)) if isinstance(error, DemoStateError) else None

    def announcement(self, made: Opened) -> str:
        return "driving demo machines"
