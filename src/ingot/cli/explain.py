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
    from ingot.api.baremetalhost import BareMetalHost
    from ingot.api.core import Event
    from ingot.hosts.explanation import Explanation
    from ingot.kube import Client

KINDS: Final = frozenset({"bmh", "bmhost", "baremetalhost", "baremetalhosts"})
MOST_EVENTS: Final = 5


@click.command()
@click.argument("what", metavar="bmh/NAME")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@api_options
def explain(what: str, output: str, **options: Any) -> None:
    """Why a host is where it is, since when, what comes next, and what you can do.

    \b
    ingot explain bmh/h17
    ingot explain -n rack-3 bmh/h17 -o json
    """
    kind, slash, name = what.partition("/")
    if not slash or not name or kind.lower() not in KINDS:
        raise click.BadParameter(f"{what!r}: write the kind and the name of a host, as in bmh/h17.")
    with errors_as_sentences():
        found, events = asyncio.run(_ask(access_from(options), name))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found)))
        return
    now = datetime.now(UTC)
    for line in [*lines(found, now), *event_lines(events, now)]:
        click.echo(line)


async def _ask(api: ApiAccess, name: str) -> tuple[Explanation, list[Event]]:
    from ingot.api.baremetalhost import BARE_METAL_HOSTS
    from ingot.api.meta import Key
    from ingot.hosts.explanation import explain

    async with api.client() as client:
        key = Key(api.namespace_for(client), name)
        host = await client.get(BARE_METAL_HOSTS, key)
        return explain(host), await last_events(client, host)


async def last_events(client: Client, host: BareMetalHost) -> list[Event]:
    """What was told of this host last, the newest at the end."""
    from ingot.api.core import EVENTS

    namespace, name = host.key
    about = f"involvedObject.kind=BareMetalHost,involvedObject.name={name}"
    events = (await client.list(EVENTS, namespace=namespace, fields=about)).items
    told = [event for event in events if event.involved_object.uid == host.metadata.uid]
    told.sort(key=lambda event: event.last_timestamp or datetime.min.replace(tzinfo=UTC))
    return told[-MOST_EVENTS:]


def event_lines(events: list[Event], now: datetime) -> list[str]:
    told = [f"  {ago(event.last_timestamp, now)}  {event.reason}: {event.message}" for event in events]
    return ["lately:", *told] if told else []


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
