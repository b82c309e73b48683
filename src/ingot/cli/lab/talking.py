"""What the commands that talk to a running farm share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import click
import msgspec
import yaml

from ingot.cli.parts.sentences import errors_as_sentences
from ingot.cli.parts.state import StateFolder
from ingot.lab.client import Lab

T = TypeVar("T")

output_option: Final = click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True
)


class PlainYaml(yaml.SafeLoader):
    """YAML in which On, Off, yes and no are words, as everybody expects them to be, and only true and false are not."""


PlainYaml.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if first in "tTfF" or tag != "tag:yaml.org,2002:bool"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def ask(state: StateFolder, question: Callable[[Lab], Awaitable[T]]) -> T:
    """Put a question to the farm of this state folder."""

    async def asked() -> T:
        async with Lab.open(state.path) as lab:
            return await question(lab)

    with errors_as_sentences():
        return asyncio.run(asked())


def print_json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value)).decode())


def how_many(names: list[str]) -> str:
    """The servers that something was done to, for a person to read."""
    if len(names) <= 5:
        return ", ".join(names)
    return f"{', '.join(names[:3])} and {len(names) - 3} more"
