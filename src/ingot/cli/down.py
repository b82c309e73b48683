"""`ingot down`: stop what `ingot up` started, wherever that was called. Nothing runs afterwards, also after a crash."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from contextlib import suppress
from typing import Final

import click

from ingot.cli.parts.sentences import errors_as_sentences
from ingot.cli.parts.show import Lines
from ingot.cli.parts.state import StateFolder, state_option
from ingot.embedded.supervisor import Holder, end_remains, hold, holder, read_status

LOOK_EVERY: Final = 0.1
POLITE_FOR: Final = 60.0
PATIENCE: Final = 90.0


@click.command()
@state_option
@click.option(
    "--wipe", is_flag=True, help="Then remove the state folder: hosts, images, credentials, everything."
)
@click.option("--yes", is_flag=True, help="With --wipe: do not ask.")
def down(state: StateFolder, wipe: bool, yes: bool) -> None:
    """Stop what `ingot up` started, and wait until it has stopped."""
    if wipe:
        _must_be_ours(state)
    with errors_as_sentences():
        held = holder(state.run)
        if held is not None:
            _stop(state, held)
        else:
            _sweep(state)
        if wipe:
            _wipe(state, yes)


def _stop(state: StateFolder, held: Holder) -> None:
    show = Lines(known=read_status(state.run))
    began = time.monotonic()
    _ask(held)
    insisted = False
    while holder(state.run) == held:
        if (status := read_status(state.run)) is not None:
            show.parts(status)
        passed = time.monotonic() - began
        if passed > PATIENCE:
            raise click.ClickException(
                f"process {held.pid} does not end. Its log is {state.log}; `kill -9 {held.pid}` ends it and its parts."
            )
        if passed > POLITE_FOR and not insisted:
            show.say("still not stopped; it is asked again, and stops without waiting for its parts")
            _ask(held)
            insisted = True
        time.sleep(LOOK_EVERY)
    if (status := read_status(state.run)) is not None:
        show.parts(status)
    click.echo("Everything has stopped.")


def _ask(held: Holder) -> None:
    if not held.pid:
        # Process 0 would be all of our own group.
        raise click.ClickException(
            "everything runs, but not as a process that can be seen from here. Stop it where it was started: "
            "in the container that holds it, if there is one."
        )
    with suppress(ProcessLookupError):
        os.kill(held.pid, signal.SIGTERM)


def _sweep(state: StateFolder) -> None:
    """Nobody holds the folder; what a killed supervisor left behind may still run."""
    ended: list[int] = []
    if state.run.exists():
        with hold(state.run):
            ended = asyncio.run(end_remains(state.run))
    if ended:
        click.echo(
            f"Nothing was running but {len(ended)} leftovers of a run that was killed; they are ended."
        )
    else:
        click.echo(f"Nothing runs in {state.path}.")


def _must_be_ours(state: StateFolder) -> None:
    if strangers := state.strangers():
        raise click.ClickException(
            f"{state.path} holds things that Ingot did not put there ({', '.join(strangers[:5])}); it is not removed. "
            "Move them away first, or remove the folder yourself."
        )


def _wipe(state: StateFolder, yes: bool) -> None:
    if state.is_empty():
        click.echo(f"There is nothing to remove in {state.path}.")
        return
    if not yes:
        click.confirm(
            f"Remove {state.path} with all hosts, images and credentials in it? There is no way back.",
            abort=True,
        )
    with hold(state.run):
        # Looked at again: the question may have stood there for a while.
        _must_be_ours(state)
        shutil.rmtree(state.path)
    click.echo(f"Removed {state.path}.")
