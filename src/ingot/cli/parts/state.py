"""The state folder of one machine: where it is, what lies where in it, and whether a folder is one.

Pure paths, apart from `entries`. Removing a folder is allowed only when everything in it is known to be ours.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click

OURS: Final = frozenset(
    {
        "ca",
        "kubeconfig",
        "kubeconfig-readonly",
        "api",
        "ironic",
        "operator",
        "machines",
        "images",
        "lab",
        "run",
    }
)

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class StateFolder:
    path: Path

    @property
    def ca(self) -> Path:
        return self.path / "ca"

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    @property
    def ironic(self) -> Path:
        return self.path / "ironic"

    @property
    def operator(self) -> Path:
        return self.path / "operator"

    @property
    def backend_notice(self) -> Path:
        """What the operator found that is not as it should be with its back end; not there while all is well."""
        return self.operator / "backend-notice"

    @property
    def machines(self) -> Path:
        return self.path / "machines"

    @property
    def images(self) -> Path:
        return self.path / "images"

    @property
    def images_notice(self) -> Path:
        """Why ramdisks are not made of what they should be; not there while all is well."""
        return self.images / "notice"

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def log(self) -> Path:
        """What `ingot up` itself says when it runs in the background."""
        return self.run / "logs" / "up.log"

    def create(self) -> None:
        """Make the folder, for its owner only: it holds keys."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.run.mkdir(exist_ok=True, mode=0o700)

    def strangers(self) -> list[str]:
        """What is in the folder and not ours, sorted; nothing when the folder does not exist."""
        return sorted(name for name in self._entries() if not is_ours(name))

    def is_foreign(self) -> bool:
        """Whether the folder holds something, and none of it is ours: nobody meant it to become a state folder."""
        names = self._entries()
        return bool(names) and not any(is_ours(name) for name in names)

    def is_empty(self) -> bool:
        return not self._entries()

    def _entries(self) -> list[str]:
        try:
            return [entry.name for entry in self.path.iterdir()]
        except FileNotFoundError:
            return []


def is_ours(name: str) -> bool:
    """Whether Ingot gives this name to something in its folder, or to a file on its way there (`.kubeconfig.x1y2`)."""
    return name in OURS or (name.startswith(".") and name[1:].rpartition(".")[0] in OURS)


def default_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "ingot"


def state_option(command: Command) -> Command:
    """`--state`, the same for every command; the command receives a `StateFolder`."""
    return click.option(
        "--state",
        envvar="INGOT_STATE",
        type=click.Path(file_okay=False, path_type=Path),
        default=default_folder,
        show_default="$XDG_STATE_HOME/ingot",
        callback=lambda _context, _parameter, path: StateFolder(path.expanduser().absolute()),
        help="The folder that holds everything; also INGOT_STATE.",
    )(command)
