"""How a Machine goes: its host is emptied, waited for and given back, its Node is deleted, and only then it may go itself.

Everything that destroys is decided on the Machine as the API has it at that moment, read after the host was: a new Machine of the
same name has the same claim on a host as the old one had. A host that the Machine meant to take and did not is passed by in
writing, so that nobody takes it for the Machine after that.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from ingot.api.baremetalhost import Annotation, BareMetalHost, UnknownState
from ingot.api.machine import FINALIZER, Machine
from ingot.api.meta import Key
from ingot.kube import REFUSALS, Again, Conflict, Done, EventRecorder, NotFound
from ingot.machines.machine.claiming import hosts_of
from ingot.machines.machine.joining import Joiner
from ingot.machines.machine.linking import consumer_of, link_of
from ingot.machines.machine.records import Records
from ingot.machines.machine.standing import stands
from ingot.machines.pool import Pool
from ingot.machines.targets import RELEASE, emptying, is_emptied
from ingot.machines.vacancies import belongs_to

PASSED_BY: Final = "ingot.metal3.io/passed-by"
"""On a host: the UID of the last Machine that was deleted after it had chosen the host and before it took it."""
LOOK_AGAIN: Final = 30.0


class Leaver:
    def __init__(
        self,
        recorder: EventRecorder,
        *,
        records: Records,
        pool: Pool,
        joiner: Joiner,
    ) -> None:
        self._recorder = recorder
        self._records = records
        self._pool = pool
        self._joiner = joiner
        self._told: dict[Key, str] = {}
        """Why the host of a Machine stays as it is, as it was said last."""

    def forget(self, key: Key) -> None:
        self._told.pop(key, None)

    async def leave(self, machine: Machine) -> Done | Again:
        """Go on with the deletion. Raises `Conflict` where the Machine or a host has changed."""
        hosts, is_held = hosts_of(machine, self._pool), FINALIZER in machine.metadata.finalizers
        if hooked(machine) or not (hosts or is_held):
            return Done()
        for host in hosts:
            await self._records.still_as(machine)
            try:
                is_free = await self._give_back(machine, host)
            except REFUSALS as error:
                self._say_why(machine, f"{_waits(host)} {error.message}")
                is_free = False
            if not is_free:
                return Again(LOOK_AGAIN, f"BareMetalHost {host.key} is being emptied")
        await self._pass_by(machine)
        await self._joiner.part(machine)
        if is_held:
            await self._let_go(machine)
        return Done()

    async def _give_back(self, machine: Machine, host: BareMetalHost) -> bool:
        """Whether the host is free of the Machine."""
        if change := emptying(host):
            host = await self._patched(host, change)
            self._say(machine, "HostEmptied", f"BareMetalHost {host.key} is emptied, then given back.")
        if why := why_kept(host):
            self._say_why(machine, why)
            return False
        if not is_emptied(host):
            return False
        await self._patched(host, RELEASE)
        self._say(machine, "HostReleased", f"BareMetalHost {host.key} is given back.")
        return True

    async def _pass_by(self, machine: Machine) -> None:
        """See to it that the host it meant to take is not taken for it by somebody who does not know yet."""
        link = link_of(machine)
        if link is None:
            return
        host = await self._pool.look_again(link.key)
        if host is None or not link.means(host):
            return
        if belongs_to(host, consumer_of(machine)):
            raise Conflict(409, "Conflict", f"BareMetalHost {host.key} was taken for Machine {machine.key}")
        if stands(machine, host):
            await self._patched(host, {"metadata": {"annotations": {PASSED_BY: machine.metadata.uid}}})

    async def _patched(self, host: BareMetalHost, change: dict[str, Any]) -> BareMetalHost:
        try:
            return await self._pool.patch(host, change)
        except Conflict:
            await self._pool.look_again(host.key)
            raise
        except NotFound:
            # It went before we let go of it, and the watch will say so.
            return host

    async def _let_go(self, machine: Machine) -> None:
        finalizers = [name for name in machine.metadata.finalizers if name != FINALIZER]
        await self._records.write(machine, {"metadata": {"finalizers": finalizers}})

    def _say_why(self, machine: Machine, why: str) -> None:
        if why != self._told.get(machine.key):
            self._told[machine.key] = why
            self._say(machine, "HostNotEmptied", why, type="Warning")

    def _say(
        self, machine: Machine, reason: str, message: str, *, type: Literal["Normal", "Warning"] = "Normal"
    ) -> None:
        self._recorder.record(machine, type=type, reason=reason, message=message)


def why_kept(host: BareMetalHost) -> str | None:
    """Why nobody empties the host that a Machine gives back, for the person who has to do something about it."""
    try:
        if is_emptied(host):
            return None
    except UnknownState as error:
        return str(error)
    waits = _waits(host)
    if Annotation.PAUSED in host.metadata.annotations:
        return f"{waits} it is paused. Remove its annotation {Annotation.PAUSED}."
    if Annotation.DETACHED in host.metadata.annotations:
        return f"{waits} it is detached. Remove its annotation {Annotation.DETACHED}."
    if host.status.error_message:
        return f"{waits} {host.status.error_message}"
    return None


def _waits(host: BareMetalHost) -> str:
    return f"BareMetalHost {host.key} is not emptied, and the Machine stays until it is:"


def hooked(machine: Machine) -> list[str]:
    """Those who have to be waited for before anything happens to the host."""
    hooks = machine.spec.lifecycle_hooks
    return [f"{hook.name} of {hook.owner}" for hook in (*hooks.pre_drain, *hooks.pre_terminate)]
