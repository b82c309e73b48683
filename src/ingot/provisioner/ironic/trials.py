"""Trying new credentials on a host that is already under management.

Ironic checks credentials by itself only when it takes a host under management. Later it is made to ask the BMC a question
that changes nothing, which can take as long as a dead BMC takes to time out; so it runs beside the call, and the host is
announced when the answer is there.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from ingot.api.meta import Key
from ingot.provisioner.changes import Changes
from ingot.provisioner.ironic.client import IronicClient
from ingot.provisioner.ironic.errors import Conflict, IronicError, Refused, ServerError, Unavailable
from ingot.provisioner.ironic.record import Fingerprint

LOCKED_FOR_LONG: Final = 180.0
"""Seconds after which it is told that the node is locked; a power sync of a BMC that hangs holds it for up to a minute."""
PAUSE: Final = 2.0


class Asking:
    pass


class Worked:
    pass


@dataclass(frozen=True, slots=True)
class DidNot:
    text: str
    told: bool = False


@dataclass(slots=True)
class _Trial:
    fingerprint: Fingerprint
    task: asyncio.Task[Worked | DidNot]
    told: bool = False


class Trials:
    """One question at a time for each node; its answer is kept until other credentials are tried."""

    def __init__(self, client: IronicClient, changes: Changes) -> None:
        self._client = client
        self._changes = changes
        self._trials: dict[str, _Trial] = {}

    def state(self, uuid: str, fingerprint: Fingerprint) -> Asking | Worked | DidNot | None:
        """How the trial of these credentials stands; None if there was none.

        Raises `Unavailable` where Ironic could not even be asked, and forgets the trial.
        """
        trial = self._trials.get(uuid)
        if trial is None or trial.fingerprint != fingerprint:
            return None
        if not trial.task.done():
            return Asking()
        try:
            answer = trial.task.result()
        except BaseException:
            del self._trials[uuid]
            raise
        if isinstance(answer, DidNot):
            answer = DidNot(answer.text, told=trial.told)
            trial.told = True
        return answer

    def start(self, key: Key, uuid: str, fingerprint: Fingerprint) -> None:
        if (before := self._trials.get(uuid)) is not None:
            before.task.cancel()
        task = asyncio.create_task(self._ask(uuid), name=f"try credentials of {key}")
        task.add_done_callback(lambda done: None if done.cancelled() else self._changes.announce(key))
        self._trials[uuid] = _Trial(fingerprint, task)

    def forget(self, uuid: str) -> None:
        if (trial := self._trials.pop(uuid, None)) is not None:
            trial.task.cancel()

    async def close(self) -> None:
        tasks = [trial.task for trial in self._trials.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, uuid: str) -> Worked | DidNot:
        try:
            await self._ask_once_it_is_free(uuid)
        except ServerError as error:
            # Ironic hands on what the BMC said as an error of its own.
            said = error.text.lower()
            if any(words in said for words in ("redfish", "returned code", "ipmi call failed")):
                return DidNot(error.text)
            raise
        except Refused as error:
            return DidNot(error.text)
        except Unavailable:
            raise
        except IronicError:
            # An answer came, only not one we can read: the BMC was reached.
            return Worked()
        return Worked()

    async def _ask_once_it_is_free(self, uuid: str) -> None:
        """Ironic asks under the node's lock. That somebody else holds it says nothing of the credentials."""
        clock = asyncio.get_running_loop().time
        end = clock() + LOCKED_FOR_LONG
        while True:
            try:
                return await self._client.ask_boot_device(uuid)
            except Conflict as error:
                if clock() > end:
                    raise Unavailable(
                        f"the new credentials could not be tried for {LOCKED_FOR_LONG / 60:.0f} minutes, and are tried again: "
                        f"{error.text}"
                    ) from None
            await asyncio.sleep(PAUSE)
