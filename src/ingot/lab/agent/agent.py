"""The agent's life: post what the hardware is, find the node in Ironic, serve commands, send heartbeats.

Order, pace and token rules are those of ironic-python-agent: the token comes with the medium or, once, from the look-up;
the certificate and the address stay the same for one boot; after a command ends Ironic is told by a heartbeat, never sooner
than the gap after the last one. What was agreed is saved, so an agent whose farm was killed goes on as the same agent.
It ends only by being cancelled: that is the power being cut. One that died, or was locked down, leaves a server that is on and
says nothing.
"""

from __future__ import annotations

import asyncio
from secrets import SystemRandom
from typing import Final

from ingot.lab.agent.certificate import AgentCertificate, new_certificate
from ingot.lab.agent.commands import Commands, PowerSwitch
from ingot.lab.agent.ironic import IronicApi, NotTaken
from ingot.lab.agent.logs import packed
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
_LOCKED_PAUSES: Final = (1, 2, 6)
"""How many heartbeat gaps the agent waits when a look-up finds the node locked: 5, 10 and then 30 seconds."""
_INSPECTION_RETRIES: Final = (409, 0)
_INSPECTION_PAUSES: Final = (1, 1, 1.2, 2.4)
"""How many heartbeat gaps the agent waits before it posts inspection data again: 5, 5, 6 and 12 seconds."""
_SHORTEST_TOKEN: Final = 32


class Agent:
    def __init__(self, chassis: Chassis, ramdisk: Ramdisk, timings: Timings, power: PowerSwitch) -> None:
        self._chassis = chassis
        self._ramdisk = ramdisk
        self._timings = timings
        self._told = asyncio.Event()
        self._ended = asyncio.Event()
        self._inspected_as = ""
        self._ironic = IronicApi(
            api_url=ramdisk.parameters.get("ipa-api-url", ""),
            inspection_url=ramdisk.parameters.get("ipa-inspection-callback-url", ""),
            ca=ramdisk.ca,
            insecure=ramdisk.insecure,
        )
        self._commands = Commands(
            chassis,
            ramdisk,
            timings,
            trusted=self._ironic.trusted,
            power=power,
            ended=self._told.set,
            gone=self._go,
        )

    async def run(self) -> None:
        if self._chassis.acts("silent_agent"):
            self._go("the agent stays silent, as it was told by a fault")
        if not self._ramdisk.gone:
            life = asyncio.create_task(self._live())
            ended = asyncio.create_task(self._ended.wait())
            try:
                await asyncio.wait([life, ended], return_when=asyncio.FIRST_COMPLETED)
                if life.done():
                    life.result()
            finally:
                life.cancel()
                ended.cancel()
                await asyncio.wait([life, ended])
            await self._chassis.save()
        await asyncio.Event().wait()

    def _go(self, why: str) -> None:
        """The agent is no more; the ramdisk under it runs on."""
        self._ramdisk.gone = why
        self._chassis.note(why)
        self._ended.set()

    async def _live(self) -> None:
        async with self._ironic, asyncio.TaskGroup() as group:
            if not self._ramdisk.node_uuid:
                await self._introduce()
            await self._serve(group)

    async def _introduce(self) -> None:
        if self._ironic.inspection_url and not self._ramdisk.inspected:
            await self._chassis.held("inspection")
            await self._inspect()
        if not self._ironic.api_url:
            self._chassis.note(
                "the ramdisk names no address to look up its node; the agent has nothing more to do"
            )
            await asyncio.Event().wait()
        await self._chassis.held("lookup")
        await self._look_up()

    async def _inspect(self) -> None:
        """Post the inspection data as the real agent does: again while Ironic is busy, and never again when it wants none."""
        for pause in (*_INSPECTION_PAUSES, None):
            refused = await self._post_inspection()
            if refused is None:
                return
            if refused.status not in _INSPECTION_RETRIES and refused.status < 500:
                break
            if pause is not None:
                await asyncio.sleep(self._timings.heartbeat_gap * pause)
        self._chassis.note("inspection data were not taken; the agent goes on without")

    async def _post_inspection(self) -> NotTaken | None:
        faults = self._chassis.faults
        data = inspection_data(
            self._chassis.plate,
            self._chassis.record,
            logs=packed(self._chassis.record.log),
            boot_mac=self._ramdisk.boot_mac,
            lacks=faults.inventory_lacks,
            error=faults.inspection_error,
        )
        for fault in ("inventory_lacks", "inspection_error"):
            self._chassis.acts(fault)
        if self._chassis.acts("wrong_macs"):
            for interface in data["inventory"].get("interfaces", []):
                interface["mac_address"] = _another(interface["mac_address"])
        answer = await self._ironic.post_inspection(data)
        if isinstance(answer, NotTaken):
            return answer
        self._inspected_as = answer
        self._ramdisk.inspected = True
        self._chassis.note("inspection data were taken")
        await self._chassis.save()
        return None

    async def _look_up(self) -> None:
        pause, locked = 1.0, iter(_LOCKED_PAUSES)
        while isinstance(found := await self._ironic.lookup(self._macs(), self._inspected_as), NotTaken):
            if found.status == 409:
                await asyncio.sleep(self._timings.heartbeat_gap * next(locked, _LOCKED_PAUSES[-1]))
                continue
            await asyncio.sleep(_random.uniform(pause / 2, pause))
            pause = min(pause * 2, _LOOKUP_PAUSE)
        given = found.config.agent_token
        if given != HIDDEN and len(given) >= _SHORTEST_TOKEN:
            self._ramdisk.token = given
        if not self._ramdisk.token:
            self._go("Ironic gave the token to an earlier agent of this server; this one cannot speak to it")
            await asyncio.Event().wait()
        self._ramdisk.node_uuid = found.node.uuid
        self._ramdisk.heartbeat_timeout = found.config.heartbeat_timeout
        self._ramdisk.md5_allowed = found.config.agent_md5_checksum_enable
        self._chassis.note(f"the agent found its node {found.node.uuid}")
        await self._chassis.save()

    def _macs(self) -> list[str]:
        macs = self._chassis.plate.macs
        return [_another(mac) for mac in macs] if self._chassis.acts("wrong_macs") else macs

    async def _serve(self, group: asyncio.TaskGroup) -> None:
        host = self._chassis.plate.host
        file = self._chassis.folder / "agent.pem"
        if self._ramdisk.port and file.exists():
            certificate = AgentCertificate(file)
        else:
            certificate = await asyncio.to_thread(new_certificate, file, host)
        listener = Listener(
            self._commands.answer, host=host, port=self._ramdisk.port, context=certificate.context()
        )
        self._commands.start(group)  # before somebody can give one
        await self._listen(listener)
        try:
            self._ramdisk.port = listener.port
            await self._chassis.save()
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
            refused = await self._heartbeat(callback_url, certificate)
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

    async def _heartbeat(self, callback_url: str, certificate: str) -> NotTaken | None:
        if self._chassis.spend("lose_heartbeats"):
            self._chassis.note("a heartbeat is lost on its way, as it was told by a fault")
            await self._chassis.save()
            return None
        return await self._ironic.heartbeat(
            self._ramdisk.node_uuid,
            callback_url=callback_url,
            token=self._ramdisk.token,
            certificate=certificate,
        )


def _another(mac: str) -> str:
    """A MAC address that no card of the server has."""
    return "02:ff" + mac[5:]
