"""`ingot host show NAME`: all of one host. Only reads."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ingot.cli.explain import lines as explanation_lines
from ingot.cli.parts.api_access import ApiAccess, access_from, api_options
from ingot.cli.parts.sentences import errors_as_sentences

if TYPE_CHECKING:
    from ingot.api.baremetalhost import BareMetalHost
    from ingot.api.core import Event
    from ingot.cli.parts.companions import Beside
    from ingot.hosts.ownership import ImagesOfHost


@click.command()
@click.argument("name")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@api_options
def show(name: str, output: str, **options: Any) -> None:
    """All of a host: where it is and why, what it is made of, its firmware, and what stands beside it.

    \b
    ingot host show h17
    ingot host show -n rack-3 h17 -o json
    """
    with errors_as_sentences():
        host, beside, images, events = asyncio.run(_ask(access_from(options), name))
        if output == "json":
            click.echo(msgspec.json.format(msgspec.json.encode(as_data(host, beside, images))))
            return
        for line in lines(host, beside, images, events, datetime.now(UTC)):
            click.echo(line)


async def _ask(api: ApiAccess, name: str) -> tuple[BareMetalHost, Beside, ImagesOfHost, list[Event]]:
    from ingot.api.baremetalhost import BARE_METAL_HOSTS
    from ingot.api.meta import Key
    from ingot.cli.parts import explaining
    from ingot.cli.parts.companions import read_companions

    async with api.client() as client:
        host = await client.get(BARE_METAL_HOSTS, Key(api.namespace_for(client), name))
        return (
            host,
            await read_companions(client, host),
            await explaining.images(client, host),
            await explaining.last_events(client, BARE_METAL_HOSTS, host),
        )


def lines(
    host: BareMetalHost, beside: Beside, images: ImagesOfHost, events: list[Event], now: datetime
) -> list[str]:
    """The host as a person reads it."""
    from ingot.cli.parts.companions import companion_lines, firmware_lines
    from ingot.cli.parts.explaining import event_lines, image_lines
    from ingot.cli.parts.host_report import applied_lines, hardware_lines, report_on
    from ingot.hosts.explanation import explain

    report = report_on(host)
    known = [
        ("power", report.power),
        ("BMC", report.address),
        ("used by", report.consumer),
        *applied_lines(host),
    ]
    hardware = beside.details or host.hardware()
    return [
        *explanation_lines(explain(host), now),
        *image_lines(images),
        *_section("host", [(label, text) for label, text in known if text]),
        *_section("hardware", hardware_lines(hardware) if hardware is not None else []),
        *_section("firmware", firmware_lines(beside)),
        *_section("beside it", companion_lines(beside)),
        *event_lines(events, now),
    ]


def _section(title: str, rows: list[tuple[str, str]]) -> list[str]:
    width = max((len(label) for label, _ in rows), default=0) + 2
    return [f"{title}:", *(f"  {label + ':':<{width}}{text}" for label, text in rows)] if rows else []


def as_data(host: BareMetalHost, beside: Beside, images: ImagesOfHost) -> dict[str, Any]:
    """What `-o json` prints."""
    from ingot.api.wire import wire
    from ingot.cli.parts.companions import companions_as_data
    from ingot.cli.parts.host_report import report_on

    hardware = beside.details or host.hardware()
    return {
        **msgspec.to_builtins(report_on(host)),
        "provisioning": wire(host.status.provisioning),
        "images": images,
        "ramdisk": wire(host.status.ramdisk) if host.status.ramdisk is not None else None,
        "hardware": wire(hardware) if hardware is not None else None,
        **companions_as_data(beside),
    }
