"""The agent's life: post what the hardware is, find the node in Ironic, serve commands, send heartbeats.

Order, pace and token rules are those of ironic-python-agent: the token comes with the medium or, once, from the look-up;
the certificate and the address stay the same for one boot; after a command ends Ironic is told by a heartbeat, never sooner
than the gap after the last one. What was agreed is saved, so an agent whose farm was killed goes on as the same agent.
It ends only by being cancelled: that is the power being cut.
"""

from __future__ import annotations

import asyncio
from secrets import SystemRandom
from typing import Final

from ingot.lab.agent.certificate import AgentCertificate, new_certificate
from ingot.lab.agent.commands import Commands, PowerSwitch
from ingot.lab.agent.ironic import IronicApi, NotTaken
from ingot.lab.chassis import Chassis
from ingot.lab.errors import LabError
from ingot.lab.inventory import inspection_data
from ingot.lab.listener import Listener
from ingot.lab.record import Ramdisk
from ingot.lab.settings import Timings
from ingot.trust import HIDDEN

_random: Final = SystemRandom()
_LOOKUP_PAUSE: Final = 10.0
"""Longest pause between look-ups. The real agent goes up to 60 s; a practice server need not wait that long."""
_INSPECTION_RETRIES: Final = (409, 0)


class Agent:
    def __init__(self, chassis: Chassis, ramdisk: Ramdisk, timings: Timings, power: PowerSwitch) -> None:
        self._chassis = chassis
        self._ramdisk = ramdisk
        self._timings = timings
        self._told = asyncio.Event()
        self._ironic = IronicApi(
            api_url=ramdisk.parameters.get("ipa-api-url", ""),
            inspection_url=ramdisk.parameters.get("ipa-inspection-callback-url", ""),
            ca=ramdisk.ca,
        )
        self._commands = Commands(
            chassis, ramdisk, timings, trusted=self._ironic.trusted, power=power, ended=self._told.set
        )

    async def run(self) -> None:
        if self._chassis.record.faults.silent_agent:
            self._chassis.note("the agent stays silent, as it was told by a fault")
            await asyncio.Event().wait()
        async with self._ironic, asyncio.TaskGroup() as group:
            if not self._ramdisk.node_uuid:
                await self._introduce(group)
            await self._serve(group)

    async def _introduce(self, group: asyncio.TaskGroup) -> None:
        if self._ironic.inspection_url and not self._ramdisk.inspected:
            await self._inspect(group)
        if not self._ironic.api_url:
            self._chassis.note(
                "the ramdisk names no address to look up its node; the agent has nothing more to do"
            )
            await asyncio.Event().wait()
        await self._look_up()

    async def _inspect(self, group: asyncio.TaskGroup) -> None:
        """Post the inspection data as the real agent does; when nobody expects them, go on and try again on the side."""
        for attempt in range(self._timings.inspection_tries):
            refused = await self._post_inspection()
            if refused is None:
                return
            if refused.status == 404:
                group.create_task(self._inspect_later())
                return
            if refused.status not in _INSPECTION_RETRIES and refused.status < 500:
                break
            await asyncio.sleep(min(30.0, self._timings.heartbeat_gap * (attempt + 1)))
        self._chassis.note("inspection data were not taken; the agent goes on without")

    async def _inspect_later(self) -> None:
        for _ in range(self._timings.inspection_tries - 1):
            await asyncio.sleep(self._timings.inspection_retry)
            if self._ramdisk.commands or await self._post_inspection() is None:
                return

    async def _post_inspection(self) -> NotTaken | None:
        refused = await self._ironic.post_inspection(
            inspection_data(self._chassis.plate, self._chassis.record)
        )
        if refused is None:
            self._ramdisk.inspected = True
            self._chassis.note("inspection data were taken")
            await self._chassis.save()
        return refused

    async def _look_up(self) -> None:
        pause = 1.0
        while isinstance(found := await self._ironic.lookup(self._chassis.plate.macs), NotTaken):
            await asyncio.sleep(_random.uniform(pause / 2, pause))
            pause = min(pause * 2, _LOOKUP_PAUSE)
        given = found.config.agent_token
        if given and given != HIDDEN and not self._ramdisk.token:
            self._ramdisk.token = given
        if not self._ramdisk.token:
            self._chassis.note(
                "Ironic gave the token to an earlier agent of this server; this one cannot speak to it"
            )
            await asyncio.Event().wait()
        self._ramdisk.node_uuid = found.node.uuid
        self._ramdisk.heartbeat_timeout = found.config.heartbeat_timeout
        self._ramdisk.md5_allowed = found.config.agent_md5_checksum_enable
        self._chassis.note(f"the agent found its node {found.node.uuid}")
        await self._chassis.save()

    async def _serve(self, group: asyncio.TaskGroup) -> None:
        host = self._chassis.plate.host
        file = self._chassis.folder / "agent.pem"
        if self._ramdisk.port and file.exists():
            certificate = AgentCertificate(file)
        else:
            certificate = await asyncio.to_thread(new_certificate, file, host)
        listener = Listener(
            self._commands.app(), host=host, port=self._ramdisk.port, context=certificate.context()
        )
        await self._listen(listener)
        try:
            self._ramdisk.port = listener.port
            await self._chassis.save()
            self._commands.start(group)
            await self._heartbeats(f"https://{host}:{listener.port}", certificate.pem())
        finally:
            await listener.stop()

    async def _listen(self, listener: Listener) -> None:
        """Ironic takes no heartbeat that names another port than the first one did, so a port that is taken is waited for."""
        told = False
        while True:
            try:
                return await listener.start()
            except LabError as error:
                if not told:
                    self._chassis.note(f"the agent waits: {error}")
                told = True
            await asyncio.sleep(self._timings.heartbeat_gap)

    async def _heartbeats(self, callback_url: str, certificate: str) -> None:
        gap = self._timings.heartbeat_gap
        while True:
            self._told.clear()
            refused = await self._ironic.heartbeat(
                self._ramdisk.node_uuid,
                callback_url=callback_url,
                token=self._ramdisk.token,
                certificate=certificate,
            )
            await asyncio.sleep(gap)
            if refused is not None:
                self._chassis.note(f"heartbeat not taken: {refused.why}")
                pause = _random.uniform(0, gap)
            else:
                pause = max(0.0, self._ramdisk.heartbeat_timeout * _random.uniform(0.3, 0.6) - gap)
            try:
                async with asyncio.timeout(pause):
                    await self._told.wait()
            except TimeoutError:
                continue
