"""`ingot release`: CoreOS images and the release payload. One module a verb, loaded on use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from ingot.cli.parts.lazy import LazyGroup


class Verbs(LazyGroup):
    table: ClassVar[Mapping[str, tuple[str, str]]] = {
        "fetch": ("ingot.cli.release.fetch:fetch", "Fetch the images of a CoreOS stream, verified."),
    }


@click.group(cls=Verbs)
def release() -> None:
    """Fetch CoreOS images; build and hand on release payloads."""
