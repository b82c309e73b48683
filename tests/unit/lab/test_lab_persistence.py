"""The farm is killed with -9 and started again: nothing that was acknowledged is lost, and what ran goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import sqlite3
import ssl
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner
from lab_bench import FAST, Bench, config_drive, until
from lab_ironic import DEADLINE, LabIronic

from ingot.cli.lab import lab as lab_command
from ingot.lab import labfile
from ingot.lab.chassis import Chassis
from ingot.lab.client import Lab
from ingot.lab.errors import LabError
from ingot.lab.farm import Farm
from ingot.lab.faults import Faults
from ingot.lab.firmware import Firmware
from ingot.lab.ledger import Ledger
from ingot.lab.machine import Machine
from ingot.lab.record import Command, Ramdisk, Record
from ingot.lab.settings import FarmSettings


class FarmProcess:
    """`ingot lab farm` as a process of its own."""

    def __init__(self, state: Path, agent_api: str) -> None:
        self._state = state
        self._agent_api = agent_api
        self._process: asyncio.subprocess.Process | None = None
        self.ready_line = ""

    async def start(self, *extra: str) -> None:
        command = [
            "lab",
            "farm",
            "--state",
            str(self._state),
            "--count",
            "1",
            "--agent-api",
            self._agent_api,
        ]
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "from ingot.cli.main import main; main()",
            *command,
            *("--boot-seconds", "0.1", *extra),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        async with asyncio.timeout(DEADLINE):
            self.ready_line = (await self._process.stdout.readline()).decode().strip()

    async def end(self, number: int) -> int:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
        async with asyncio.timeout(DEADLINE):
            return await self._process.wait()

    async def kill_and_restart(self, *extra: str) -> None:
        await self.end(signal.SIGKILL)
        await self.start(*extra)


@pytest.fixture
async def farm(tmp_path: Path, ironic: LabIronic) -> AsyncIterator[FarmProcess]:
    farm = FarmProcess(tmp_path, ironic.url)
    await farm.start()
    yield farm
    await farm.end(signal.SIGKILL)


@pytest.fixture
async def killable(tmp_path: Path, ironic: LabIronic, farm: FarmProcess) -> AsyncIterator[Bench]:
    async with Lab.open(tmp_path) as lab:
        yield Bench(tmp_path, lab, ironic)


async def test_it_says_when_it_is_ready_and_stops_when_asked(farm: FarmProcess) -> None:
    assert farm.ready_line.startswith("lab ready: 1 server at https://127.0.0.1:")
    assert await farm.end(signal.SIGTERM) == 0


async def test_address_password_power_media_and_faults_survive(killable: Bench, farm: FarmProcess) -> None:
    await killable.lab.set_password(killable.plate.name, "changed")
    await killable.insert("https://127.0.0.1/x.iso")
    await killable.boot_next("Hdd", "Continuous")
    await killable.reset("On")
    await killable.lab.set_faults(killable.plate.name, Faults(fail_power=True))
    before, plate = await killable.server(), killable.plate
    await farm.kill_and_restart()
    after = await killable.server()
    assert killable.plate == plate
    assert (after.power, after.media, after.faults) == ("On", before.media, before.faults)
    assert after.power_actions == before.power_actions
    assert (await killable.bmc("GET"))[1]["Boot"]["BootSourceOverrideTarget"] == "Hdd"


async def test_an_agent_goes_on_as_the_same_agent(killable: Bench, farm: FarmProcess) -> None:
    await killable.boot_ramdisk()
    await farm.kill_and_restart()
    heard = len(killable.ironic.heartbeats)

    async def again() -> bool:
        return len(killable.ironic.heartbeats) > heard

    await until(again, "a heartbeat after the restart")
    first, last = killable.ironic.heartbeats[0], killable.ironic.heartbeats[-1]
    assert first == last  # the same token, address and certificate
    assert len(killable.ironic.lookups) == 1
    assert len(killable.ironic.inspections) == 1
    status, _ = await killable.ironic.order("clean.get_clean_steps", {}, wait=True)
    assert status == 200


async def test_an_agent_whose_port_is_taken_waits_for_it(tmp_path: Path, ironic: LabIronic) -> None:
    settings = FarmSettings(state=tmp_path, servers=1, agent_api=ironic.url, timings=FAST)
    async with Farm.running(settings), Lab.open(tmp_path) as lab:
        await Bench(tmp_path, lab, ironic).boot_ramdisk()
    url = urlsplit(ironic.heartbeats[-1]["callback_url"])
    host, port = str(url.hostname), url.port
    heard = len(ironic.heartbeats)

    async def again() -> bool:
        return len(ironic.heartbeats) > heard

    with socket.create_server((host, port)) as taken:
        async with Farm.running(settings), Lab.open(tmp_path) as lab:
            await Bench(tmp_path, lab, ironic).said(f"cannot listen on {host}:{port}")
            taken.close()
            await until(again, "a heartbeat once the port is free")
    assert ironic.heartbeats[-1] == ironic.heartbeats[0]


async def test_a_farm_that_stops_while_a_server_restarts_itself_leaves_nothing_running(
    tmp_path: Path,
) -> None:
    [plate] = labfile.grown(tmp_path, host="127.0.0.1", servers=1).servers
    slow = replace(FAST, boot=3600.0)
    ledger = Ledger(tmp_path)
    chassis = Chassis(plate, tmp_path / "server", ledger)
    machine = Machine(chassis, timings=slow, firmware=Firmware(trusted=ssl.create_default_context()))
    await machine.reset("On")
    before = asyncio.all_tasks()
    await machine.power_from_within(again=True)
    await machine.stop()
    assert asyncio.all_tasks() <= before
    assert chassis.record.boots == 2, "the restart that was under way is not lost"
    await ledger.close()


async def test_records_that_cannot_be_read_are_named(killable: Bench, farm: FarmProcess) -> None:
    await killable.reset("On")
    await farm.end(signal.SIGTERM)
    settings = FarmSettings(state=killable.state, servers=1, agent_api="https://127.0.0.1:1")
    file = killable.state / "lab" / "servers.db"
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE records SET record = '{'")
        database.commit()
    with pytest.raises(LabError, match=f"the record of server-1 in {file} cannot be read"):
        async with Farm.running(settings):
            pass
    file.write_bytes(b"not a database, and longer than its header would be" * 10)
    with pytest.raises(LabError, match=f"{file} cannot be read"):
        async with Farm.running(settings):
            pass


async def test_a_lab_that_kept_one_file_a_server_is_read_on(tmp_path: Path) -> None:
    settings = FarmSettings(state=tmp_path, servers=1, agent_api="https://127.0.0.1:1", timings=FAST)
    file = tmp_path / "lab" / "servers" / "server-1" / "record.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"power": "On", "deployments": 7, "faults": {"fail_power": true}}')
    for _ in range(2):
        async with Farm.running(settings), Lab.open(tmp_path) as lab:
            [server] = await lab.servers()
            assert (server.power, server.deployments, server.faults.fail_power) == ("On", 7, True)
        assert not file.exists()


async def test_a_file_of_an_older_lab_that_cannot_be_read_is_named_and_stays(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    file.write_text("{")
    ledger = Ledger(tmp_path)
    with pytest.raises(LabError, match=f"{file} cannot be read"):
        ledger.record("server-1", once_in=file)
    await ledger.close()
    assert file.exists()


async def test_saves_that_wait_together_are_all_on_disk_when_they_return(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    records = {f"server-{number}": Record(boots=number) for number in range(250)}

    async def save(name: str, record: Record) -> None:
        for _ in range(3):
            record.boots += 1000
            await ledger.save(name, record)

    cancelled = asyncio.create_task(save("server-7", records["server-7"]))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.gather(*(save(name, record) for name, record in records.items()))
    with contextlib.closing(sqlite3.connect(tmp_path / "servers.db")) as database:
        kept = {name: json.loads(text)["boots"] for name, text in database.execute("SELECT * FROM records")}
    assert kept == {name: record.boots for name, record in records.items()}
    await ledger.close()


async def test_a_save_does_not_wait_for_the_threads_that_write_images(tmp_path: Path) -> None:
    ledger, written = Ledger(tmp_path), threading.Event()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    image = asyncio.create_task(asyncio.to_thread(written.wait))
    try:
        async with asyncio.timeout(DEADLINE):
            await ledger.save("server-1", Record())
            await ledger.close()
    finally:
        written.set()
        await image


async def test_a_record_that_cannot_be_kept_fails_alone(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    odd = Command(id="1", name="x", params={}, result=object())
    broken = Record(ramdisk=Ramdisk(parameters={}, ca="", commands=[odd]))
    saves = ledger.save("server-1", broken), ledger.save("server-2", Record())
    async with asyncio.timeout(DEADLINE):
        first, second = await asyncio.gather(*saves, return_exceptions=True)
    assert isinstance(first, TypeError)
    assert second is None
    await ledger.close()


async def test_a_farm_takes_the_open_files_that_it_needs(tmp_path: Path) -> None:
    ingot = [sys.executable, "-c", "from ingot.cli.main import main; main()"]
    options = [
        "lab",
        "farm",
        "--state",
        str(tmp_path),
        "--count",
        "100",
        "--agent-api",
        "https://127.0.0.1:1",
    ]
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", 'ulimit -Sn 64 && exec "$@"', "sh", *ingot, *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE):
        line = (await process.stdout.readline()).decode()
        process.terminate()
        await process.wait()
    assert line.startswith("lab ready: 100 servers")


async def test_a_ledger_that_cannot_be_written_fails_the_save_and_works_again_later(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "servers.db")) as database:
        database.execute("ALTER TABLE records RENAME TO away")
        with pytest.raises(OSError, match=r"servers\.db cannot be written"):
            await ledger.save("server-1", Record())
        database.execute("ALTER TABLE away RENAME TO records")
    await ledger.save("server-1", Record())
    await ledger.close()


async def test_a_farm_that_listens_elsewhere_still_vouches_for_its_servers(
    tmp_path: Path, ironic: LabIronic
) -> None:
    for host in ("127.0.0.1", "127.0.0.2"):
        settings = FarmSettings(state=tmp_path, servers=1, agent_api=ironic.url, listen_host=host)
        async with Farm.running(settings), Lab.open(tmp_path) as lab:
            bench = Bench(tmp_path, lab, ironic)
            assert bench.plate.host == "127.77.0.1"
            assert (await bench.bmc("GET"))[0] == 200
            assert (await bench.server()).power == "Off"


async def test_a_network_that_this_machine_does_not_have_is_named(tmp_path: Path) -> None:
    settings = FarmSettings(
        state=tmp_path, servers=1, agent_api="https://127.0.0.1:1", network="203.0.113.0/24"
    )
    with pytest.raises(LabError, match=r"cannot listen on 203\.0\.113\.1:.*another --network"):
        async with Farm.running(settings):
            pass


async def test_an_image_that_was_being_written_is_written_to_its_end_and_counts_once(
    killable: Bench, farm: FarmProcess
) -> None:
    await farm.kill_and_restart("--disk-speed", "4")  # four seconds for the sample image
    await killable.boot_ramdisk()
    writing = asyncio.create_task(killable.deploy_sample("raw", config_drive(user_data="u", hostname="h")))
    await killable.said("write_image begins")
    await asyncio.sleep(0.5)
    await farm.end(signal.SIGKILL)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    address = urlsplit(killable.ironic.heartbeats[-1]["callback_url"])
    with socket.create_server((str(address.hostname), address.port or 0)):
        await farm.start()
        await killable.said("the agent waits")
        await killable.said("runs again from its start")  # also when nobody can reach the agent yet
    heard = len(killable.ironic.heartbeats)

    async def reachable() -> bool:
        return len(killable.ironic.heartbeats) > heard

    await until(reachable, "a heartbeat")
    assert (await killable.ironic.finished())["command_status"] == "SUCCEEDED"
    assert (await killable.server()).deployments == 1


async def test_a_running_instance_runs_on(killable: Bench, farm: FarmProcess) -> None:
    await killable.boot_ramdisk()
    await killable.deploy_sample("qcow2", config_drive(user_data="u", hostname="web-1"))
    await killable.ironic.order("standby.power_off", {})
    await killable.reset("On")
    await killable.said("booted the image on the disk")
    before = await killable.server()
    await farm.kill_and_restart()
    after = await killable.server()
    assert after.running is not None
    assert (after.booted_into, after.running, after.boots) == ("instance", before.running, before.boots)


async def test_the_list_shows_what_a_person_in_front_of_the_servers_sees(
    killable: Bench, farm: FarmProcess
) -> None:
    await killable.reset("On")
    arguments = ["list", "--state", str(killable.state)]
    shown = await asyncio.to_thread(CliRunner().invoke, lab_command, arguments)
    head, row = shown.output.splitlines()
    assert head.split() == ["NAME", "POWER", "RUNS", "HOST", "NAME", "DEPLOYED", "CLEANED", "FAULTS", "BMC"]
    assert row.split() == ["server-1", "On", "nothing", "-", "0", "0", "-", killable.plate.bmc_address]
    as_json = await asyncio.to_thread(CliRunner().invoke, lab_command, [*arguments, "-o", "json"])
    assert json.loads(as_json.output)[0]["power_actions"][0]["what"] == "On"


async def test_a_second_farm_on_the_same_folder_is_told_who_holds_it(
    killable: Bench, farm: FarmProcess
) -> None:
    settings = FarmSettings(state=killable.state, servers=1, agent_api="https://127.0.0.1:1")
    with pytest.raises(LabError, match=r"another farm \(process \d+\) serves"):
        async with Farm.running(settings):
            pass


async def test_a_farm_that_is_not_there_is_named(killable: Bench, farm: FarmProcess) -> None:
    await farm.end(signal.SIGKILL)
    with pytest.raises(LabError, match="is the farm running"):
        await killable.lab.servers()
