"""What a person asks of one host, as one kind of thing: read the host, decide, write only what changes, and wait if told to.

A verb of `ingot host` is a pure function from the host to an `Errand`, or a refusal in a sentence. The write is guarded by the
version that was read: where somebody else was faster, it is decided again. Waiting is in `following`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import msgspec

from ingot.cli.parts.api_access import ApiAccess, access_from, api_options
from ingot.cli.parts.following import Done, Failed, follow, sayer, state_and_why, wait_options, when
from ingot.cli.parts.sentences import errors_as_sentences

if TYPE_CHECKING:
    from ingot.api.baremetalhost import BareMetalHost
    from ingot.api.meta import Key
    from ingot.kube import Client

Command = TypeVar("Command", bound=Callable[..., Any])

TRIES: Final = 8
"""How often somebody else may be faster before the person is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What is to be changed, and how the person and `--wait` know that it was done."""

    patch: Mapping[str, Any] | None
    """A merge patch of the host; None when nothing has to be changed."""
    said: str
    """What was asked for, after the host's name: `is to be switched off`."""
    done: Callable[[BareMetalHost], bool]
    end: str
    """What is said when it was done, after the host's name: `is off`."""
    noticed: Callable[[BareMetalHost], bool] | None = None
    """Whether an error that the host has now came after this; by default, when its status has changed since."""
    settles: float = 0.0
    """Seconds for which the verdict has to hold, where the next write could say otherwise."""


Decision = Callable[["BareMetalHost"], Errand]
Preparation = Callable[["Client", "BareMetalHost"], Awaitable[None]]


class Refusal(click.ClickException):
    """Why it is not done to this host."""


class ErrandReport(msgspec.Struct, rename="camel", kw_only=True):
    """What `-o json` prints. `done`: null when nobody waited."""

    host: str
    asked: str
    done: bool | None
    state: str
    error: str


def errand_options(command: Command) -> Command:
    """NAME, `--wait`, `--timeout`, `-o`, and where the API is. The command takes them as `**options` to `run_errand`."""
    for option in (
        api_options,
        click.option(
            "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
        ),
        wait_options(),
        click.argument("name"),
    ):
        command = option(command)
    return command


def run_errand(options: Mapping[str, Any], decide: Decision, *, prepare: Preparation | None = None) -> None:
    """Do it, tell it, wait for it where asked to. Raises `click.ClickException` when it was not done."""
    with errors_as_sentences():
        report = asyncio.run(
            _run(
                access_from(options),
                options["name"],
                decide,
                prepare,
                say=sayer(options["output"]),
                wait=options["wait"],
                timeout=options["timeout"],
            )
        )
    if options["output"] == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(report)))
    if report.done is False:
        raise click.ClickException(f"{report.host}: {report.error}")


async def _run(
    api: ApiAccess,
    name: str,
    decide: Decision,
    prepare: Preparation | None,
    *,
    say: Callable[[str], None],
    wait: bool,
    timeout: float | None,
) -> ErrandReport:
    from ingot.api.baremetalhost import BARE_METAL_HOSTS, Annotation
    from ingot.api.meta import Key

    async with api.client() as client:
        key = Key(api.namespace_for(client), name)
        before, written, errand = await write(client, key, decide, prepare)
        say(f"{key} {errand.said}")
        verdict = None
        if wait:
            paused = Annotation.PAUSED in written.metadata.annotations
            judge = when(errand.done, noticed=errand.noticed or (lambda found: found.status != before.status))
            verdict = await follow(
                client,
                written,
                judge,
                timeout=timeout,
                settles=errand.settles,
                tell=state_and_why,
                # That it is paused is why nothing will happen; what else was true before is no news.
                known="" if paused else state_and_why(before),
                say=say,
            )
            written = await client.get(BARE_METAL_HOSTS, key)
            if isinstance(verdict, Done):
                say(f"{key} {errand.end}")
    return ErrandReport(
        host=str(key),
        asked=errand.said,
        done=None if verdict is None else isinstance(verdict, Done),
        state=written.status.provisioning.state,
        error=verdict.why if isinstance(verdict, Failed) else written.status.error_message,
    )


async def write(
    client: Client, key: Key, decide: Decision, prepare: Preparation | None
) -> tuple[BareMetalHost, BareMetalHost, Errand]:
    """The host as it was decided on, as it is now, and what was decided."""
    from ingot.api.baremetalhost import BARE_METAL_HOSTS
    from ingot.kube import Conflict

    for tries_left in reversed(range(TRIES)):
        host = await client.get(BARE_METAL_HOSTS, key)
        errand = decide(host)
        if prepare is not None:
            await prepare(client, host)
            prepare = None
        if errand.patch is None:
            return host, host, errand
        try:
            written = await client.patch(
                BARE_METAL_HOSTS, key, errand.patch, resource_version=host.metadata.resource_version
            )
            return host, written, errand
        except Conflict:
            if not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


def annotated(name: str, value: str | None) -> dict[str, Any]:
    """The patch that sets an annotation, or removes it."""
    return {"metadata": {"annotations": {name: value}}}


def must_not_be_used(host: BareMetalHost, *, force: bool) -> None:
    """A host with a consumer is somebody's: what is done to it behind that one's back is undone, or worse."""
    by = host.spec.consumer_ref
    if by is not None and not force:
        raise Refusal(
            f"{host.key} is used by {by.kind} {by.name}, which decides what is installed on it. Change that object, or say "
            "--force if it is not in charge any more."
        )


def must_stay(host: BareMetalHost) -> None:
    if host.metadata.deletion_timestamp is not None:
        raise Refusal(f"{host.key} is being deleted, and nothing else is done to it any more.")
