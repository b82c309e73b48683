"""The laws of a host's life, over random edits, deletions, annotations, faults and deaths of the operator.

- There is no dead end: once nothing is in its way, every host comes to what its spec asks for, or goes if it was deleted.
- Every error has a next try, or names the edit that starts one.
- A system that runs is never removed, installed anew or stopped unless somebody asked for that.
- Settings and firmware that were being applied when the operator died are neither lost nor applied twice.
- Deletion ends.
- What is written is bounded by what is changed, and at rest nothing is written.

`INGOT_LAWS_EXAMPLES=n` tries n lives, `INGOT_LAWS_FIRST=m` others than usual, `INGOT_LAWS_STEPS=k` longer ones. Each has a
number, and is the same each time as far as clocks and threads allow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from hypothesis import HealthCheck, Phase, assume, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    get_state_machine_test,
    initialize,
    precondition,
    rule,
)
from laws import Seen, hopeless, short_of_its_goal, untouched
from laws_user import User, image
from laws_world import World

from ingot.api.baremetalhost import HELD_REBOOT_PREFIX, Annotation
from ingot.api.hostfirmwarecomponents import HOST_FIRMWARE_COMPONENTS
from ingot.api.hostfirmwaresettings import HOST_FIRMWARE_SETTINGS
from ingot.hosts import HostSettings
from ingot.provisioner.demo import Script
from ingot.provisioner.demo.script import Verb
from leaping_worlds import api_in_a_thread

LIVES: Final = int(os.environ.get("INGOT_LAWS_EXAMPLES", "25"))
FIRST: Final = int(os.environ.get("INGOT_LAWS_FIRST", "1"))
STEPS: Final = int(os.environ.get("INGOT_LAWS_STEPS", "14"))
MOST_WRITES: Final = 25
"""Writes for one change, of whatever."""
LONGEST_PAUSE: Final = 700 * 60.0
"""Seconds after which every back-off is over."""

NAMES: Final = ("h1", "h2")
NAME = st.sampled_from(NAMES)
CALM: Final = "calmly"
HASTY: Final = "hastily"
How = str | int
HOW = st.one_of(st.just(CALM), st.just(CALM), st.just(HASTY), st.integers(1, 25))
"""How something is done: with the laws looked at when all is at rest; with the next thing done in the middle of it; or the
operator dies before its call of this number, whichever that is going to be."""
CUT_OFF: Final = "cut off"
"""The operator dies when the back end has done, or begun, what it was told, and before it hears so."""
VERBS: Final = tuple(verb.value for verb in Verb if verb not in (Verb.SUBSCRIBE, Verb.UNSUBSCRIBE))
CALLED: Final = {
    Verb.POWER_ON.value: "set_power",
    Verb.POWER_OFF.value: "set_power",
    Verb.SOFT_POWER_OFF.value: "set_power",
    Verb.DATA_IMAGE.value: "set_data_image",
    Verb.READ_FIRMWARE.value: "firmware_settings",
}
"""What the back end's verb is called, where a script calls it otherwise."""
FAILS = st.sampled_from([0, 1, 2, "always"])
SECONDS = st.sampled_from([0, 0, 45, 400])
RAID: Final = {"hardwareRAIDVolumes": [{"level": "1", "name": "root"}]}
REBOOTS: Final = ("", '{"mode": "hard"}', '{"mode": "soft"}', '{"mode": "hard", "force": true}', "nonsense")
DETACHMENTS: Final = ("", '{"force": true}', '{"deleteAction": "delay"}')


class HostLife(RuleBasedStateMachine):
    kubeconfig: ClassVar[Path]
    """Of the API that all lives share."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, Seen] = {}
        self._well = False

    @initialize(
        some_life=st.integers(0, 99),
        network_boot=st.booleans(),
        letter=st.sampled_from(["", "a", "a"]),
        other=st.sampled_from(["", "a", None]),
        external=st.sampled_from([None, None, None, True]),
        raid=st.sampled_from([None, RAID]),
    )
    def begin(
        self,
        some_life: int,
        network_boot: bool,
        letter: str,
        other: str | None,
        external: bool | None,
        raid: dict[str, Any] | None,
    ) -> None:
        # The plainest life of all, which is always tried first, is not worth its time.
        assume(some_life)
        self.world = World(self.kubeconfig, HostSettings(provisioning_limit=1), Script())
        self.user = User(self.world, network_boot=network_boot)
        self.user.mend()
        self.create(name="h1", secret="good", letter=letter, inspect=True, how=CALM, raid=raid)
        if other is not None:
            self.create(name="h2", secret="good", letter=other, inspect=True, how=CALM, external=external)

    def _do(self, what: Coroutine[Any, Any, None], *, how: How) -> None:
        """Something happens; afterwards the laws hold, unless the next thing happens in the middle of it."""
        self._well = False
        self.user.changes += 1
        if isinstance(how, int):
            self.world.life.dies_at = self.world.life.calls + how
        self.world.run(what)
        if how != HASTY:
            self._look()
        self._well = True

    # What users do

    @precondition(lambda self: len(self._seen) < len(NAMES))
    @rule(
        name=NAME,
        how=HOW,
        secret=st.sampled_from(["good", "good", "good", "absent", "wrong", "incomplete"]),
        letter=st.sampled_from(["", "a"]),
        inspect=st.sampled_from([True, True, False]),
        online=st.sampled_from([True, True, False]),
        raid=st.sampled_from([None, RAID]),
        external=st.sampled_from([None, None, None, True]),
    )
    def create(
        self,
        name: str,
        how: How,
        secret: str,
        letter: str,
        inspect: bool,
        online: bool = True,
        raid: dict[str, Any] | None = None,
        external: bool | None = None,
    ) -> None:
        annotations = {} if inspect else {Annotation.INSPECT.value: "disabled"}
        self._do(
            self.user.create(
                name,
                secret=secret,
                annotations=annotations,
                image=image(letter),
                online=online,
                raid=raid,
                externallyProvisioned=external,
            ),
            how=how,
        )

    @rule(
        name=NAME,
        how=HOW,
        spec=st.sampled_from(
            [
                {"image": image("a")},
                {"image": image("b")},
                {"image": None},
                {"online": True},
                {"online": False},
                {"raid": RAID},
                {"raid": {"hardwareRAIDVolumes": []}},
                {"raid": None},
                {"description": "seen"},
                {"description": "seen again"},
                {"externallyProvisioned": True},
                {"externallyProvisioned": False},
            ]
        ),
    )
    def edit(self, name: str, how: How, spec: dict[str, Any]) -> None:
        self._do(self.user.change(name, spec), how=how)

    @rule(
        name=NAME,
        how=HOW,
        annotation=st.one_of(
            st.tuples(st.just(Annotation.REBOOT.value), st.sampled_from(REBOOTS)),
            st.tuples(st.just(f"{HELD_REBOOT_PREFIX}key"), st.sampled_from([*REBOOTS, None, None])),
            st.tuples(st.just(Annotation.DETACHED.value), st.sampled_from([*DETACHMENTS, None, None])),
            st.tuples(st.just(Annotation.PAUSED.value), st.sampled_from(["", None, None])),
            st.tuples(st.just(Annotation.INSPECT.value), st.sampled_from(["", "disabled", None])),
            st.tuples(st.just(Annotation.RETRY.value), st.just("")),
        ),
    )
    def annotate(self, name: str, how: How, annotation: tuple[str, str | None]) -> None:
        self._do(self.user.annotate(name, *annotation), how=how)

    @rule(
        name=NAME,
        how=HOW,
        beside=st.one_of(
            st.tuples(
                st.just("settings"), st.just("ProcTurboMode"), st.sampled_from(["Disabled", "Enabled"])
            ),
            st.tuples(st.just("settings"), st.just("BootDelaySeconds"), st.sampled_from(["10", None])),
            st.tuples(st.just("settings"), st.just("ProcTurboMode"), st.just("Sometimes")),
            st.tuples(st.just("update"), st.sampled_from(["2.0", "3.0", ""])),
            st.tuples(st.just("policy"), st.sampled_from(["onReboot", "onReboot", "onPreparing"])),
            st.tuples(st.just("data_image"), st.sampled_from(["https://images.example/x.iso", ""])),
        ),
    )
    def change_what_stands_beside(self, name: str, how: How, beside: tuple[Any, ...]) -> None:
        what, *asked = beside
        self._do(getattr(self.user, what)(name, *asked), how=how)

    @rule(name=NAME, how=HOW, kind=st.sampled_from(["good", "wrong", "incomplete", "absent"]))
    def set_secret(self, name: str, how: How, kind: str) -> None:
        self._do(self.user.secret(name, kind), how=how)

    @precondition(lambda self: self._seen)
    @rule(name=NAME, how=HOW, force=st.sampled_from([False, False, True]))
    def delete(self, name: str, how: How, force: bool) -> None:
        self._do(self.user.delete_by_force(name) if force else self.user.delete(name), how=how)

    @precondition(lambda self: self._seen)
    @rule(name=NAME, how=HOW)
    def move(self, name: str, how: How) -> None:
        self._do(self.user.move(name), how=how)

    # What machines, time and the operator do

    @rule(name=NAME, verb=st.sampled_from(VERBS), fails=FAILS, seconds=SECONDS)
    def behave(self, name: str, verb: str, fails: int | str, seconds: float) -> None:
        self.user.behave(name, verb, fails=fails, seconds=seconds)

    @rule(
        name=NAME,
        verb=st.sampled_from(VERBS),
        fails=FAILS,
        seconds=SECONDS,
        how=st.one_of(HOW, st.just(CUT_OFF)),
        wait=st.sampled_from([0, 50, 500]),
    )
    def provoke(self, name: str, verb: str, fails: int | str, seconds: float, how: How, wait: float) -> None:
        """A machine behaves badly, and is asked for just that."""
        self.user.behave(name, verb, fails=fails, seconds=seconds)
        if how == CUT_OFF:
            self.world.life.dies_after = CALLED.get(verb, verb)
        self._do(self.user.provoke(name, verb), how=how)
        self.world.life.dies_after = ""
        if wait:
            self._do(self.world.leap(wait), how=CALM)

    @rule(how=HOW)
    def mend(self, how: How) -> None:
        self._do(self._clear_the_way(), how=how)

    @rule(how=HOW, what=st.sampled_from(["go_away", "come_back", "lose_memory", "restart", "restart"]))
    def interrupt(self, how: How, what: str) -> None:
        self._do(getattr(self.user, what)(), how=how)

    @rule(seconds=st.sampled_from([20, 50, 500, 4_000, 40_000]))
    def wait(self, seconds: float) -> None:
        self._do(self.world.leap(seconds), how=CALM)

    # The laws

    def _look(self) -> None:
        self.world.run(self.world.settle())
        writes = self.world.writes
        most = MOST_WRITES * (1 + self.user.changes)
        assert len(writes) <= most, f"{len(writes)} writes for {self.user.changes} changes: {writes}"
        assert not self.world.complaints.heard, "\n".join(self.world.complaints.heard)
        self.world.run(self._look_at_hosts())
        self.world.writes.clear()
        self.user.licenses.clear()
        self.user.changes = 0

    async def _look_at_hosts(self) -> None:
        seen: dict[str, Seen] = {}
        for name in NAMES:
            host = await self.world.host(name)
            if host is None:
                continue
            machine = self.world.backend.machine(self.world.key(name))
            after = seen[name] = Seen.now(host, machine)
            assert not (wrong := hopeless(host, has_timer=self.world.has_timer(name))), (
                f"{name}: {wrong}: {host}"
            )
            if (before := self._seen.get(name)) is not None:
                wrong = untouched(
                    before,
                    after,
                    may_be_replaced=self.user.licensed(name, "everything", "install"),
                    may_be_stopped=self.user.licensed(name, "stop"),
                )
                assert not wrong, f"{name}: {wrong}: {after}, before {before}"
            for (whose, deed), asked in self.user.asked.items():
                done = machine.done.get(deed, 0)
                if whose == name:
                    most = asked + self.user.overlaps[name]
                    most += self.user.amnesia if deed.startswith("flash") else 0
                    assert done <= most, f"{name}: {deed}: {done} times, and asked for {asked} times"
        self._seen = seen

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
        """Nothing is in anybody's way any more."""
        self.world.life.dies_at = None
        self.world.run(self._clear_the_way())
        self._reach(self._short_of_goals, "its goal")
        self._rest()
        for name in NAMES:
            self.world.run(self.user.delete(name))
        self._reach(self._still_there, "its end")

    async def _clear_the_way(self) -> None:
        self.user.mend()
        self.world.backend.come_back()
        for name in NAMES:
            host = await self.world.host(name)
            if host is None:
                continue
            await self.user.secret(name, "good")
            for annotation in (Annotation.PAUSED, Annotation.DETACHED, f"{HELD_REBOOT_PREFIX}key"):
                await self.user.annotate(name, annotation, None)

    def _reach(self, what: Callable[[], Coroutine[Any, Any, list[str]]], goal: str) -> None:
        missing: list[str] = []
        for _ in range(8):
            self._look()
            missing = self.world.run(what())
            if not missing:
                return
            self.world.run(self._do_what_is_asked())
            self.world.run(self.world.leap(LONGEST_PAUSE))
        raise AssertionError(f"a host never comes to {goal}: {'; '.join(missing)}")

    async def _do_what_is_asked(self) -> None:
        """The edit that an error names."""
        for name in NAMES:
            host = await self.world.host(name)
            if host is not None and "Change spec.image to try again" in host.status.error_message:
                await self.user.change(name, {"image": image("c")})

    async def _short_of_goals(self) -> list[str]:
        found: list[str] = []
        for name in NAMES:
            host = await self.world.host(name)
            if host is not None:
                short = short_of_its_goal(
                    host,
                    self.world.backend.machine(self.world.key(name)),
                    await self.world.get(HOST_FIRMWARE_SETTINGS, name),
                    await self.world.get(HOST_FIRMWARE_COMPONENTS, name),
                    taken_over=name in self.user.external,
                )
                if short:
                    found.append(f"{name}: {short}: {host}")
        return found or self.world.waits_for()

    async def _still_there(self) -> list[str]:
        return [f"{name}: {host}" for name in NAMES if (host := await self.world.host(name)) is not None]

    def _rest(self) -> None:
        """At rest nothing is written, whatever makes the operator look."""
        for wake in (self.world.restart, self.world.tell_everything, self._a_while):
            self.world.run(wake())
            self.world.run(self.world.settle())
            # Schemas that nobody names are removed when somebody happens to look.
            written = [what for what in self.world.writes if not what.startswith("delete FirmwareSchema")]
            assert not written, f"{wake}: {written}"

    async def _a_while(self) -> None:
        await self.world.leap(4_000)


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with api_in_a_thread(tmp_path_factory.mktemp("api")) as found:
        yield found


@pytest.mark.parametrize("number", range(FIRST, FIRST + LIVES))
def test_whatever_happens_to_hosts_the_laws_hold(number: int, kubeconfig: Path) -> None:
    HostLife.kubeconfig = kubeconfig
    life = get_state_machine_test(
        HostLife,
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
