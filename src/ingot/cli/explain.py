"""`ingot explain KIND/NAME`: an object in words. Only reads."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from ingot.cli.parts.ages import ago, stamp
from ingot.cli.parts.api_access import ApiAccess, access_from, api_options
from ingot.cli.parts.sentences import errors_as_sentences

if TYPE_CHECKING:
    from ingot.hosts.explanation import Explanation

HOST: Final = frozenset({"bmh", "bmhost", "baremetalhost", "baremetalhosts", "baremetalhosts.metal3.io"})
MACHINE: Final = frozenset({"machine", "machines", "machines.machine.openshift.io"})
CLAIM: Final = frozenset({"hostclaim", "hostclaims", "hostclaims.metal3.io"})


@click.command()
@click.argument("what", metavar="KIND/NAME")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@api_options
def explain(what: str, output: str, **options: Any) -> None:
    """Why a host is where it is, since when, what comes next, what you can do, and who owns which image. Of a Machine or a
    HostClaim: which host it has, or why it has none.

    \b
    ingot explain bmh/h17
    ingot explain machine/worker-0
    ingot explain -n rack-3 hostclaim/mine -o json
    """
    kind, slash, name = what.partition("/")
    if not slash or not name or kind.lower() not in HOST | MACHINE | CLAIM:
        raise click.BadParameter(
            f"{what!r}: write the kind and the name, as in bmh/h17, machine/worker-0 or hostclaim/mine."
        )
    with errors_as_sentences():
        data, told = asyncio.run(_ask(access_from(options), kind.lower(), name))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(data)))
        return
    for line in told:
        click.echo(line)


async def _ask(api: ApiAccess, kind: str, name: str) -> tuple[Any, list[str]]:
    """What is told, for a program and for a person."""
    from ingot.api.baremetalhost import BARE_METAL_HOSTS
    from ingot.api.hostclaim import HOST_CLAIMS
    from ingot.api.machine import MACHINES
    from ingot.api.meta import Key
    from ingot.cli.parts import explaining
    from ingot.hosts.explanation import explain

    now = datetime.now(UTC)
    async with api.client() as client:
        key = Key(api.namespace_for(client), name)
        if kind in HOST:
            host = await client.get(BARE_METAL_HOSTS, key)
            found, images = explain(host), await explaining.images(client, host)
            events = await explaining.last_events(client, BARE_METAL_HOSTS, host)
            return (
                {**msgspec.to_builtins(found), "images": images},
                [*lines(found, now), *explaining.image_lines(images), *explaining.event_lines(events, now)],
            )
        if kind in MACHINE:
            machine = await client.get(MACHINES, key)
            claim = await explaining.machine(client, machine)
            events = await explaining.last_events(client, MACHINES, machine)
        else:
            wish = await client.get(HOST_CLAIMS, key)
            claim = await explaining.claim(client, wish)
            events = await explaining.last_events(client, HOST_CLAIMS, wish)
        return claim, [*explaining.claim_lines(claim), *explaining.event_lines(events, now)]


def lines(found: Explanation, now: datetime) -> list[str]:
    """The explanation as a person reads it."""
    since = f" since {stamp(found.since)} ({ago(found.since, now)})" if found.since else ""
    told = [f"{found.host} is {found.state}{since}; status {found.status}."]
    rows = [("why", found.why), ("next", f"{found.next}, {found.when}"), ("to do", found.do)]
    if found.error:
        rows.insert(0, ("error", found.error))
        rows.insert(1, ("failures", f"{found.failures} in a row"))
    return told + [
        f"  {label + ':':<10}{text}"
        for label, text in rows
        if (text and text != found.error) or label == "error"
    ]
