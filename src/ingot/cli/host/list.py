"""`ingot host list`: the hosts of a namespace, or of all, with why each is where it is."""

from __future__ import annotations

import asyncio
import shutil
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ingot.cli.parts.api_access import ApiAccess, access_from, api_options
from ingot.cli.parts.sentences import errors_as_sentences

if TYPE_CHECKING:
    from ingot.cli.parts.host_report import HostReport


@click.command("list")
@click.option("-A", "--all-namespaces", is_flag=True, help="The hosts of all namespaces.")
@click.option("-l", "--selector", metavar="LABELS", default="", help="Only hosts with these labels: rack=3.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@api_options
def list_hosts(all_namespaces: bool, selector: str, output: str, **options: Any) -> None:
    """The hosts, where they are, and why.

    \b
    ingot host list
    ingot host list -A -l rack=3 -o json
    """
    with errors_as_sentences():
        where, found = asyncio.run(_ask(access_from(options), everywhere=all_namespaces, selector=selector))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found)))
    elif not found:
        click.echo(
            f"No hosts in {where}." + ("" if all_namespaces else " -A shows those of all namespaces."),
            err=True,
        )
    else:
        # Cut to the terminal only where there is one: whoever reads it by program gets all of it.
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for line in lines(found, datetime.now(UTC), everywhere=all_namespaces, width=width):
            click.echo(line)


async def _ask(api: ApiAccess, *, everywhere: bool, selector: str) -> tuple[str, list[HostReport]]:
    from ingot.api.baremetalhost import BARE_METAL_HOSTS
    from ingot.cli.parts.host_report import report_on

    async with api.client() as client:
        namespace = "" if everywhere else api.namespace_for(client)
        hosts = (await client.list(BARE_METAL_HOSTS, namespace=namespace, labels=selector)).items
    reports = sorted((report_on(host) for host in hosts), key=lambda found: (found.namespace, found.name))
    return f"namespace {namespace}" if namespace else "any namespace", reports


def lines(
    found: list[HostReport], now: datetime, *, everywhere: bool = False, width: int | None = None
) -> list[str]:
    from ingot.cli.parts.ages import age
    from ingot.cli.parts.host_report import table

    head = ("NAME", "STATE", "POWER", "CONSUMER", "ERROR", "AGE", "WHY")
    rows = [
        (
            one.name,
            one.place,
            one.power,
            one.consumer,
            one.error_type,
            age(one.created, now),
            one.error or one.why,
        )
        for one in found
    ]
    if everywhere:
        spaced = [(one.namespace, *row) for one, row in zip(found, rows, strict=True)]
        return table([("NAMESPACE", *head), *spaced], width)
    return table([head, *rows], width)
