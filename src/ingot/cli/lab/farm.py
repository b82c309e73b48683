"""`ingot lab farm`: the process that the simulated servers live in."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from ingot.cli.parts.listen import AddressAndPort, Listen, log_to_stderr, told_to_stop
from ingot.cli.parts.state import StateFolder, state_option
from ingot.lab.errors import LabError
from ingot.lab.farm import Farm
from ingot.lab.hardware import BUILDS
from ingot.lab.labfile import NETWORK
from ingot.lab.profiles import PROFILES
from ingot.lab.settings import FarmSettings, Timings


@click.command()
@state_option
@click.option(
    "--listen",
    type=AddressAndPort(),
    default="127.0.0.1:0",
    show_default=True,
    help="Where the control face listens.",
)
@click.option(
    "--count",
    default=3,
    show_default=True,
    type=click.IntRange(0, 2000),
    help="How many servers there are; a lab only grows.",
)
@click.option(
    "--network",
    default=NETWORK,
    show_default=True,
    help="Where the servers of a new lab have their addresses, counted up from its start.",
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=click.Choice(list(PROFILES)),
    default=["generic"],
    show_default=True,
    help="Whose BMC new servers have; given more than once, they take turns.",
)
@click.option(
    "--build",
    "builds",
    multiple=True,
    type=click.Choice(list(BUILDS)),
    default=["standard"],
    show_default=True,
    help="What is in new servers: drives, memory, processors; given more than once, they take turns.",
)
@click.option("--agent-api", required=True, help="Base URL of Ironic's API, for the ramdisk.")
@click.option(
    "--agent-ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Who signed that API's certificate. Default: the installation's CA.",
)
@click.option("--ipxe-url", default="", help="The script that a boot from the network loads.")
@click.option(
    "--boot-seconds",
    default=Timings().boot,
    show_default=True,
    type=click.FloatRange(0),
    help="Time of a boot.",
)
@click.option(
    "--disk-speed",
    default=0.0,
    type=click.FloatRange(0),
    help="MiB per second of the disks. Default: as fast as it goes.",
)
def farm(
    state: StateFolder,
    listen: Listen,
    count: int,
    network: str,
    profiles: tuple[str, ...],
    builds: tuple[str, ...],
    agent_api: str,
    agent_ca: Path | None,
    ipxe_url: str,
    boot_seconds: float,
    disk_speed: float,
) -> None:
    """Run the simulated servers.

    Addresses, passwords, disks and what runs on the servers are kept in the state folder; starting again goes on where it was.
    """
    log_to_stderr()
    try:
        settings = FarmSettings(
            state=state.path,
            servers=count,
            network=network,
            profiles=profiles,
            builds=builds,
            listen_host=listen.host,
            listen_port=listen.port,
            agent_api=agent_api,
            agent_ca=agent_ca,
            ipxe_url=ipxe_url,
            timings=Timings(boot=boot_seconds, disk_mib_per_second=disk_speed),
        )
        asyncio.run(_run(settings))
    except LabError as error:
        raise click.ClickException(str(error)) from error


async def _run(settings: FarmSettings) -> None:
    stop = told_to_stop()
    async with Farm.running(settings) as running:
        count = len(running.lab.servers)
        click.echo(f"lab ready: {count} {'server' if count == 1 else 'servers'} at {running.url}")
        sys.stdout.flush()
        await stop.wait()
