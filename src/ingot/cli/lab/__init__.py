"""`ingot lab`: simulated servers to practise on. One module a verb or a few that belong together, loaded on use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from ingot.cli.parts.lazy import LazyGroup


class Verbs(LazyGroup):
    table: ClassVar[Mapping[str, tuple[str, str]]] = {
        "farm": ("ingot.cli.lab.farm:farm", "Run the simulated servers."),
        "list": ("ingot.cli.lab.servers:list_servers", "The servers: power, and what runs on them."),
        "show": ("ingot.cli.lab.servers:show", "All of one server, with its log."),
        "manifests": ("ingot.cli.lab.manifests:manifests", "Print them as Secrets and BareMetalHosts."),
        "fault": ("ingot.cli.lab.misbehaving:fault", "Make servers misbehave."),
        "plan": ("ingot.cli.lab.misbehaving:plan", "Make servers misbehave in time."),
        "hold": ("ingot.cli.lab.misbehaving:hold", "Let servers wait at a place of their life."),
        "release": ("ingot.cli.lab.misbehaving:release", "Let them go on."),
        "reset-bmc": ("ingot.cli.lab.hands:reset_bmc", "Restart a BMC."),
        "password": ("ingot.cli.lab.hands:password", "Change a BMC's password."),
        "image": ("ingot.cli.lab.hands:image", "Have an image served to the servers."),
    }


@click.group(cls=Verbs)
def lab() -> None:
    """Simulated servers to practise on.

    \b
    ingot lab farm --count 5 --agent-api https://127.0.0.1:6385
    ingot lab list
    ingot lab fault 'server-1*' slow_seconds=3
    """
