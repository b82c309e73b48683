"""The hall: all machines, in memory and in the file, and the clock that brings their work to its end.

Owns every machine and record. Verbs read and change them here, say what changed, and wait until that is written before they
answer. Leaves how a verb goes to `carrying_out`, and when the back end as a whole is away to `outages`.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from ingot.api.meta import Key
from ingot.provisioner import EVERYTHING, BackendUnavailable, HostRef, NotRegistered
from ingot.provisioner.changes import Changes
from ingot.provisioner.demo import effects
from ingot.provisioner.demo.agenda import Agenda
from ingot.provisioner.demo.errors import Away, DemoStateError
from ingot.provisioner.demo.machine import Machine, Record, Work
from ingot.provisioner.demo.plan import Plan
from ingot.provisioner.demo.script import Script
from ingot.provisioner.demo.store import Store

_decode = msgspec.json.Decoder(Machine).decode
_encode = msgspec.json.Encoder().encode


def _decoded(rows: Mapping[Key, bytes]) -> dict[Key, Machine]:
    return {key: _decode(body) for key, body in rows.items()}


class Known(NamedTuple):
    """A machine and the record of it."""

    key: Key
    machine: Machine
    record: Record


class Hall:
    def __init__(self, path: Path | None, script: Script, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.plan = Plan(script)
        self.changes = Changes()
        self.agenda = Agenda(clock)
        self.machines: dict[Key, Machine] = {}
        self.away = ""
        """Why nobody answers now; "" while somebody does."""
        self.born = 0.0
        """When the file was made."""
        self.facts: dict[str, bytes] = {}
        self._salt = b""
        self._store = Store(path, lambda key: _encode(self.machines[key]))

    async def open(self) -> None:
        kept = await self._store.open()
        self.facts = kept.facts
        try:
            self.machines = await asyncio.to_thread(_decoded, kept.machines)
        except msgspec.DecodeError as error:
            await self._store.close()
            raise DemoStateError(f"a demo machine cannot be read from its file: {error}") from error
        self._salt = self._fact("salt", secrets.token_hex(16)).encode()
        self.born = float(self._fact("born", str(self.clock())))
        await self._store.written()
        for key, machine in self.machines.items():
            if machine.record is not None:
                for slot, work in machine.record.works.items():
                    self.schedule(key, slot, work)

    async def close(self) -> None:
        self.agenda.close()
        self.changes.close()
        await self._store.close()

    def _fact(self, name: str, otherwise: str) -> str:
        if name not in self.facts:
            self.note_fact(name, otherwise)
        return self.facts[name].decode()

    def note_fact(self, name: str, value: str) -> None:
        self.facts[name] = value.encode()
        self._store.note_fact(name, value.encode())

    # What verbs ask

    def check(self) -> None:
        """Raise `BackendUnavailable` while nobody answers."""
        if self.trouble is not None:
            raise self.trouble

    @property
    def trouble(self) -> BackendUnavailable | None:
        return Away(self.away) if self.away else self._store.trouble

    def machine(self, key: Key) -> Machine:
        """The machine that the host's name stands for: every host has one, seen before or not."""
        return self.machines.get(key) or self.machines.setdefault(key, Machine())

    def known(self, host: HostRef) -> Known | None:
        """The machine with its record, if there is one whose credentials were proven."""
        machine = self.machines.get(host.key)
        if machine is None or machine.record is None or not machine.record.proof:
            return None
        return Known(host.key, machine, machine.record)

    def not_registered(self, host: HostRef) -> NotRegistered:
        return NotRegistered(f"the demo back end has no record of {host.key}; it is registered again")

    def proof(self, username: str, password: str) -> str:
        """Tells credentials apart without keeping them."""
        return hashlib.blake2b(f"{username}\0{password}".encode(), key=self._salt, digest_size=16).hexdigest()

    # What verbs say

    def note(self, key: Key) -> None:
        self._store.note(key)

    async def written(self) -> None:
        """Everything that was noted is in the file; only now may it be spoken of."""
        await self._store.written()

    def schedule(self, key: Key, slot: str, work: Work) -> None:
        if work.under_way and work.until is not None:
            self.agenda.at(work.until, partial(self._due, key, slot, work))

    def settle(self, known: Known, slot: str, work: Work) -> None:
        """The time of the work is over. It ends as was decided when it began."""
        work.ended = True
        if not work.failure:
            known.record.works.pop(slot, None)
            effects.end(known.machine, known.record, work.effect, at=self.clock())
        self.note(known.key)

    def forget_all(self) -> None:
        """Lose every record. The machines go on."""
        for key, machine in self.machines.items():
            if machine.record is not None:
                machine.record = None
                self.note(key)
        self.changes.announce(EVERYTHING)

    def _due(self, key: Key, slot: str, work: Work) -> None:
        machine = self.machines[key]
        # It may have been given up meanwhile.
        if machine.record is not None and machine.record.works.get(slot) is work and work.under_way:
            self.settle(Known(key, machine, machine.record), slot, work)
            self.changes.announce(key)
