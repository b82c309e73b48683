"""`ingot service …`: the services behind the operator, each as the process that a pod or the supervisor runs.

Settings come from the environment; a setting that is wrong ends the command with a sentence and exit code 1.
"""

from __future__ import annotations

import asyncio
import os

import click

from ingot.services import environment
from ingot.services import ironic as ironic_service
from ingot.services.errors import ServiceError, SettingsError
from ingot.services.settings import IronicSettings


@click.group()
def service() -> None:
    """Run one of the services behind the operator. Settings come from the environment."""


def _progress(line: str) -> None:
    click.echo(line, err=True)


@service.command()
def ironic() -> None:
    """Run Ironic (API and conductor in one process) until it is told to stop."""
    try:
        settings = IronicSettings.from_environment(os.environ)
        command = ironic_service.made_ready(settings, os.environ, _progress)
    except ServiceError as error:
        raise click.ClickException(str(error)) from error
    except (
        OSError
    ) as error:  # a folder or file of the state that cannot be made; it names the path and the reason
        raise click.ClickException(f"Ironic cannot be made ready: {error}") from error
    click.echo(f"Ironic {settings.version} starts at {settings.api_socket or settings.api_url}")
    command.become()


@service.command()
def front() -> None:
    """Run the front server: the three calls of agents, and the files that Ironic publishes, for the provisioning side."""
    from ingot.services.front import serve

    try:
        settings = IronicSettings.from_environment(os.environ)
        if not settings.reverse_proxy:
            raise SettingsError(
                "IRONIC_REVERSE_PROXY_SETUP is not true: Ironic itself listens where the front server would."
            )
        also = f", boot files at {settings.boot_url}" if settings.network_boot else ""
        asyncio.run(serve(settings, lambda: click.echo(f"front ready at {settings.base_url}{also}")))
    except ServiceError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:  # the port is taken, or a certificate cannot be read; it says which
        raise click.ClickException(f"The front server cannot start: {error}") from error


@service.command("ironic-env")
@click.option(
    "--version", default=environment.DEFAULT_VERSION, show_default=True, help="The version of Ironic."
)
def ironic_env(version: str) -> None:
    """Make Ironic's own virtual environment ahead of time, and print where it is."""
    try:
        made = environment.ensure(version, _progress)
    except ServiceError as error:
        raise click.ClickException(str(error)) from error
    click.echo(made.folder)
