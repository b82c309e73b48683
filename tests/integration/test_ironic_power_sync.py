"""What a cycle of power sync costs a BMC: the figures that our intervals, workers and sessions are chosen by."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from aiohttp import web

from ingot.services.environment import ensure
from ingot.services.ironic_conf import render
from ingot.services.settings import IronicPaths, IronicSettings

SCRIPT = Path(__file__).with_name("ironic_power_sync.py")
SYSTEM = "/redfish/v1/Systems/1"
DOCUMENTS = {
    "/redfish/v1": {
        "Id": "RootService",
        "Name": "root",
        "RedfishVersion": "1.6.0",
        "Systems": {"@odata.id": "/redfish/v1/Systems"},
        "Links": {"Sessions": {"@odata.id": "/redfish/v1/SessionService/Sessions"}},
    },
    SYSTEM: {
        "@odata.id": SYSTEM,
        "Id": "1",
        "Name": "a system",
        "PowerState": "On",
        "Status": {"Health": "OK", "State": "Enabled"},
        "Boot": {"BootSourceOverrideMode": "UEFI"},
        "SecureBoot": {"@odata.id": f"{SYSTEM}/SecureBoot"},
    },
    f"{SYSTEM}/SecureBoot": {"Id": "SecureBoot", "Name": "secure boot", "SecureBootEnable": False},
}


class Bmc:
    """Keeps what it is asked, on how many connections, and what each request says of its connection."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.connections: set[object] = set()
        self.kept_alive: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        path = request.path.rstrip("/")
        self.asked[f"{request.method} {path}"] += 1
        self.connections.add(request.transport)
        if request.headers.get("Connection") != "close":
            self.kept_alive.append(path)
        if request.method == "POST":
            place = {"Location": f"{path}/1", "X-Auth-Token": "token"}
            return web.json_response({"@odata.id": f"{path}/1", "Id": "1"}, status=201, headers=place)
        return web.json_response(DOCUMENTS[path])


@pytest.fixture
def settings(tmp_path: Path) -> IronicSettings:
    made = IronicSettings(
        paths=IronicPaths.below(tmp_path / "ironic"),
        cert_file=tmp_path / "tls.crt",
        key_file=tmp_path / "tls.key",
        ca_file=tmp_path / "ca.crt",
        username="ingot",
        password_file=tmp_path / "password",
    )
    made.paths.state.mkdir()
    made.paths.config_file.write_text(render(made, ("redfish", "idrac")))
    return made


async def test_a_cycle_of_power_sync_asks_a_bmc_twice_each_time_on_a_connection_of_its_own(
    settings: IronicSettings,
) -> None:
    bmc = Bmc()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", bmc.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        done = await asyncio.to_thread(
            subprocess.run,
            [str(ensure().program("python")), str(SCRIPT), str(settings.paths.config_file), url],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        await runner.cleanup()
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [[0, 0], "uefi", False, "OK"]
    # Two cycles, and one log-in for both.
    assert bmc.asked.pop(f"GET {SYSTEM}") == 2
    assert bmc.asked.pop(f"GET {SYSTEM}/SecureBoot") == 2
    assert bmc.asked["POST /redfish/v1/SessionService/Sessions"] == 1
    assert bmc.kept_alive == []
    assert len(bmc.connections) == 4 + bmc.asked.total()
