"""The file of the demo machines: nothing that was answered is lost, and one process at a time owns it."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from contract import ACCESS, KEY, playing
from ironic_orders import Guard
from stages import DemoStage

from ingot.api.meta import Key
from ingot.provisioner import (
    BackendUnavailable,
    Busy,
    HostRef,
    NotRegistered,
    Power,
    PowerOffMode,
    Ready,
    Registered,
)
from ingot.provisioner.demo import (
    AT_ONCE,
    Behaviour,
    DemoProvisioner,
    DemoStateError,
    HostScript,
    Outage,
    Script,
)

UNTIL_KILLED = """
import asyncio, sys
from pathlib import Path
from contract import ACCESS, UID
from ingot.api.meta import Key
from ingot.provisioner import HostRef
from ingot.provisioner.demo import AT_ONCE, DemoProvisioner

async def register(backend, worker):
    for number in range(1_000_000):
        key = Key("rack", f"h{worker}-{number}")
        answer = await backend.register(HostRef(key, UID), ACCESS, credentials_changed=True, again=False)
        print(key.name, answer.value.backend_id, flush=True)

async def main():
    async with DemoProvisioner(Path(sys.argv[1]), AT_ONCE) as backend:
        await asyncio.gather(*(register(backend, worker) for worker in range(8)))

asyncio.run(main())
"""


def ref(name: str = "h1") -> HostRef:
    return HostRef(Key("rack", name), "uid")


async def registered(backend: DemoProvisioner, host: HostRef) -> Ready[Registered]:
    answer = await backend.register(host, ACCESS, credentials_changed=True, again=False)
    assert isinstance(answer, Ready)
    return answer


async def test_nothing_that_was_answered_is_lost_when_the_process_is_killed(tmp_path: Path):
    path = tmp_path / "demo.sqlite"
    here = str(Path(__file__).parent)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", UNTIL_KILLED, str(path), stdout=PIPE, env=os.environ | {"PYTHONPATH": here}
    )
    assert process.stdout is not None
    answered: dict[str, str] = {}
    async with asyncio.timeout(60):
        while len(answered) < 300:
            name, found = (await process.stdout.readline()).decode().split()
            answered[name] = found
        process.send_signal(signal.SIGKILL)
        for line in (await process.stdout.read()).decode().splitlines(keepends=True):
            if line.endswith("\n"):
                name, found = line.split()
                answered[name] = found
        await process.wait()
    async with DemoProvisioner(path, AT_ONCE) as backend:
        for name, found in answered.items():
            assert await registered(backend, ref(name)) == Ready(Registered(found))


async def test_what_became_due_while_nobody_ran_is_done_when_somebody_does(tmp_path: Path):
    now = [1_000.0]
    script = Script(default=HostScript(others=Behaviour(seconds=60)))
    path = tmp_path / "demo.sqlite"
    async with DemoProvisioner(path, script, clock=lambda: now[0]) as backend:
        answer = await backend.register(ref(), ACCESS, credentials_changed=True, again=False)
        assert isinstance(answer, Busy)
    now[0] += 3600
    async with playing(DemoStage(path, script, clock=lambda: now[0])) as play:
        assert isinstance(await play.register(), Ready)
        # By then nothing is due any more: a machine that is at it stays so.
        assert isinstance(
            await play.backend.set_power(
                play.host, Power.ON, mode=PowerOffMode.SOFT, permit=play.permit, again=False
            ),
            Busy,
        )
        assert not play.stage.powered_on()


async def test_the_owner_before_is_overtaken_and_writes_no_more(tmp_path: Path):
    path = tmp_path / "demo.sqlite"
    async with DemoProvisioner(path, AT_ONCE) as old:
        await registered(old, ref("a"))
        async with DemoProvisioner(path, AT_ONCE) as new:
            found = await registered(new, ref("b"))
            with pytest.raises(BackendUnavailable, match="another operator has opened"):
                await registered(old, ref("c"))
            with pytest.raises(BackendUnavailable, match="another operator has opened"):
                await old.check()
            assert await registered(new, ref("b")) == found
            assert isinstance(await new.vitals(ref("c")), NotRegistered)


async def test_everybody_who_waits_is_told_that_another_owns_the_file_also_if_one_gave_up(tmp_path: Path):
    path = tmp_path / "demo.sqlite"
    async with DemoProvisioner(path, AT_ONCE) as old, DemoProvisioner(path, AT_ONCE):
        busy = sqlite3.connect(path, isolation_level=None)
        busy.execute("BEGIN IMMEDIATE")
        first = asyncio.create_task(registered(old, ref("a")))
        # The first write waits for the file now; the others wait for the one after it.
        await asyncio.sleep(0.05)
        others = [asyncio.create_task(registered(old, ref(name))) for name in ("b", "c")]
        await asyncio.sleep(0.05)
        others[0].cancel()
        busy.close()
        async with asyncio.timeout(60):
            told = await asyncio.gather(first, *others, return_exceptions=True)
        assert [type(one).__name__ for one in told] == ["Overtaken", "CancelledError", "Overtaken"]


async def test_a_file_that_cannot_be_written_is_said_and_tried_again(tmp_path: Path):
    path = tmp_path / "demo.sqlite"
    async with DemoProvisioner(path, AT_ONCE) as backend:
        await registered(backend, ref("a"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("ALTER TABLE machine RENAME TO elsewhere")
        with pytest.raises(BackendUnavailable, match="cannot be written: no such table"):
            await registered(backend, ref("b"))
        with pytest.raises(BackendUnavailable, match="cannot be written"):
            await backend.vitals(ref("a"))
        other.execute("ALTER TABLE elsewhere RENAME TO machine")
        other.close()
        async with asyncio.timeout(60):
            while True:
                try:
                    await backend.check()
                    break
                except BackendUnavailable:
                    await asyncio.sleep(0.05)
        await registered(backend, ref("b"))
    async with DemoProvisioner(path, AT_ONCE) as backend:
        assert not isinstance(await backend.vitals(ref("b")), NotRegistered)


@pytest.mark.parametrize("content", [b"this is no database, and never was one" * 50, None])
async def test_a_file_that_is_none_of_ours_is_refused_with_a_sentence(tmp_path: Path, content: bytes | None):
    path = tmp_path / "demo.sqlite"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(DemoStateError, match=r"demo\.sqlite cannot be used"):
        async with DemoProvisioner(path, AT_ONCE):
            pass


async def test_a_file_of_a_later_version_is_left_alone(tmp_path: Path):
    path = tmp_path / "demo.sqlite"
    async with DemoProvisioner(path, AT_ONCE):
        pass
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(DemoStateError, match="format 99"):
        async with DemoProvisioner(path, AT_ONCE):
            pass


async def test_the_file_is_for_its_owner_only(tmp_path: Path):
    path = tmp_path / "operator" / "demo.sqlite"
    async with DemoProvisioner(path, AT_ONCE):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_an_outage_happens_once_however_often_the_operator_is_restarted(tmp_path: Path):
    now = [1_000.0]
    script = Script(default=AT_ONCE.default, outages=[Outage(after=10, seconds=5, forgets=True)])
    path = tmp_path / "demo.sqlite"

    def opened() -> DemoProvisioner:
        return DemoProvisioner(path, script, clock=lambda: now[0])

    async with opened() as backend:
        await registered(backend, ref())
    now[0] += 12
    async with opened() as backend:
        await asyncio.sleep(0.01)
        with pytest.raises(BackendUnavailable):
            await backend.check()
    now[0] += 12
    async with opened() as backend:
        await asyncio.sleep(0.01)
        assert isinstance(await backend.vitals(ref()), NotRegistered)
        await registered(backend, ref())
    async with opened() as backend:
        await asyncio.sleep(0.01)
        assert not isinstance(await backend.vitals(ref()), NotRegistered)


async def test_machines_that_are_due_all_at_once_hold_nobody_up(tmp_path: Path):
    """Not a limit of time, but of work: it is done in slices, and others run in between."""
    path = tmp_path / "demo.sqlite"
    now = [1_000.0]
    script = Script(default=HostScript(others=Behaviour(seconds=5)))
    async with DemoProvisioner(path, script, clock=lambda: now[0]) as backend:
        orders = (
            backend.register(ref(f"h{number}"), ACCESS, credentials_changed=True, again=False)
            for number in range(4_000)
        )
        await asyncio.gather(*orders)
    now[0] += 6
    heard: set[object] = set()
    async with DemoProvisioner(path, script, clock=lambda: now[0]) as backend:

        async def listen() -> None:
            async for change in backend.changes():
                heard.add(change)

        listening = asyncio.create_task(listen())
        turns = 0
        async with asyncio.timeout(60):
            while len(heard) < 4_000:
                turns += 1
                await asyncio.sleep(0)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        assert turns >= 20
        assert isinstance(await registered(backend, ref("h3999")), Ready)


async def test_a_restarted_back_end_still_asks_before_it_destroys(tmp_path: Path):
    path = tmp_path / "demo.sqlite"
    async with playing(DemoStage(path, AT_ONCE)) as play:
        await play.provisioned()
        await play.stage.restart()
        guard = Guard()
        await play.backend.deprovision(play.host, automated_cleaning=True, permit=guard, again=False)
        assert guard.asked[0][1].holds_instance
        assert play.host.key == KEY
