"""Several who keep one MachineSet, caches that lag behind, lost answers and deaths: never a machine too many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from claiming_wire import Fate, Letter, Wire, WiredClient
from keeping_room import PATIENCE, Room, an_api, an_empty_room, names

from ingot.api.machine import MACHINE_SETS, MACHINES, Machine
from ingot.kube import Change, Client, Informer, config
from ingot.machines.machineset.naming import NUMBERS

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    async with an_api(tmp_path_factory.mktemp("api")) as kubeconfig:
        yield kubeconfig


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(kubeconfig) as client:
        yield client


class Witness:
    """Sees every machine that there ever was in a namespace."""

    def __init__(self, machines: Informer[Machine]) -> None:
        self.ever: set[str] = set()
        self.live: set[str] = set()
        self.most = 0
        machines.subscribe(self._saw)

    def _saw(self, change: Change[Machine]) -> None:
        if change.new is None or change.new.metadata.deletion_timestamp is not None:
            self.live.discard(change.key.name)
            return
        self.ever.add(change.key.name)
        self.live.add(change.key.name)
        self.most = max(self.most, len(self.live))


class Scene:
    """A namespace with a witness, and as many who keep its sets as are wanted, each behind a wire of its own."""

    def __init__(self, kubeconfig: Path, room: Room, witness: Witness) -> None:
        self._kubeconfig = kubeconfig
        self.room = room
        self.witness = witness
        self.post: list[Letter] = []
        self._keepers: list[tuple[Room, WiredClient]] = []

    async def keeper(self) -> tuple[Room, Wire]:
        client = WiredClient(config.load(self._kubeconfig))
        client.wire = Wire(self.room.client, self.post)
        room = Room(self.room.client, self.room.namespace)
        room.through = client
        self._keepers.append((room, client))
        await room.start()
        return room, client.wire

    async def until(self, fits: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                if fits():
                    return
                await asyncio.sleep(0.02)

    async def letters(self, count: int) -> list[Letter]:
        await self.until(lambda: len(self.post) >= count)
        found, self.post[:] = list(self.post), []
        return found

    async def deliver(self, count: int) -> None:
        """That many letters, and whatever else lies there."""
        for letter in await self.letters(count):
            await letter.meet("delivered", self.room.client)

    async def end(self) -> None:
        for letter in self.post:
            await letter.meet("lost", self.room.client)
        for room, client in self._keepers:
            await room.stop()
            await client.close()


@pytest_asyncio.fixture(loop_scope="module")
async def scene(kubeconfig: Path, client: Client) -> AsyncIterator[Scene]:
    async with an_empty_room(client) as room, _watched(client, room) as witness:
        scene = Scene(kubeconfig, room, witness)
        yield scene
        await scene.end()


@asynccontextmanager
async def _watched(client: Client, room: Room) -> AsyncIterator[Witness]:
    machines = Informer(client, MACHINES, namespace=room.namespace)
    watching = asyncio.create_task(machines.run())
    await machines.synced()
    yield Witness(machines)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_two_who_keep_the_same_set_at_the_same_time_make_no_machine_twice(scene: Scene) -> None:
    await scene.keeper()
    await scene.keeper()
    await scene.room.a_set(replicas=40)
    await scene.room.settled(count=40)
    await scene.until(lambda: len(scene.witness.live) == 40)
    assert len(scene.witness.ever) == 40
    await scene.room.change(MACHINE_SETS, "workers", {"spec": {"replicas": 25}})
    await scene.room.settled(count=25)
    await scene.until(lambda: len(scene.witness.live) == 25)
    # Nobody deleted what the other had not heard of, so nobody had to make anything again.
    assert len(scene.witness.ever) == 40


async def test_with_a_cache_that_lags_behind_nothing_is_made_twice_and_nothing_deleted_in_error(
    scene: Scene,
) -> None:
    _, wire = await scene.keeper()
    _, other = await scene.keeper()
    await scene.room.a_set(replicas=3)
    await scene.room.settled(count=3)
    wire.hold_back("Machine")
    other.hold_back("MachineSet")
    await scene.room.change(MACHINE_SETS, "workers", {"spec": {"replicas": 6}})
    await scene.room.until_machines(lambda found: len(found) == 6)
    first = names(await scene.room.machines())
    # The one who still believes in three sees six machines, the other one may see three and wants six.
    other.let_through("MachineSet", 0)
    for number in range(3):
        await scene.room.annotate(MACHINE_SETS, "workers", look=str(number))
        await asyncio.sleep(0.3)
    assert names(await scene.room.machines()) == first
    wire.let_through("Machine", None)
    other.let_through("MachineSet", None)
    await scene.room.settled(count=6)
    assert scene.witness.ever == first


@pytest.mark.parametrize("fate", ["delivered", "unanswered", "lost"])
async def test_a_creation_whose_answer_is_lost_is_not_repeated(scene: Scene, fate: Fate) -> None:
    """`fate`: of what is written before."""
    _, wire = await scene.keeper()
    wire.slow = True
    await scene.room.a_set(replicas=4)
    (intention,) = await scene.letters(1)
    assert NUMBERS in intention.what
    await intention.meet(fate, scene.room.client)
    if fate == "lost":
        await scene.deliver(1)
    for letter in await scene.letters(4):
        assert letter.what.startswith("create Machine")
        await letter.meet("unanswered", scene.room.client)
    wire.slow = False
    await scene.deliver(0)
    await scene.room.settled(count=4)
    assert len(scene.witness.ever) == 4


async def test_what_a_dead_process_sent_makes_no_machine_that_another_has_made_meanwhile(
    scene: Scene,
) -> None:
    dead, wire = await scene.keeper()
    wire.slow = True
    await scene.room.a_set(replicas=5)
    await scene.deliver(1)
    late = await scene.letters(5)
    wire.dead = True
    await dead.stop()
    await scene.keeper()
    await scene.room.settled(count=5)
    for letter in late:
        await letter.meet("delivered", scene.room.client)
    await asyncio.sleep(0.3)
    assert len(await scene.room.machines()) == 5
    await scene.until(lambda: len(scene.witness.ever) == 5)
    assert scene.witness.most == 5


async def test_a_machine_that_is_made_in_place_of_one_that_is_gone_has_another_name(scene: Scene) -> None:
    keeper, _ = await scene.keeper()
    await scene.room.a_set(replicas=1)
    await scene.room.settled(count=1)
    await keeper.stop()
    (gone,) = await scene.room.machines()
    await scene.room.client.delete(MACHINES, gone.key)
    await scene.room.gone(MACHINES, gone.metadata.name)
    await scene.keeper()
    (other,) = await scene.room.until_machines(bool)
    assert other.metadata.name != gone.metadata.name


@pytest.mark.parametrize("heard", [True, False])
async def test_whoever_comes_after_one_that_died_in_the_middle_makes_what_is_missing(
    scene: Scene, heard: bool
) -> None:
    dead, wire = await scene.keeper()
    wire.doom, wire.unheard = 7, not heard
    await scene.room.a_set(replicas=30)
    await scene.until(lambda: wire.dead)
    await dead.stop()
    assert len(await scene.room.machines()) < 30
    await scene.keeper()
    await scene.room.settled(count=30)
    await scene.until(lambda: len(scene.witness.live) == 30)
    assert len(scene.witness.ever) == 30
