"""`ingot lab list` and `ingot lab show`: the servers as a person in front of them would see them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click
import msgspec

from ingot.cli.lab.talking import ask, output_option, print_json
from ingot.cli.parts.state import StateFolder, state_option
from ingot.lab.client import Lab
from ingot.lab.record import CoreOs, PowerState
from ingot.lab.views import Runs, ServerView


@click.command("list")
@click.argument("pattern", default="*")
@state_option
@click.option("--power", type=click.Choice(["On", "Off"]), help="Only those that are on, or off.")
@click.option(
    "--runs", type=click.Choice(["ramdisk", "instance", "nothing"]), help="Only those that run this."
)
@output_option
def list_servers(
    pattern: str, state: StateFolder, power: PowerState | None, runs: Runs | None, output: str
) -> None:
    """Show the servers of a running farm whose name matches PATTERN: power, and what runs on them."""

    async def found(lab: Lab) -> list[ServerView]:
        return await lab.servers(pattern, power=power, runs=runs, history=output == "json")

    servers = ask(state, found)
    if output == "json":
        print_json(servers)
        return
    rows = [("NAME", "POWER", "RUNS", "HOST NAME", "DEPLOYED", "CLEANED", "FAULTS", "BMC")]
    rows += [_row(server) for server in servers]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _row(server: ServerView) -> tuple[str, str, str, str, str, str, str, str]:
    hostname = server.running.hostname if server.running else ""
    faults = list(_faults(server))
    return (
        server.name,
        server.power,
        f"held at {server.held_at}" if server.held_at else server.booted_into,
        hostname or "-",
        str(server.deployments),
        str(server.cleanings),
        ",".join(faults) or "-",
        server.bmc_address,
    )


def _faults(server: ServerView) -> Sequence[str]:
    return sorted(msgspec.to_builtins(server.faults_now))


@click.command()
@click.argument("name")
@state_option
@output_option
def show(name: str, state: StateFolder, output: str) -> None:
    """Show all of one server of a running farm, with its log."""
    server = ask(state, lambda lab: lab.server(name))
    if output == "json":
        print_json(server)
        return
    for title, value in _facts(server):
        click.echo(f"{title + ':':<14}{value}")
    click.echo("Log:")
    for line in server.log:
        click.echo(f"  {line.at:%Y-%m-%d %H:%M:%S}  {line.text}")


def _live(coreos: CoreOs) -> Iterator[tuple[str, str]]:
    """A CoreOS live system."""
    yield "CoreOS", f"{coreos.build}, from {'an ISO image' if coreos.how == 'iso' else 'the network'}"
    yield "Root", coreos.root
    yield "Arguments", coreos.arguments
    yield "Ignition", f"sha256 {coreos.ignition_sha256}" if coreos.ignition_sha256 else "none"
    yield "Network", ", ".join(coreos.keyfiles) or "as the network says"
    yield "Agent", coreos.container_image or f"none: {coreos.without_agent}"


def _facts(server: ServerView) -> Iterator[tuple[str, str]]:
    yield "Name", server.name
    yield "BMC", f"{server.bmc_address} (user {server.username}, profile {server.profile})"
    yield "MACs", ", ".join(server.macs)
    yield "Power", server.power
    yield "Runs", server.booted_into + (f", held at {server.held_at}" if server.held_at else "")
    if server.booted_into != "nothing" and server.booted is not None and server.booted.coreos is not None:
        yield from _live(server.booted.coreos)
    if server.running is not None:
        yield "Host name", server.running.hostname or "-"
        yield "Image", f"sha256 {server.running.image_sha256 or 'unknown'}, {server.running.image_size} bytes"
        if server.running.coreos:
            yield "CoreOS", server.running.coreos
    for device, written in server.written.items():
        yield "Written", f"{written.image} ({written.size} bytes) on {device}"
    for slot, url in server.media.items():
        yield "Medium", f"{url} in {slot}"
    yield "Counts", f"{server.boots} boots, {server.deployments} deployments, {server.cleanings} cleanings"
    yield "Faults", ", ".join(_faults(server)) or "none"
    for step in server.plan:
        lasts = "for good" if step.lasts is None else f"for {step.lasts:g} s"
        yield "Planned", f"after {step.after:g} s, {lasts}: {', '.join(msgspec.to_builtins(step.faults))}"
    if server.hold:
        yield "Hold", f"at {server.hold}"
