"""`ingot host`: what a person does to one host that kubectl has no word for. One module a verb, loaded on use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from ingot.cli.parts.lazy import LazyGroup


class Verbs(LazyGroup):
    table: ClassVar[Mapping[str, tuple[str, str]]] = {
        "delete": ("ingot.cli.host.delete:delete", "Delete a host, if need be without its back end."),
    }


@click.group(cls=Verbs)
def host() -> None:
    """Do something to one host."""
