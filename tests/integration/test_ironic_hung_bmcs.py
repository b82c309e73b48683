"""Power sync with a rack of BMCs that hang: the real Ironic still sees what becomes of everybody else's power."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from service_room import Ironic, until

RACK = [f"hung-{number}" for number in range(24)]
OF_IRONIC = 8
"""The workers that Ironic has for this unless it is told otherwise: they would all wait for the rack."""
GOOD = "good"
SYSTEMS = "/redfish/v1/Systems"
BEFORE_IRONIC_GIVES_UP = 45.0
"""Seconds. A look that hangs ends after a minute, and its worker looks at another host then. With enough of them the good host
is seen within three."""
BORN_AVAILABLE = "1.10"
"""The last version of the API in which a node needs no verifying, which would be hundreds of calls."""


class Bmcs:
    """One listener with a system for each server. Those that hang take what they are asked, and answer at the end."""

    def __init__(self) -> None:
        self.power = "On"
        """Of the good one."""
        self.armed = False
        """With the next look at the first of the rack, where a round begins, all of it hangs, and the good one is switched."""
        self._hang = False
        self.waiting: set[str] = set()
        """Who has been asked since, and has not answered."""
        self._ending = asyncio.Event()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_get("/redfish/v1{slash:/?}", self._root)
        app.router.add_post("/redfish/v1/SessionService/Sessions", self._log_in)
        app.router.add_get(f"{SYSTEMS}/{{name}}", self._system)
        app.router.add_get(f"{SYSTEMS}/{{name}}/SecureBoot", self._secure_boot)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            self._ending.set()
            await runner.cleanup()

    async def _root(self, _: web.Request) -> web.Response:
        sessions = {"Sessions": {"@odata.id": "/redfish/v1/SessionService/Sessions"}}
        shown = {"Id": "RootService", "Name": "root", "RedfishVersion": "1.6.0", "Links": sessions}
        return web.json_response(shown | {"Systems": {"@odata.id": SYSTEMS}})

    async def _log_in(self, request: web.Request) -> web.Response:
        here = {"@odata.id": f"{request.path}/1", "Id": "1"}
        headers = {"Location": f"{request.path}/1", "X-Auth-Token": "token"}
        return web.json_response(here, status=201, headers=headers)

    async def _system(self, request: web.Request) -> web.Response:
        name, here = request.match_info["name"], request.path
        if self.armed and name == RACK[0]:
            self._hang, self.power = True, "Off"
        if self._hang and name != GOOD:
            self.waiting.add(name)
            await self._ending.wait()
        return web.json_response(
            {
                "@odata.id": here,
                "Id": name,
                "Name": name,
                "Manufacturer": "Ingot",
                "PowerState": self.power if name == GOOD else "On",
                "Status": {"Health": "OK", "State": "Enabled"},
                "Boot": {"BootSourceOverrideMode": "UEFI"},
                "SecureBoot": {"@odata.id": f"{here}/SecureBoot"},
            }
        )

    async def _secure_boot(self, _: web.Request) -> web.Response:
        return web.json_response({"Id": "SecureBoot", "Name": "secure boot", "SecureBootEnable": False})


async def create(ironic: Ironic, name: str, address: str) -> None:
    access = {
        "redfish_address": address,
        "redfish_system_id": f"{SYSTEMS}/{name}",
        "redfish_username": "admin",
        "redfish_password": "password",
    }
    node = {"name": name, "driver": "redfish", "driver_info": access}
    status, made = await ironic.call("POST", "/v1/nodes", node, version=BORN_AVAILABLE)
    assert status == 201, made


async def power(ironic: Ironic) -> dict[str, str | None]:
    _, found = await ironic.call("GET", "/v1/nodes?fields=name,power_state")
    return {node["name"]: node["power_state"] for node in found["nodes"]}


@pytest.fixture
def bmcs() -> Bmcs:
    return Bmcs()


async def test_a_switch_behind_our_back_is_seen_while_every_bmc_of_a_rack_hangs(
    tmp_path: Path, bmcs: Bmcs
) -> None:
    ironic = Ironic(tmp_path, power_sync_interval=2)

    async def all_are_on() -> bool:
        found = await power(ironic)
        return set(found.values()) == {"power on"} and len(found) == len(RACK) + 1

    async def one_hangs() -> bool:
        return bool(bmcs.waiting)

    async def is_seen() -> bool:
        return (await power(ironic))[GOOD] == "power off"

    try:
        async with bmcs.listening() as address:
            await ironic.start()
            for name in (*RACK, GOOD):
                await create(ironic, name, address)
            await until(all_are_on, "looked at, each of them")
            bmcs.armed = True
            await until(one_hangs, "a look that hangs")
            begun = time.monotonic()
            while (hang := len(bmcs.waiting)) <= OF_IRONIC or not await is_seen():
                took = time.monotonic() - begun
                assert took < BEFORE_IRONIC_GIVES_UP, f"not seen after {took:.0f} s: {hang} looks hang"
                await asyncio.sleep(0.1)
    finally:
        await ironic.close()
