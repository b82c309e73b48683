"""The laws of claiming, over several actuators at once, caches that lag, slow and broken wires, and deaths at any moment.

- A host has one consumer: whoever has it keeps it until he lets it go himself, and only what is free is taken.
- A Machine, and a claim, has one host at most.
- Image and consumer change together: no host is claimed without what its claimant asked for, and none is told to run something
  by nobody. Who leaves empties the host first, and leaves when it is empty.
- A Machine keeps what it has installed; a claim that changes its image gets it.
- Nothing is lost: at rest, whoever could have a host has one, both sides know it, and whoever was deleted is gone.
- An undisturbed claim costs three writes at most, and at rest nothing is written.

`INGOT_LAWS_EXAMPLES=n` tries n lives, `INGOT_LAWS_FIRST=m` others than usual, `INGOT_LAWS_STEPS=k` longer ones. Each has a
number, and is the same each time as far as threads allow.
"""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from claiming_people import RACKS, TROUBLES, People, Stranger
from claiming_wire import Fate, Wire
from claiming_world import FOLLOWED, World
from hypothesis import HealthCheck, Phase, assume, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, get_state_machine_test, initialize, precondition, rule

from leaping_worlds import api_in_a_thread

LIVES: Final = int(os.environ.get("INGOT_LAWS_EXAMPLES", "6"))
FIRST: Final = int(os.environ.get("INGOT_LAWS_FIRST", "1"))
STEPS: Final = int(os.environ.get("INGOT_LAWS_STEPS", "30"))

LONGEST_PAUSE: Final = 700.0
"""Seconds after which whoever looks again by itself has done so."""
ACTUATORS: Final = 2
CLAIMANTS: Final = ("m1", "m2", "m3", "c1", "c2")
RACK = st.sampled_from(["", "", "a", "b"])
LETTER = st.sampled_from(["a", "b"])
LETTER_OR_NONE = st.sampled_from(["", "a", "b"])
ANY = st.integers(0, 11)
"""One of those there are."""
WHICH = st.integers(0, ACTUATORS - 1)
LAGGING = st.sampled_from([kind.kind for kind in FOLLOWED[:3]])
FATE: st.SearchStrategy[Fate] = st.sampled_from(["delivered", "delivered", "delivered", "unanswered", "lost"])
STRANGERS: st.SearchStrategy[Stranger] = st.sampled_from(["nobody", "stranger", "namesake"])
HASTY = st.sampled_from([False, False, True])
"""Whether the next thing happens before anybody has come to rest."""


def pick(names: Iterable[str], number: int) -> str:
    found = sorted(names)
    return found[number % len(found)]


class Claiming(RuleBasedStateMachine):
    kubeconfig: ClassVar[Path]
    """Of the API that all lives share."""

    def __init__(self) -> None:
        super().__init__()
        self._well = False
        self.hosts: set[str] = set()
        self.troubled: set[str] = set()
        self.present: set[str] = set()
        """Machines and claims."""

    @initialize(
        some_life=st.integers(0, 99),
        hosts=st.sampled_from([["h1"], ["h1", "h2"], ["h1", "h2", "h3"]]),
        claimants=st.lists(st.sampled_from(CLAIMANTS), min_size=1, max_size=3, unique=True),
        troubles=st.dictionaries(
            st.sampled_from(sorted(RACKS)), st.sampled_from(sorted(TROUBLES)), max_size=2
        ),
        slow=st.sampled_from([None, 0, 1]),
        lags=st.lists(st.tuples(WHICH, LAGGING), max_size=2),
    )
    def begin(
        self,
        some_life: int,
        hosts: list[str],
        claimants: list[str],
        troubles: dict[str, str],
        slow: int | None,
        lags: list[tuple[int, str]],
    ) -> None:
        # The plainest life of all, which is always tried first, is not worth its time.
        assume(some_life)
        self.world = World(self.kubeconfig, actuators=ACTUATORS)
        self.people = People(self.world)
        self.hosts = set(hosts)
        self._do(self.people.settle_in(hosts))
        for name, trouble in troubles.items():
            self.troubled.add(name)
            self._do(self.people.befall(name, trouble))
        if slow is not None:
            self.world.actuators[slow].wire.slow = True
        for which, kind in lags:
            self.world.actuators[which].wire.hold_back(kind)
        for name in claimants:
            self._create(name, rack="", letter="a", words=True, hasty=True)

    def _do(self, what: Coroutine[Any, Any, Any], *, hasty: bool = False) -> None:
        """Something happens; afterwards the laws hold, unless the next thing happens in the middle of it."""
        self._well = False
        self.world.run(what)
        if not hasty:
            self._look()
        self._well = True

    # What people do

    @precondition(lambda self: len(self.present) < len(CLAIMANTS))
    @rule(number=ANY, rack=RACK, letter=LETTER_OR_NONE, words=st.booleans(), hasty=HASTY)
    def create(self, number: int, rack: str, letter: str, words: bool, hasty: bool) -> None:
        name = pick(set(CLAIMANTS) - self.present, number)
        self._create(name, rack=rack, letter=letter, words=words, hasty=hasty)

    def _create(self, name: str, *, rack: str, letter: str, words: bool, hasty: bool) -> None:
        self.present.add(name)
        if name.startswith("m"):
            made = self.people.create_machine(name, rack=rack, letter=letter or "a")
        else:
            made = self.people.create_claim(name, rack=rack, letter=letter, words=words)
        self._do(made, hasty=hasty)

    @precondition(lambda self: self.present)
    @rule(
        number=ANY,
        rack=RACK,
        letter=LETTER_OR_NONE,
        powered_on=st.sampled_from([True, True, False]),
        words=st.booleans(),
        hasty=HASTY,
    )
    def edit(self, number: int, rack: str, letter: str, powered_on: bool, words: bool, hasty: bool) -> None:
        name = pick(self.present, number)
        if name.startswith("m"):
            change = self.people.edit_machine(name, rack=rack, letter=letter or "b")
        else:
            change = self.people.edit_claim(name, letter=letter, powered_on=powered_on, words=words)
        self._do(change, hasty=hasty)

    @precondition(lambda self: self.present)
    @rule(number=ANY, hasty=HASTY)
    def delete(self, number: int, hasty: bool) -> None:
        # It may be created again before it is gone; then the one that goes is left to go.
        name = pick(self.present, number)
        self.present.discard(name)
        self._do(self.people.delete(name), hasty=hasty)

    @rule(there=st.sampled_from([True, True, False]), text=st.sampled_from(["one", "two"]), hasty=HASTY)
    def change_words(self, there: bool, text: str, hasty: bool) -> None:
        self._do(self.people.change_words(there=there, text=text), hasty=hasty)

    @rule(allowed=st.booleans(), hasty=HASTY)
    def allow(self, allowed: bool, hasty: bool) -> None:
        self._do(self.people.allow(allowed), hasty=hasty)

    # What becomes of hosts

    @precondition(lambda self: len(self.hosts) < len(RACKS))
    @rule(number=ANY, hasty=HASTY)
    def create_host(self, number: int, hasty: bool) -> None:
        name = pick(set(RACKS) - self.hosts, number)
        self.hosts.add(name)
        self._do(self.people.create_host(name), hasty=hasty)

    @precondition(lambda self: self.hosts)
    @rule(number=ANY, hasty=HASTY)
    def delete_host(self, number: int, hasty: bool) -> None:
        name = pick(self.hosts, number)
        self.hosts.discard(name)
        self._do(self.people.delete_host(name), hasty=hasty)

    @precondition(lambda self: self.hosts)
    @rule(number=ANY, trouble=st.sampled_from(sorted(TROUBLES)), hasty=HASTY)
    def befall(self, number: int, trouble: str, hasty: bool) -> None:
        name = pick(self.hosts, number)
        self.troubled.add(name)
        self._do(self.people.befall(name, trouble), hasty=hasty)

    @precondition(lambda self: self.troubled)
    @rule(number=ANY, hasty=HASTY)
    def cure(self, number: int, hasty: bool) -> None:
        name = pick(self.troubled, number)
        self.troubled.discard(name)
        self._do(self.people.cure(name), hasty=hasty)

    @precondition(lambda self: self.hosts)
    @rule(number=ANY, who=STRANGERS, leaves=st.booleans(), hasty=HASTY)
    def stranger(self, number: int, who: Stranger, leaves: bool, hasty: bool) -> None:
        name = pick(self.hosts, number)
        change = self.people.stranger_leaves(name) if leaves else self.people.stranger_takes(name, who)
        self._do(change, hasty=hasty)

    @precondition(lambda self: self.hosts)
    @rule(number=ANY, hasty=HASTY)
    def spoil(self, number: int, hasty: bool) -> None:
        self._do(self.people.spoil(pick(self.hosts, number)), hasty=hasty)

    @rule(number=ANY, times=st.integers(1, 3), hasty=HASTY)
    def live(self, number: int, times: int, hasty: bool) -> None:
        self._do(self._live(pick(RACKS, number), times), hasty=hasty)

    async def _live(self, name: str, times: int) -> None:
        for _ in range(times):
            await self.people.step(name)

    # What becomes of actuators

    @rule(which=WHICH)
    def kill(self, which: int) -> None:
        self._do(self.world.kill(which))

    @rule(which=WHICH, writes=st.integers(1, 4), unheard=st.booleans())
    def doom(self, which: int, writes: int, unheard: bool) -> None:
        wire = self.world.actuators[which].wire
        wire.doom, wire.unheard = writes, unheard

    @rule(which=WHICH, kind=LAGGING)
    def hold_back(self, which: int, kind: str) -> None:
        self.world.actuators[which].wire.hold_back(kind)

    @precondition(lambda self: self._held())
    @rule(number=ANY, news=st.sampled_from([1, 2, None]))
    def let_through(self, number: int, news: int | None) -> None:
        self._do(self._let_through(number, news))

    async def _let_through(self, number: int, news: int | None) -> None:
        wire, kind = self._held()[number % len(self._held())]
        wire.let_through(kind, news)

    def _held(self) -> list[tuple[Wire, str]]:
        return [(actuator.wire, kind) for actuator in self.world.actuators for kind in actuator.wire.held]

    @rule(which=WHICH, slow=st.booleans())
    def slow_down(self, which: int, slow: bool) -> None:
        self.world.actuators[which].wire.slow = slow

    @precondition(lambda self: self.world.post)
    @rule(number=ANY, fate=FATE, hasty=HASTY)
    def deliver(self, number: int, fate: Fate, hasty: bool) -> None:
        self._do(self.world.deliver(number, fate), hasty=hasty)

    @rule(seconds=st.sampled_from([20, 60]))
    def wait(self, seconds: float) -> None:
        self._do(self.world.leap(seconds))

    # The laws

    def _look(self) -> None:
        self.world.run(self.world.settle())
        assert not self.world.complaints.heard, "\n".join(self.world.complaints.heard)
        assert not (broken := self.world.chronicle.broken()), "\n".join(broken)

    # How it ends

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            if self._well:
                self._end()
        finally:
            self.world.close()

    def _end(self) -> None:
        """Nothing is in anybody's way any more, and all news have come through."""
        self._do(self._calm_down())
        self._do(self._clear_the_way())
        self._until_nobody_goes_on()
        at_rest = self.world.run(self.people.all())
        assert not (lost := at_rest.lost()), "\n".join(lost)
        self._nothing_is_written()
        for name in CLAIMANTS:
            self._do(self.people.delete(name), hasty=True)
        self._until_nobody_goes_on()
        left = self.world.run(self.people.all())
        still_there = [*left.machines, *left.claims]
        assert not still_there, f"deleted, and still there: {still_there}"
        assert not (lost := left.lost()), "\n".join(lost)

    async def _calm_down(self) -> None:
        for actuator in self.world.actuators:
            actuator.wire.slow, actuator.wire.doom = False, None
            for kind in actuator.wire.held:
                actuator.wire.let_through(kind, None)
        while self.world.post:
            await self.world.deliver(0, "delivered")

    async def _clear_the_way(self) -> None:
        await self.people.change_words(there=True, text="last")
        await self.people.allow(True)
        for name in RACKS:
            await self.people.cure(name)
            await self.people.stranger_leaves(name)

    def _until_nobody_goes_on(self) -> None:
        for _ in range(20):
            self._look()
            self.world.forget_writes()
            went_on = [self.world.run(self.people.step(name)) for name in RACKS]
            self._do(self.world.leap(LONGEST_PAUSE))
            if not any(went_on) and not self.world.writes:
                return
        raise AssertionError(f"it never comes to an end: {self.world.writes}")

    def _nothing_is_written(self) -> None:
        for disturb in (self._restart, self._a_while):
            self.world.forget_writes()
            self._do(disturb())
            assert not self.world.writes, f"{disturb.__name__}: {self.world.writes}"

    async def _restart(self) -> None:
        await self.world.kill(0)

    async def _a_while(self) -> None:
        await self.world.leap(LONGEST_PAUSE)


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with api_in_a_thread(tmp_path_factory.mktemp("api")) as found:
        yield found


@pytest.mark.parametrize("number", range(FIRST, FIRST + LIVES))
def test_whoever_claims_and_whatever_happens_the_laws_hold(number: int, kubeconfig: Path) -> None:
    Claiming.kubeconfig = kubeconfig
    life = get_state_machine_test(
        Claiming,
        settings=settings(
            # One life a test: what hypothesis makes of one that went well is only more of the same.
            max_examples=1,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
            database=None,
        ),
    )
    seed(number)(life)()


@pytest.mark.parametrize(("kind", "names"), [("Machine", ["m1", "m2", "m3"]), ("HostClaim", ["c1", "c2"])])
def test_an_undisturbed_claim_costs_three_writes(kind: str, names: list[str], kubeconfig: Path) -> None:
    """Until both sides know it. How it is getting on is told after that, once."""
    world = World(kubeconfig, actuators=1)
    people = People(world)

    async def claim() -> None:
        await people.settle_in(sorted(RACKS))
        await world.settle()
        for name in names:
            if kind == "Machine":
                await people.create_machine(name, rack="", letter="a")
            else:
                await people.create_claim(name, rack="", letter="a", words=False)
        await world.settle()

    try:
        world.run(claim())
        at_rest = world.run(people.all())
        assert not at_rest.lost()
        assert sum(host.spec.consumer_ref is not None for host in at_rest.hosts) == len(names)
        for name in names:
            mine = [what for what in world.writes if what.startswith(f"patch {kind} {name} ")]
            told = [what for what in mine if "'conditions'" in what or "'phase'" in what]
            assert len(mine) - len(told) + 1 <= 3, mine
            assert len(told) <= 1, told
        hosts = [what for what in world.writes if what.startswith("patch BareMetalHost")]
        assert len(hosts) == len(names), hosts
    finally:
        world.close()
