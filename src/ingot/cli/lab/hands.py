"""`ingot lab reset-bmc`, `password`, `image`: what a person would do in the machine room."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ingot.cli.lab.talking import ask, output_option, print_json
from ingot.cli.parts.state import StateFolder, state_option
from ingot.trust import random_token


@click.command("reset-bmc")
@click.argument("name")
@state_option
@click.option(
    "--seconds", default=5.0, show_default=True, type=click.FloatRange(0), help="How long it is away."
)
def reset_bmc(name: str, state: StateFolder, seconds: float) -> None:
    """Restart the BMC of a server: it is away for a while, and forgets its sessions."""
    ask(state, lambda lab: lab.reset_bmc(name, seconds))
    click.echo(f"{name}: the BMC restarts and is back in {seconds:g} s")


@click.command()
@click.argument("name")
@state_option
@click.option("--random", "made_up", is_flag=True, help="Make one up; `ingot lab manifests` prints it.")
def password(name: str, state: StateFolder, made_up: bool) -> None:
    """Change the password of a server's BMC. It is asked for, or read from standard input."""
    if made_up:
        new = random_token(20).reveal()
    elif sys.stdin.isatty():
        new = str(click.prompt("New password", hide_input=True, confirmation_prompt=True))
    else:
        new = sys.stdin.read().rstrip("\n")
    ask(state, lambda lab: lab.set_password(name, new))
    click.echo(f"{name}: the BMC has another password")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@state_option
@output_option
def image(file: Path, state: StateFolder, output: str) -> None:
    """Have an image served by the lab's depot, and print what a BareMetalHost needs to know of it."""
    added = ask(state, lambda lab: lab.add_image(file.read_bytes(), name=file.name))
    if output == "json":
        print_json(added)
        return
    click.echo(f"url: {added.url}\nchecksum: {added.sha256}\nchecksumType: sha256")
