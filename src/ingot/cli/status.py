"""`ingot status`: what runs where, and whether it is well. Only reads, and answers also when nothing runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click
import msgspec

from ingot.cli.parts.sentences import errors_as_sentences
from ingot.cli.parts.state import StateFolder, state_option
from ingot.embedded.supervisor import PartStatus, State, Status, holder, read_status

if TYPE_CHECKING:
    from ingot.cli.parts.progress import HostView

API_PATIENCE: Final = 10.0


class PartReport(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    state: str
    pid: int
    address: str
    since: datetime
    restarts: int
    why: str
    log: str


class HostReport(msgspec.Struct, rename="camel", kw_only=True):
    namespace: str
    name: str
    state: str
    goal: str
    arrived: bool
    failed: bool
    message: str


class Report(msgspec.Struct, rename="camel", kw_only=True):
    """What `-o json` prints. `ready`: all parts are; `hostsUnknown` says why `hosts` could not be asked for."""

    running: bool
    ready: bool
    pid: int
    state: str
    kubeconfig: str
    parts: list[PartReport]
    hosts: list[HostReport]
    hosts_unknown: str
    notice: str = ""
    """What is not as it should be although everything runs."""


@click.command()
@state_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def status(state: StateFolder, output: str) -> None:
    """What runs where, and whether it is well."""
    with errors_as_sentences():
        report = report_on(state)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(report)))
    else:
        _print(report)


def report_on(state: StateFolder) -> Report:
    held, told = holder(state.run), read_status(state.run)
    running = held is not None
    # What was written by a process that is gone tells which parts there are, and nothing about how they do.
    current = told if held is not None and told is not None and told.supervisor_pid == held.pid else None
    parts = _parts(state, told, stopped=current is None) if told else []
    hosts, unknown = _hosts(state) if current else ([], "the API does not run")
    return Report(
        running=running,
        ready=current is not None and current.all_ready,
        pid=held.pid if held else 0,
        state=str(state.path),
        kubeconfig=str(state.kubeconfig),
        parts=parts,
        hosts=hosts,
        hosts_unknown=unknown,
        notice=notice_of(state, {part.name for part in parts}) if current else "",
    )


def _parts(state: StateFolder, told: Status, *, stopped: bool) -> list[PartReport]:
    def report(part: PartStatus) -> PartReport:
        gone = stopped and part.state is not State.FAILED
        return PartReport(
            name=part.name,
            state=State.STOPPED if gone else part.state,
            pid=0 if stopped else part.pid,
            address=part.address,
            since=datetime.fromtimestamp(part.since, UTC),
            restarts=part.restarts,
            why="" if gone else part.why,
            log=str(state.run / part.log),
        )

    return [report(part) for part in told.parts]


def notice_of(state: StateFolder, parts: Collection[str]) -> str:
    """What these parts have noticed; one that does not run any more may have left something behind."""
    found = []
    for part, file in (("operator", state.backend_notice), ("images", state.images_notice)):
        if part in parts:
            with contextlib.suppress(OSError):
                found.append(file.read_text().strip())
    return "; ".join(filter(None, found))


def _hosts(state: StateFolder) -> tuple[list[HostReport], str]:
    from ingot.kube import KubeError

    try:
        views = asyncio.run(_ask(state))
    except TimeoutError:
        return [], f"the API does not answer within {API_PATIENCE:g} s"
    except (KubeError, OSError) as error:
        return [], str(error)
    return [
        HostReport(
            namespace=view.key.namespace,
            name=view.key.name,
            state=view.state,
            goal=view.goal,
            arrived=view.arrived,
            failed=view.failed,
            message=view.sentence,
        )
        for view in views
    ], ""


async def _ask(state: StateFolder) -> list[HostView]:
    from ingot.api.baremetalhost import BARE_METAL_HOSTS
    from ingot.cli.parts.progress import views_of
    from ingot.kube import Client

    async with asyncio.timeout(API_PATIENCE), Client.from_kubeconfig(state.kubeconfig) as client:
        return views_of((await client.list(BARE_METAL_HOSTS)).items)


def _print(report: Report) -> None:
    if report.running:
        well = "everything is ready" if report.ready else "not everything is ready"
        click.echo(f"running as process {report.pid}, {well}; state in {report.state}")
    else:
        click.echo(f"not running; state in {report.state}")
    if report.parts:
        click.echo(
            f"\n{'PART':<12} {'STATE':<11} {'PID':>7}  {'SINCE':<9} {'RESTARTS':>8}  ADDRESS, OR WHY NOT"
        )
    for part in report.parts:
        pid = part.pid or "-"
        since = part.since.astimezone().strftime("%H:%M:%S")
        told = part.why or part.address
        click.echo(f"{part.name:<12} {part.state:<11} {pid:>7}  {since:<9} {part.restarts:>8}  {told}")
    if report.notice:
        click.echo(f"\nnotice: {report.notice}")
    if report.hosts:
        click.echo(f"\n{'HOST':<24} {'STATE':<15} MESSAGE")
        for host in report.hosts:
            click.echo(f"{host.namespace + '/' + host.name:<24} {host.state:<15} {host.message}".rstrip())
    elif report.running:
        click.echo(f"\nhosts: {report.hosts_unknown or 'none'}")
