"""What a farm costs: start, memory, and CPU for each server that is verified and inspected.

    python tests/unit/lab/lab_load.py --count 1000 --lives 200

Starts `ingot lab farm` as a process and plays Ironic's part: for each server the calls that Ironic makes of its BMC to verify it
and to inspect it with the agent (a new TLS connection for every call, as Ironic's client has it), a boot medium of 1 MB that is
read whole, and the agent's calls. Nothing else is measured than the farm: what it serves the media with is included.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import resource
import secrets
import sqlite3
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
from aiohttp import web

from ingot.formats.boot_parameters import grub_config
from ingot.formats.iso9660 import build_iso
from ingot.lab.client import Lab
from ingot.lab.labfile import Plate
from ingot.trust import Authority, client_context

VERIFY = ("", "", "SecureBoot", "", "Bios", "", "SecureBoot", "", "Storage", "Processors", "", "", "", "")
"""Below the System, where "" is the System itself; the root, managers and chassis come on top."""
INSPECT = ("", "EthernetInterfaces", "EthernetInterfaces/0", "EthernetInterfaces/1", "", "", "", "", "", "")
AT_THE_END = ("", "", "Bios", "SecureBoot", "", "", "", "", "", "")


class Ironic:
    """The agent's side of Ironic; `inspected` tells of each server that was looked at, by its MAC."""

    def __init__(self) -> None:
        self.inspected: dict[str, asyncio.Event] = {}
        self.url = ""

    @contextlib.asynccontextmanager
    async def serving(self, state: Path) -> AsyncIterator[None]:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/v1/continue_inspection", self._inspection)
        app.router.add_get("/v1/lookup", self._lookup)
        app.router.add_post("/v1/heartbeat/{node}", self._heartbeat)
        made = Authority(state / "ca").issue(state / "ironic", "api", ["127.0.0.1"])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=made.server_context()).start()
        self.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        yield
        await runner.cleanup()

    async def _inspection(self, request: web.Request) -> web.Response:
        data = await request.json()
        for interface in data["inventory"]["interfaces"]:
            if event := self.inspected.get(interface["mac_address"]):
                event.set()
        return web.json_response({"uuid": str(uuid.uuid4())}, status=202)

    async def _lookup(self, request: web.Request) -> web.Response:
        config = {"heartbeat_timeout": 300.0, "agent_token": secrets.token_urlsafe(32)}
        return web.json_response({"node": {"uuid": str(uuid.uuid4())}, "config": config})

    async def _heartbeat(self, _: web.Request) -> web.Response:
        return web.Response(status=202)


class Bmc:
    def __init__(self, plate: Plate, session: aiohttp.ClientSession) -> None:
        self._base = f"https://{plate.host}:{plate.bmc_port}"
        self._system = f"/redfish/v1/Systems/{plate.system_id}"
        self._session = session
        self._login = {"UserName": plate.username, "Password": plate.password}
        self._headers = {"Connection": "close"}

    async def log_in(self) -> None:
        url = f"{self._base}/redfish/v1/SessionService/Sessions"
        async with self._session.post(url, json=self._login, headers=self._headers) as answer:
            self._headers["X-Auth-Token"] = answer.headers["X-Auth-Token"]

    async def call(self, method: str, path: str, body: object = None) -> None:
        path = path if path.startswith("/") else f"{self._system}/{path}".rstrip("/")
        async with self._session.request(
            method, self._base + path, json=body, headers=self._headers
        ) as answer:
            await answer.read()
            if answer.status >= 400:
                raise SystemExit(f"{method} {path}: {answer.status}")


async def life(bmc: Bmc, medium: str, inspected: asyncio.Event, *, leave_on: bool) -> None:
    """58 calls: what Ironic asks from `manage` to the end of the inspection."""
    await bmc.call("GET", "/redfish/v1/")
    await bmc.log_in()
    for path in (*VERIFY, "/redfish/v1/Managers", "/redfish/v1/Chassis"):
        await bmc.call("GET", path)
    drives = "/redfish/v1/Managers/1/VirtualMedia"
    for path in (*INSPECT, drives, f"{drives}/Cd", f"{drives}/Usb"):
        await bmc.call("GET", path)
    await bmc.call("POST", f"{drives}/Cd/Actions/VirtualMedia.InsertMedia", {"Image": medium})
    boot = {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}
    for _ in range(3):
        await bmc.call("GET", "")
    await bmc.call("PATCH", "", {"Boot": boot})
    await bmc.call("POST", "Actions/ComputerSystem.Reset", {"ResetType": "On"})
    await bmc.call("GET", "")
    async with asyncio.timeout(600):
        await inspected.wait()
    if leave_on:
        return
    await bmc.call("POST", "Actions/ComputerSystem.Reset", {"ResetType": "ForceOff"})
    for path in AT_THE_END:
        await bmc.call("GET", path)
    await bmc.call("POST", f"{drives}/Cd/Actions/VirtualMedia.EjectMedia", {})
    for _ in range(9):
        await bmc.call("GET", "")


def boot_medium(agent_api: str, ca: bytes) -> bytes:
    """An ISO image of 1 MB that brings the agent."""
    values = {
        "ipa-api-url": agent_api,
        "ipa-inspection-callback-url": f"{agent_api}/v1/continue_inspection",
    }
    config = grub_config(kernel="/vmlinuz", initrd="/initrd", values=values).encode()
    files = {
        "/vmlinuz": os.urandom(1 << 19),
        "/initrd": os.urandom(1 << 19),
        "/boot/grub/grub.cfg": config,
        "/EFI/BOOT/grub.cfg": config,
        "/etc/ironic-python-agent/ironic.crt": ca,
    }
    return build_iso(files, label="LOAD", made_at=datetime(2026, 1, 1, tzinfo=UTC))


class Farm:
    """The farm's process, and what the kernel has counted for it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._stat = Path(f"/proc/{process.pid}/stat")
        self._status = Path(f"/proc/{process.pid}/status")

    @property
    def cpu(self) -> float:
        fields = self._stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self, name: str) -> float:
        """MB now (VmRSS) or at most (VmHWM)."""
        [line] = [line for line in self._status.read_text().splitlines() if line.startswith(name)]
        return int(line.split()[1]) / 1024


async def timed(what: str, farm: Farm, work: Callable[[], Awaitable[None]], times: int) -> None:
    cpu, clock = farm.cpu, time.monotonic()
    await work()
    cpu, clock = farm.cpu - cpu, time.monotonic() - clock
    share = f"{cpu / times * 1000:.1f} ms each, {cpu / clock:.2f} cores" if times else ""
    print(f"{what}: {clock:.1f} s, farm {cpu:.2f} CPU-s {share}", flush=True)


async def measure(count: int, lives: int, at_once: int, state: Path, *, leave_on: bool) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    ironic = Ironic()
    async with ironic.serving(state):
        clock = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from ingot.cli.main import main; main()", "lab", "farm"),
            *("--state", str(state), "--count", str(count), "--agent-api", ironic.url),
            *("--boot-seconds", "0.5"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert process.stdout is not None
        try:
            print((await process.stdout.readline()).decode().strip())
            farm = Farm(process)
            print(
                f"start: {time.monotonic() - clock:.1f} s, {farm.cpu:.2f} CPU-s, {farm.memory('VmRSS'):.0f} MB"
            )
            await timed("idle", farm, lambda: asyncio.sleep(10), 0)
            await _lives(state, ironic, farm, lives, at_once, leave_on=leave_on)
            if leave_on:
                await timed(f"{lives} agents waiting", farm, lambda: asyncio.sleep(30), 0)
            print(f"memory: {farm.memory('VmRSS'):.0f} MB, at most {farm.memory('VmHWM'):.0f} MB")
        finally:
            process.terminate()
            await process.wait()
    with contextlib.closing(sqlite3.connect(state / "lab" / "servers.db")) as database:
        [(rows, size)] = database.execute("SELECT count(*), avg(length(record)) FROM records")
    print(f"ledger: {rows} records of {size or 0:.0f} bytes")


async def _lives(
    state: Path, ironic: Ironic, farm: Farm, lives: int, at_once: int, *, leave_on: bool
) -> None:
    async with Lab.open(state) as lab:
        ca = (state / "ca" / "ca.crt").read_bytes()
        medium = await lab.add_image(boot_medium(ironic.url, ca), name="load.iso")
        plates = lab.file.servers[:lives]
    turn = asyncio.Semaphore(at_once)
    connector = aiohttp.TCPConnector(ssl=client_context(state / "ca" / "ca.crt"), force_close=True, limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one(plate: Plate) -> None:
            inspected = ironic.inspected[plate.macs[0]] = asyncio.Event()
            async with turn:
                await life(Bmc(plate, session), medium.url, inspected, leave_on=leave_on)

        async def all_of_them() -> None:
            await asyncio.gather(*(one(plate) for plate in plates))

        await timed(f"{lives} servers verified and inspected", farm, all_of_them, lives)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="servers of the farm")
    parser.add_argument("--lives", type=int, default=200, help="how many of them are verified and inspected")
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument(
        "--leave-on", action="store_true", help="leave the agents running after the inspection"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lives = min(given.lives, given.count)
        asyncio.run(measure(given.count, lives, given.at_once, Path(folder), leave_on=given.leave_on))


if __name__ == "__main__":
    main()
