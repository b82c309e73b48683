"""`ingot api-server`: run the embedded Kubernetes API until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import click

from ingot.cli.parts.listen import AddressAndPort, Listen, log_to_stderr, told_to_stop
from ingot.cli.parts.state import StateFolder, state_option
from ingot.embedded.server import StateError, serve


@click.command("api-server")
@state_option
@click.option(
    "--listen",
    type=AddressAndPort(),
    default="127.0.0.1:6443",
    show_default=True,
    help="Where to listen; port 0 takes any free one.",
)
def api_server(state: StateFolder, listen: Listen) -> None:
    """Run the embedded Kubernetes API.

    Writes STATE/kubeconfig and STATE/kubeconfig-readonly, prints one line when it is ready, and runs until SIGTERM or Ctrl-C.
    """
    log_to_stderr()
    try:
        asyncio.run(_serve_until_stopped(state.path, *listen))
    except StateError as error:
        raise click.ClickException(str(error)) from error
    except BaseExceptionGroup as group:
        mine, rest = group.split(StateError)
        if mine is None or rest is not None:
            raise
        raise click.ClickException(str(_first(mine))) from group


def _first(group: BaseExceptionGroup[StateError]) -> BaseException:
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


async def _serve_until_stopped(state: Path, host: str, port: int) -> None:
    stop = told_to_stop()
    async with serve(state, host, port) as running:
        # Whoever waited for this line may be gone; that is no reason not to serve the others.
        with contextlib.suppress(BrokenPipeError):
            click.echo(f"api-server ready at {running.url} (kubeconfig: {running.kubeconfig})")
        await stop.wait()
