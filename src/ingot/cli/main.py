"""The `ingot` command: a table of subcommands, each imported only when it is called (see `parts.lazy`)."""

from __future__ import annotations

from typing import Final

import click

from ingot.cli.parts.lazy import LazyGroup

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "up": ("ingot.cli.up:up", "Start everything on this machine and show it coming up."),
    "down": ("ingot.cli.down:down", "Stop what `ingot up` started."),
    "status": ("ingot.cli.status:status", "What runs where, and whether it is well."),
    "explain": (
        "ingot.cli.explain:explain",
        "Why a host, Machine or claim is where it is, what comes next, whose the images are.",
    ),
    "host": ("ingot.cli.host:host", "Everyday work with hosts: list, add, provision, reboot, delete, …"),
    "crds": ("ingot.cli.crds:crds", "Print the custom resource definitions."),
    "api-server": ("ingot.cli.api_server:api_server", "Run the embedded Kubernetes API."),
    "operator": ("ingot.cli.operator:operator", "Run the controllers."),
    "service": ("ingot.cli.service:service", "Run one of the services behind the operator."),
    "iso": ("ingot.cli.iso:iso", "Change what is embedded in CoreOS live ISO images."),
    "pxe": ("ingot.cli.pxe:pxe", "Initial RAM disks for CoreOS live systems."),
    "dev": ("ingot.cli.dev:dev", "What images are made of."),
    "release": ("ingot.cli.release:release", "Fetch CoreOS images; build and hand on release payloads."),
    "lab": ("ingot.cli.lab:lab", "Simulated servers to practise on."),
}


class Commands(LazyGroup):
    """The commands, and what all of them may meet."""

    table = COMMANDS

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except Exception as error:
            from ingot.trust import TrustError

            # Every command may meet a broken certificate authority; its sentence is for the person, a traceback is not.
            if isinstance(error, TrustError):
                raise click.ClickException(str(error)) from error
            raise


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(None, "-V", "--version", package_name="ingot")
def main() -> None:
    """Turn bare servers into running machines, declaratively.

    \b
    ingot up        start everything on this machine, with three simulated servers
    ingot status    what runs where
    ingot down      stop it
    """
