"""`ingot host delete NAME`: delete a host, tell what that waits for, and with --force let it go without its back end.

A forced delete asks for the deletion first and for the force afterwards: a host that stays although somebody meant to delete it
must not carry an annotation that would make its next deletion a forced one.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import click

from ingot.cli.parts.api_access import ApiAccess, access_from, api_options
from ingot.cli.parts.following import Done, follow, state_and_why, wait_options
from ingot.cli.parts.sentences import errors_as_sentences

if TYPE_CHECKING:
    from ingot.api.baremetalhost import BareMetalHost
    from ingot.api.meta import Key
    from ingot.kube import Client


@click.command()
@click.argument("name")
@click.option(
    "--force",
    is_flag=True,
    help="Let the host go at once, without the back end. What that leaves behind is printed.",
)
@wait_options(default=True)
@api_options
def delete(name: str, force: bool, wait: bool, timeout: float | None, **options: Any) -> None:
    """Delete a host.

    Its system is removed, its machine switched off, and the back end forgets it. What that waits for is printed.

    With --force the host goes although nobody could do any of that: its machine may go on running what is installed. The record
    in the back end is removed as soon as the back end answers again.

    \b
    ingot host delete h17
    ingot host delete -n rack-3 h17 --force
    """
    with errors_as_sentences():
        gone = asyncio.run(_delete(access_from(options), name, force=force, timeout=timeout if wait else 0))
    if wait and not gone:
        raise click.ClickException(
            f"{name} is not gone after {timeout:g} s; its deletion goes on. Without the back end: --force."
        )


async def _delete(api: ApiAccess, name: str, *, force: bool, timeout: float | None) -> bool:
    """Whether the host is gone. A timeout of 0: nobody waits; None: as long as it takes."""
    from ingot.api.baremetalhost import BARE_METAL_HOSTS
    from ingot.api.meta import Key
    from ingot.hosts.leaving.leftovers import left_behind
    from ingot.kube import NotFound

    async with api.client() as client:
        key = Key(api.namespace_for(client), name)
        host = await client.get(BARE_METAL_HOSTS, key)
        with contextlib.suppress(NotFound):
            # It may have been gone before this, or be gone with the first of the two.
            await client.delete(BARE_METAL_HOSTS, key, uid=host.metadata.uid)
            if force:
                await _force(client, key, host)
        click.echo(f"{key} is being deleted{' by force' if force else ''}")
        if force:
            click.echo(f"  {left_behind(host)}")
        if (why := _held_up(host)) is not None:
            click.echo(f"  {why}", err=True)
        if timeout == 0:
            return False
        # What was said of it before it was deleted says nothing of what its deletion waits for.
        known = state_and_why(host) if host.metadata.deletion_timestamp is None else ""
        gone = await follow(
            client,
            host,
            lambda found: Done() if found is None else None,
            timeout=timeout,
            tell=_deletion,
            known=known,
        )
        if isinstance(gone, Done):
            click.echo(f"{key} is gone")
        return isinstance(gone, Done)


async def _force(client: Client, key: Key, host: BareMetalHost) -> None:
    from ingot.api.baremetalhost import BARE_METAL_HOSTS, Annotation

    # The UID makes sure that it is this host, and no other that got its name meanwhile.
    patch = {"metadata": {"uid": host.metadata.uid, "annotations": {Annotation.FORCE_DELETE: ""}}}
    await client.patch(BARE_METAL_HOSTS, key, patch)


def _held_up(host: BareMetalHost) -> str | None:
    from ingot.api.baremetalhost import FINALIZER, Annotation

    if Annotation.PAUSED in host.metadata.annotations:
        return f"it is paused: nothing happens until the annotation {Annotation.PAUSED} is removed."
    others = [name for name in host.metadata.finalizers if name != FINALIZER]
    if others:
        return f"others hold it too, by these finalizers: {', '.join(others)}."
    return None


def _deletion(host: BareMetalHost) -> str | None:
    return state_and_why(host) if host.metadata.deletion_timestamp is not None else None
