"""`ingot release`: CoreOS images and the release payload. One module a verb, loaded on use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from ingot.cli.parts.lazy import LazyGroup


class Verbs(LazyGroup):
    table: ClassVar[Mapping[str, tuple[str, str]]] = {
        "fetch": ("ingot.cli.release.fetch:fetch", "Fetch the images of a CoreOS stream, verified."),
        "build": ("ingot.cli.release.build:build", "Build a release payload out of ISO images."),
        "show": ("ingot.cli.release.looking:show", "What a payload holds."),
        "verify": ("ingot.cli.release.looking:verify", "Read all of a payload and compare its hashes."),
        "push": ("ingot.cli.release.copying:push", "Copy a payload to a registry."),
        "pull": ("ingot.cli.release.copying:pull", "Copy a payload from a registry."),
        "mirror": ("ingot.cli.release.copying:mirror", "Copy a payload between any two places."),
        "unpack": ("ingot.cli.release.unpack:unpack", "Make files of a payload, for servers of files."),
    }


@click.group(cls=Verbs)
def release() -> None:
    """Fetch CoreOS images; build and hand on release payloads.

    A release payload is a container image with the live ISO images that hosts boot, in a folder or in a registry.

    \b
    ingot release fetch -a x86_64 -C images
    ingot release build payload images/*.iso
    ingot release push payload registry.example:5000/coreos/payload:44
    """
