"""Following a host from a command: `--wait`, and what is told meanwhile.

A command says what it waits for with a judge, a pure function over the host. Each new sentence about the host is printed once.
The wait ends when the judge says so, or when `--timeout` is over; what was asked for goes on in either case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from ingot.api.baremetalhost import BareMetalHost
    from ingot.kube import Client

Command = TypeVar("Command", bound=Callable[..., Any])

SETTLES: Final = 2.0
"""Seconds without a change after which a verdict that could be overtaken by the next write is believed."""


@dataclass(frozen=True, slots=True)
class Done:
    """What was waited for is there."""


@dataclass(frozen=True, slots=True)
class Failed:
    """It will not be there without somebody's help, or not soon."""

    why: str


Judge = Callable[["BareMetalHost | None"], Done | Failed | None]
"""What a host says about what is waited for; None: it goes on. The host is None when it does not exist any more."""


def wait_options(*, default: bool = False) -> Callable[[Command], Command]:
    """`--wait` and `--timeout`."""

    def add(command: Command) -> Command:
        command = click.option(
            "--timeout",
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            help="How long to wait at most. What was asked for goes on afterwards.",
        )(command)
        return click.option(
            "--wait/--no-wait",
            default=default,
            show_default=True,
            help="Wait until it is done, and tell what happens. The exit code is 0 only when it is done.",
        )(command)

    return add


def when(done: Callable[[BareMetalHost], bool], *, noticed: Callable[[BareMetalHost], bool]) -> Judge:
    """Done when the host is so; failed when it has an error and has noticed what was asked of it, or when it is gone."""

    def judge(host: BareMetalHost | None) -> Done | Failed | None:
        if host is None:
            return Failed("it was deleted")
        if done(host):
            return Done()
        if host.status.error_type and _is_about(host) and noticed(host):
            return Failed(host.status.error_message)
        return None

    return judge


def well(host: BareMetalHost) -> bool:
    """Whether the status speaks of the host as it is written now, and of no error."""
    return _is_about(host) and not host.status.error_type


def _is_about(host: BareMetalHost) -> bool:
    from ingot.api.baremetalhost import ConditionType

    seen = (one.observed_generation for one in host.status.conditions if one.type == ConditionType.READY)
    return next(seen, None) == host.metadata.generation


async def follow(
    client: Client,
    host: BareMetalHost,
    judge: Judge,
    *,
    timeout: float | None,
    settles: float = 0.0,
    tell: Callable[[BareMetalHost], str | None],
    known: str = "",
    say: Callable[[str], None] = click.echo,
) -> Done | Failed:
    """Watch the host until the judge has a verdict. `tell`: what to say of the host now, None for nothing; said once,
    and not at all where it is what was `known` before.
    """
    from ingot.api.baremetalhost import BARE_METAL_HOSTS
    from ingot.kube import Informer

    changed = asyncio.Event()
    told = known

    def look(found: BareMetalHost | None) -> None:
        nonlocal told
        changed.set()
        if found is None or found.metadata.uid != host.metadata.uid:
            return
        if (said := tell(found)) is not None and said != told:
            told = said
            say(f"  {said}")

    namespace, name = host.key
    hosts = Informer(client, BARE_METAL_HOSTS, namespace=namespace, fields=f"metadata.name={name}")
    hosts.subscribe(lambda change: look(change.new))
    watching = asyncio.create_task(hosts.run())
    verdict: Done | Failed | None = None
    try:
        async with asyncio.timeout(timeout):
            await hosts.synced()
            while True:
                changed.clear()
                found = hosts.get(host.key)
                same = found is not None and found.metadata.uid == host.metadata.uid
                verdict = judge(found if same else None)
                if verdict is None:
                    await changed.wait()
                elif await _unchanged(changed, settles):
                    return verdict
    except TimeoutError:
        return Failed(f"it is not done after {timeout:g} s, and goes on")
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _unchanged(changed: asyncio.Event, seconds: float) -> bool:
    if not seconds:
        return True
    try:
        async with asyncio.timeout(seconds):
            await changed.wait()
    except TimeoutError:
        return True
    return False


def state_and_why(host: BareMetalHost) -> str:
    """What is told of a host while a command waits for it."""
    from ingot.hosts.explanation import explain

    found = explain(host)
    return f"{found.state}: {found.error or found.why}"


def sayer(output: str) -> Callable[[str], None]:
    """Where progress is told: beside what is printed for programs, never between."""

    def say(text: str) -> None:
        click.echo(text, err=output == "json")

    return say
