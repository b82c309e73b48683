"""Where progress goes: plain lines for a log or a pipe. `screen` has the same face for a terminal.

Showing never raises: when nobody reads any more (`ingot up | tee log`, and Ctrl-C ends them both), the parts still stop in order.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

import click

from ingot.cli.parts.progress import HostView, Teller
from ingot.embedded.supervisor import Status

STOPPING: Final = "Stopping. Asked once more (Ctrl-C), it ends everything at once."


class Show(Protocol):
    def say(self, text: str) -> None: ...
    def parts(self, status: Status) -> None: ...
    def hosts(self, hosts: Sequence[HostView]) -> None: ...
    def advise(self, lines: Sequence[str]) -> None:
        """Everything is up."""

    def stopping(self) -> None:
        """Somebody said stop."""


class Lines:
    """One line for each thing that changed since `known`, with the seconds since the start."""

    def __init__(self, known: Status | None = None) -> None:
        self._began = time.monotonic()
        self._teller = Teller()
        if known is not None:
            self._teller.about_parts(known.parts)

    def say(self, text: str) -> None:
        _echo(f"{time.monotonic() - self._began:7.1f} s  {text}")

    def parts(self, status: Status) -> None:
        for line in self._teller.about_parts(status.parts):
            self.say(line)

    def hosts(self, hosts: Sequence[HostView]) -> None:
        for line in self._teller.about_hosts(hosts):
            self.say(line)

    def advise(self, lines: Sequence[str]) -> None:
        _echo("\n" + "\n".join(lines) + "\n")

    def stopping(self) -> None:
        self.say(STOPPING)


def _echo(text: str) -> None:
    with suppress(OSError):
        click.echo(text)
