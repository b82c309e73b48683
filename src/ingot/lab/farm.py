"""The farm: one process that holds the lab's servers, its depot and its control face.

Owns starting and stopping all of them in order, and the folder `lab/` of the state. One farm a folder: a lock says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import resource
from collections.abc import AsyncIterator, Iterator
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

import msgspec

from ingot.lab import labfile, samples
from ingot.lab.certificates import BmcCertificates
from ingot.lab.chassis import Chassis
from ingot.lab.control import Control
from ingot.lab.depot import Depot
from ingot.lab.errors import LabError
from ingot.lab.faults import Plan
from ingot.lab.firmware import Firmware
from ingot.lab.labfile import LabFile, SampleImage
from ingot.lab.ledger import Ledger
from ingot.lab.machine import Machine
from ingot.lab.planner import Planner
from ingot.lab.redfish import Bmc
from ingot.lab.settings import FarmSettings
from ingot.lab.views import AddedImage, Change
from ingot.trust import Authority, Certificate, ServingTls, client_context, kept_token

_log = logging.getLogger(__name__)

_FILES_OF_A_SERVER: Final = 8
_FILES_OF_THE_FARM: Final = 256


class Farm:
    """Use `running`. What is here stays as it is between two runs."""

    def __init__(self, settings: FarmSettings, ledger: Ledger) -> None:
        self._settings = settings
        self._saving = asyncio.Lock()
        self._folder = settings.state / "lab"
        self._authority = Authority(settings.state / "ca")
        self.lab: Final[LabFile] = labfile.grown(
            settings.state,
            host=settings.listen_host,
            servers=settings.servers,
            network=settings.network,
            profiles=settings.profiles,
            builds=settings.builds,
        )
        self._tls = ServingTls(self._issue)
        certificates = BmcCertificates(self._authority, lambda: self._tls.authority)
        trusted = client_context(self._authority.ca_file)
        if settings.agent_ca is not None:
            trusted.load_verify_locations(settings.agent_ca)
        firmware = Firmware(trusted=trusted, ipxe_url=settings.ipxe_url)
        self._depot = Depot(self._folder / "depot", self.lab, self._tls.context)
        self._control = Control(
            self,
            host=settings.listen_host,
            port=settings.listen_port,
            token=kept_token(self._folder / "token"),
            context=self._tls.context,
        )
        self._machines = [
            Machine(
                Chassis(plate, self._folder / "servers" / plate.name, ledger),
                timings=settings.timings,
                firmware=firmware,
            )
            for plate in self.lab.servers
        ]
        self._bmcs = {
            machine.chassis.plate.name: Bmc(machine, certificates.context(machine.chassis.plate.host))
            for machine in self._machines
        }
        self._planner = Planner(lambda chassis: self._bmcs[chassis.plate.name].faults_changed())

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, settings: FarmSettings) -> AsyncIterator[Self]:
        """A farm that serves until the block ends; its servers are then left as they are."""
        async with _ledger(settings.state / "lab") as ledger:
            farm = await asyncio.to_thread(cls, settings, ledger)
            _allow_open_files(len(farm.lab.servers))
            renewal = asyncio.create_task(farm._tls.keep())
            try:
                await farm._start()
                yield farm
            finally:
                renewal.cancel()
                await farm._stop()

    @property
    def url(self) -> str:
        return self._control.url

    def chassis(self) -> list[Chassis]:
        return [machine.chassis for machine in self._machines]

    async def change(self, chassis: Chassis, change: Change) -> None:
        """What is not given stays; a plan counts from now on."""
        record = chassis.record
        if change.faults is not None:
            # Whoever changes many servers at once gives them one value; a fault with a count counts for each alone.
            record.faults = deepcopy(change.faults)
        if change.plan is not None:
            steps = deepcopy(change.plan)
            record.plan = Plan(set_at=datetime.now(UTC), steps=steps) if steps else None
        if change.hold is not None:
            chassis.hold(change.hold)
        chassis.note("changed by the control face: " + ", ".join(msgspec.to_builtins(change)))
        await chassis.save()
        self._planner.follow(chassis)
        await self._bmcs[chassis.plate.name].faults_changed()

    def reset_bmc(self, chassis: Chassis, seconds: float) -> None:
        """Begin it; the BMC comes back by itself."""
        self._bmcs[chassis.plate.name].restart_soon(seconds)

    async def set_password(self, chassis: Chassis, password: str) -> None:
        if not password:
            raise LabError("a BMC's password cannot be empty")
        chassis.plate.password = password
        await self._save()

    async def add_image(self, name: str, content: bytes) -> AddedImage:
        url, digest = await self._depot.put(name, content)
        return AddedImage(url=url, sha256=digest, size=len(content))

    async def _start(self) -> None:
        await self._stock()
        await self._depot.start()
        for machine in self._machines:
            await self._bmcs[machine.chassis.plate.name].start()
            await machine.start()
            self._planner.follow(machine.chassis)
        await self._control.start()
        self.lab.control_url = self._control.url
        await self._save()

    async def _stop(self) -> None:
        await self._control.stop()
        await self._planner.stop()
        await asyncio.gather(*(bmc.stop() for bmc in self._bmcs.values()))
        await asyncio.gather(*(machine.stop() for machine in self._machines))
        await self._depot.stop()

    async def _stock(self) -> None:
        """Put the ramdisk and the sample images in the depot; what is there and right stays."""
        authorities = [self._authority.ca_file]
        if self._settings.agent_ca is not None:
            authorities.append(self._settings.agent_ca)
        ca = samples.bundle(*authorities)
        token = self.lab.depot_token
        iso = samples.ramdisk_iso(agent_api=self._settings.agent_api, ca=ca)
        self.lab.ramdisk_url, _ = await self._depot.put("ramdisk.iso", iso, token=token)
        self.lab.kernel_url, _ = await self._depot.put("kernel", samples.kernel(), token=token)
        self.lab.initrd_url, _ = await self._depot.put("initrd", samples.initrd(ca=ca), token=token)
        disk = await asyncio.to_thread(samples.sample_disk)
        qcow2 = await asyncio.to_thread(samples.as_qcow2, disk)
        disk_sha256 = ""
        self.lab.images = []
        for name, format_name, content in (
            ("sample.raw", "raw", disk),
            ("sample.qcow2", "qcow2", qcow2),
            ("live.iso", "live-iso", samples.live_iso()),
        ):
            url, digest = await self._depot.put(name, content, token=token)
            # The raw image comes first: its file is the disk. What runs from its medium is written to none.
            disk_sha256 = digest if format_name in ("raw", "live-iso") else disk_sha256
            self.lab.images.append(
                SampleImage(
                    name=name,
                    format=format_name,
                    url=url,
                    sha256=digest,
                    disk_sha256=disk_sha256,
                    size=len(content),
                )
            )

    async def _save(self) -> None:
        async with self._saving:  # of two writes at once the older could be the one that stays
            await asyncio.to_thread(labfile.save, self._settings.state, self.lab)

    def _issue(self) -> Certificate:
        # The servers stay where they were built, also when the control face moves.
        hosts = dict.fromkeys((self._settings.listen_host, self.lab.host, "localhost"))
        return self._authority.issue(self._folder, "lab", list(hosts))


def _allow_open_files(servers: int) -> None:
    """A server has a listener for its BMC, one for its agent, and connections to both; a shell allows 1,024 files at first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES_OF_A_SERVER * servers + _FILES_OF_THE_FARM
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
        if allowed < wanted:
            _log.warning(
                "%d servers may need %d open files, and this process may have %d: raise `ulimit -n`",
                servers,
                wanted,
                allowed,
            )


@contextlib.asynccontextmanager
async def _ledger(folder: Path) -> AsyncIterator[Ledger]:
    with _locked(folder):
        ledger = await asyncio.to_thread(Ledger, folder)
        try:
            yield ledger
        finally:
            await ledger.close()


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise LabError(
                f"another farm (process {lock.read().strip() or 'unknown'}) serves {folder}; stop it, or use another --state"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield
