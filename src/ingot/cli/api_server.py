"""`ingot api-server`: run the embedded Kubernetes API until it is told to stop; back its objects up, and put them back."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import click
from click.core import ParameterSource

from ingot.cli.parts.listen import AddressAndPort, Listen, log_to_stderr, told_to_stop
from ingot.cli.parts.state import StateFolder, state_option
from ingot.embedded.server import StateError, backup, lean_process, restore, serve


@click.group("api-server", invoke_without_command=True)
@state_option
@click.option(
    "--listen",
    type=AddressAndPort(),
    default="127.0.0.1:6443",
    show_default=True,
    help="Where to listen; port 0 takes any free one.",
)
@click.pass_context
def api_server(context: click.Context, state: StateFolder, listen: Listen) -> None:
    """Run the embedded Kubernetes API.

    Writes STATE/kubeconfig and STATE/kubeconfig-readonly, prints one line when it is ready, and runs until SIGTERM or Ctrl-C.
    """
    if context.invoked_subcommand:
        _refuse_options_of_serving(context)
        return
    log_to_stderr()
    lean_process()
    try:
        asyncio.run(_serve_until_stopped(state.path, *listen))
    except StateError as error:
        raise click.ClickException(str(error)) from error
    except BaseExceptionGroup as group:
        mine, rest = group.split(StateError)
        if mine is None or rest is not None:
            raise
        raise click.ClickException(str(_first(mine))) from group


@api_server.command("backup")
@state_option
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup_command(state: StateFolder, file: Path) -> None:
    """Write all objects to FILE. The server may run meanwhile.

    FILE holds Secrets and gets mode 0600. An older FILE is replaced once the new one is whole.
    """
    try:
        saved = backup(state.path, file.absolute())
    except StateError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{saved.objects} objects, up to version {saved.version}, are in {file}")


@api_server.command("restore")
@state_option
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def restore_command(state: StateFolder, file: Path) -> None:
    """Replace all objects by those in FILE, a backup. The server must not run.

    What is replaced is kept beside it. Clients are told to list again when they come back.
    """
    try:
        restored = restore(file.absolute(), state.path)
    except StateError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{restored.objects} objects from {file} are in place; versions go on from {restored.version}")
    if restored.kept:
        click.echo(f"what was there before is in {restored.kept}")


def _refuse_options_of_serving(context: click.Context) -> None:
    """An option that would be ignored is a mistake somebody should hear of."""
    for name in ("state", "listen"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} goes after {context.invoked_subcommand}, or not at all")


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
