"""Laws of the demo back end that hold whatever is asked, however long it takes, and whenever its process dies."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from contract import ACCESS, IMAGE, KEY, OTHER_ORDER
from hypothesis import given, settings
from hypothesis import strategies as st
from ironic_orders import ORDER, Guard

from ingot.provisioner import (
    Busy,
    Failed,
    FirmwareChange,
    HostRef,
    Inspection,
    NotRegistered,
    Power,
    PowerOffMode,
    Preparation,
    Ready,
    Service,
)
from ingot.provisioner.demo import AT_ONCE, Behaviour, DemoProvisioner, HostScript, Script

HOST = HostRef(KEY, "uid")
SLOW = Script(default=HostScript(others=Behaviour(seconds=10)))
FAILING = Script(default=HostScript(others=Behaviour(seconds=10, fails=1)))
CHANGE = FirmwareChange(settings={"NumLock": "Off"})

VERBS = ["register", "inspect", "provision", "provision other", "deprovision", "adopt", "detach", "off", "on"]
NAMED = ["inspect", "prepare", "service"]
steps = st.one_of(
    st.tuples(st.sampled_from(VERBS), st.just(""), st.booleans()),
    st.tuples(st.sampled_from(NAMED), st.sampled_from(["a", "b"]), st.booleans()),
    st.tuples(st.sampled_from(["time passes", "crash", "memory is lost"]), st.just(""), st.just(False)),
)


class World:
    """One file, the process that has it open, and those that died over it."""

    def __init__(self, folder: Path, script: Script, stack: AsyncExitStack) -> None:
        self._path = folder / "demo.sqlite"
        self._script = script
        self._stack = stack
        self.now = 1_000.0
        self.guard = Guard()

    async def start(self) -> None:
        """Another process opens the file; the one before does not get to write what it has in hand."""
        backend = DemoProvisioner(self._path, self._script, clock=lambda: self.now)
        self.backend = await self._stack.enter_async_context(backend)

    async def ask(self, verb: str, name: str, again: bool) -> object:
        backend, permit = self.backend, self.guard
        match verb:
            case "register":
                return await backend.register(HOST, ACCESS, credentials_changed=True, again=again)
            case "inspect":
                return await backend.inspect(HOST, Inspection(renewal=name), permit=permit, again=again)
            case "prepare":
                order = Preparation(name=name, firmware=CHANGE)
                return await backend.prepare(HOST, order, permit=permit, again=again)
            case "service":
                return await backend.service(
                    HOST, Service(name=name, firmware=CHANGE), permit=permit, again=again
                )
            case "provision" | "provision other":
                wanted = ORDER if verb == "provision" else OTHER_ORDER
                return await backend.provision(HOST, wanted, permit=permit, again=again)
            case "deprovision":
                return await backend.deprovision(HOST, automated_cleaning=True, permit=permit, again=again)
            case "adopt":
                return await backend.adopt(HOST, IMAGE, permit=permit, again=again)
            case "detach":
                return await backend.detach(HOST, force=again, permit=permit)
            case _:
                wanted_power = Power.ON if verb == "on" else Power.OFF
                return await backend.set_power(
                    HOST, wanted_power, mode=PowerOffMode.HARD, permit=permit, again=again
                )

    async def step(self, verb: str, name: str, again: bool) -> None:
        match verb:
            case "time passes":
                self.now += 11
                # Opening anew is what makes a back end look at a clock that was set.
                await self.start()
                await asyncio.sleep(0.002)
            case "crash":
                await self.start()
            case "memory is lost":
                self.backend.lose_memory()
            case _:
                answer = await self.ask(verb, name, again)
                assert isinstance(answer, Ready | Busy | Failed | NotRegistered)

    async def to_end(self, verb: str) -> object:
        """Asked until it is done, with the patience of an operator."""
        for _ in range(12):
            answer = await self.ask(verb, "", True)
            if isinstance(answer, Ready):
                return answer
            if isinstance(answer, NotRegistered):
                await self.ask("register", "", True)
            await self.step("time passes", "", False)
        raise AssertionError(f"{verb} comes to no end: {answer}")


async def lives(story: list[tuple[str, str, bool]], script: Script) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            world = World(Path(folder), script, stack)
            await world.start()
            lives_of_the_record = 1
            for verb, name, again in story:
                await world.step(verb, name, again)
                lives_of_the_record += verb in ("memory is lost", "detach", "adopt")
            machine = world.backend.machine(KEY)
            for verb in ("prepare", "service"):
                # A name is begun again only when another was begun in between, or the record was lost.
                assert machine.done.get(verb, 0) <= lives_of_the_record * _changes(story, verb)
            offs = [step for step in story if step[0] == "off"]
            assert machine.done.get("power off hard", 0) <= len(offs)
            assert len(world.guard.asked) >= sum(
                machine.done.get(deed, 0) for deed in ("prepare", "service", "deploy", "undeploy")
            )
            # From everywhere there is a way out, and a way back to a system.
            await world.to_end("register")
            await world.to_end("deprovision")
            await world.to_end("provision")
            assert world.backend.machine(KEY).disk is not None
            await world.to_end("detach")
            assert isinstance(await world.backend.vitals(HOST), NotRegistered)


def _changes(story: list[tuple[str, str, bool]], verb: str) -> int:
    """How often an order of this verb had another name than the one before."""
    names = [name for asked, name, _ in story if asked == verb]
    return sum(before != after for before, after in zip(["", *names], names, strict=False))


@settings(max_examples=40)
@given(story=st.lists(steps, max_size=25), script=st.sampled_from([AT_ONCE, SLOW, FAILING]))
def test_whatever_happens_there_is_a_way_out_and_nothing_is_done_that_nobody_asked_for(
    story: list[tuple[str, str, bool]], script: Script
):
    asyncio.run(lives([("register", "", False), *story], script))
