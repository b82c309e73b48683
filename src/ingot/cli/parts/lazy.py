"""Groups of commands that are imported only when they are called.

A command that starts in a tenth of a second is one people use; importing everything that the others need to print `--help` would
cost more than that. So a table holds names and one line of help, and the module behind a name is loaded on use.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import ClassVar

import click


class LazyGroup(click.Group):
    """A group that knows its commands by name and loads each one on use."""

    table: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """By name: where the command is, as module:attribute, and a line of help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_text) for name, (_, help_text) in self.table.items()])
