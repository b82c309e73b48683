"""The laws of a host's life, over random edits, deletions, annotations, faults and deaths of the operator.

- There is no dead end: once nothing is in its way, every host comes to what its spec asks for, or goes if it was deleted.
- Every error has a next try, or names the edit that starts one.
- A system that runs is never removed, installed anew or stopped unless somebody asked for that.
- Settings and firmware that were being applied when the operator died are neither lost nor applied twice.
- Deletion ends.
- What is written is bounded by what is changed, and at rest nothing is written.

`INGOT_LAWS_EXAMPLES=n` tries n lives.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from laws import Seen, hopeless, short_of_its_goal, untouched
from laws_user import User, image
from laws_world import World, api_in_a_thread

from ingot.api.baremetalhost import HELD_REBOOT_PREFIX, Annotation
from ingot.api.hostfirmwarecomponents import HOST_FIRMWARE_COMPONENTS
from ingot.api.hostfirmwaresettings import HOST_FIRMWARE_SETTINGS
from ingot.hosts import HostSettings
from ingot.provisioner.demo import Script
from ingot.provisioner.demo.script import Verb

EXAMPLES: Final = int(os.environ.get("INGOT_LAWS_EXAMPLES", "25"))
STEPS: Final = 20
MOST_WRITES: Final = 60
"""Writes for one host and one change."""
LONGEST_PAUSE: Final = 700 * 60.0
"""Seconds after which every back-off is over."""

NAMES: Final = ("h1", "h2")
NAME = st.sampled_from(NAMES)
HASTY = st.sampled_from([False, False, False, True])
"""Whether the next thing is done before the world has come to rest."""
VERBS: Final = tuple(verb.value for verb in Verb if verb not in (Verb.SUBSCRIBE, Verb.UNSUBSCRIBE))
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
        network_boot=st.booleans(),
        letter=st.sampled_from(["", "a", "a"]),
        other=st.sampled_from(["", "a", None]),
        external=st.sampled_from([None, None, None, True]),
        raid=st.sampled_from([None, RAID]),
    )
    def begin(
        self,
        network_boot: bool,
        letter: str,
        other: str | None,
        external: bool | None,
        raid: dict[str, Any] | None,
    ) -> None:
        self.world = World(self.kubeconfig, HostSettings(provisioning_limit=1), Script())
        self.user = User(self.world, network_boot=network_boot)
        self.user.mend()
        self.create(name="h1", secret="good", letter=letter, inspect=True, hasty=False, raid=raid)
        if other is not None:
            self.create(name="h2", secret="good", letter=other, inspect=True, hasty=False, external=external)

    def _do(self, what: Any, *, hasty: bool) -> None:
        """Something happens; afterwards the laws hold, unless the next thing happens in the middle of it."""
        self._well = False
        self.user.changes += 1
        self.world.run(what)
        if not hasty:
            self._look()
        self._well = True

    # What users do

    @precondition(lambda self: len(self._seen) < len(NAMES))
    @rule(
        name=NAME,
        hasty=HASTY,
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
        hasty: bool,
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
            hasty=hasty,
        )

    @rule(name=NAME, hasty=HASTY, letter=st.sampled_from(["a", "b", ""]))
    def set_image(self, name: str, hasty: bool, letter: str) -> None:
        self._do(self.user.change(name, {"image": image(letter)}), hasty=hasty)

    @rule(
        name=NAME,
        hasty=HASTY,
        spec=st.sampled_from(
            [
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
    def edit(self, name: str, hasty: bool, spec: dict[str, Any]) -> None:
        self._do(self.user.change(name, spec), hasty=hasty)

    @rule(
        name=NAME,
        hasty=HASTY,
        annotation=st.one_of(
            st.tuples(st.just(Annotation.REBOOT.value), st.sampled_from(REBOOTS)),
            st.tuples(st.just(f"{HELD_REBOOT_PREFIX}key"), st.sampled_from([*REBOOTS, None, None])),
            st.tuples(st.just(Annotation.DETACHED.value), st.sampled_from([*DETACHMENTS, None, None])),
            st.tuples(st.just(Annotation.PAUSED.value), st.sampled_from(["", None, None])),
            st.tuples(st.just(Annotation.INSPECT.value), st.sampled_from(["", "disabled", None])),
            st.tuples(st.just(Annotation.RETRY.value), st.just("")),
        ),
    )
    def annotate(self, name: str, hasty: bool, annotation: tuple[str, str | None]) -> None:
        self._do(self.user.annotate(name, *annotation), hasty=hasty)

    @rule(name=NAME, hasty=HASTY)
    def reboot(self, name: str, hasty: bool) -> None:
        self._do(self.user.annotate(name, Annotation.REBOOT, ""), hasty=hasty)

    @rule(
        name=NAME,
        hasty=HASTY,
        setting=st.sampled_from(
            [
                ("ProcTurboMode", "Disabled"),
                ("ProcTurboMode", "Enabled"),
                ("BootDelaySeconds", "10"),
                ("BootDelaySeconds", None),
                ("ProcTurboMode", "Sometimes"),
            ]
        ),
    )
    def set_firmware(self, name: str, hasty: bool, setting: tuple[str, str | None]) -> None:
        self._do(self.user.settings(name, *setting), hasty=hasty)

    @rule(name=NAME, hasty=HASTY, version=st.sampled_from(["2.0", "3.0", ""]))
    def update_firmware(self, name: str, hasty: bool, version: str) -> None:
        self._do(self.user.update(name, version), hasty=hasty)

    @rule(name=NAME, hasty=HASTY, when=st.sampled_from(["onReboot", "onReboot", "onPreparing"]))
    def set_policy(self, name: str, hasty: bool, when: str) -> None:
        self._do(self.user.policy(name, when), hasty=hasty)

    @rule(name=NAME, hasty=HASTY, url=st.sampled_from(["https://images.example/x.iso", ""]))
    def set_data_image(self, name: str, hasty: bool, url: str) -> None:
        self._do(self.user.data_image(name, url), hasty=hasty)

    @rule(name=NAME, hasty=HASTY, kind=st.sampled_from(["good", "wrong", "incomplete", "absent"]))
    def set_secret(self, name: str, hasty: bool, kind: str) -> None:
        self._do(self.user.secret(name, kind), hasty=hasty)

    @precondition(lambda self: self._seen)
    @rule(name=NAME, hasty=HASTY, force=st.sampled_from([False, False, True]))
    def delete(self, name: str, hasty: bool, force: bool) -> None:
        self._do(self.user.delete_by_force(name) if force else self.user.delete(name), hasty=hasty)

    @precondition(lambda self: self._seen)
    @rule(name=NAME, hasty=HASTY)
    def move(self, name: str, hasty: bool) -> None:
        self._do(self.user.move(name), hasty=hasty)

    # What machines, time and the operator do

    @rule(
        name=NAME,
        verb=st.sampled_from(VERBS),
        fails=st.sampled_from([0, 1, 2, "always"]),
        seconds=st.sampled_from([0, 0, 45, 400]),
    )
    def behave(self, name: str, verb: str, fails: int | str, seconds: float) -> None:
        self.user.behave(name, verb, fails=fails, seconds=seconds)

    @rule(hasty=HASTY)
    def mend(self, hasty: bool) -> None:
        self._do(self._clear_the_way(), hasty=hasty)

    @rule(hasty=HASTY, what=st.sampled_from(["go_away", "come_back", "come_back"]))
    def leave_or_return(self, hasty: bool, what: str) -> None:
        getattr(self.world.backend, what)()
        self._do(_nothing(), hasty=hasty)

    @rule(hasty=HASTY)
    def lose_memory(self, hasty: bool) -> None:
        self.user.lose_memory()
        self._do(_nothing(), hasty=hasty)

    @rule(seconds=st.sampled_from([20, 50, 500, 4_000, 40_000]))
    def wait(self, seconds: float) -> None:
        self._do(self.world.leap(seconds), hasty=False)

    @rule(hasty=HASTY)
    def restart(self, hasty: bool) -> None:
        self._do(self.world.restart(), hasty=hasty)

    @rule(calls=st.integers(1, 30))
    def die_soon(self, calls: int) -> None:
        """Before the operator's call of this number, whichever that is going to be."""
        self.world.life.dies_at = self.world.life.calls + calls

    # The laws

    def _look(self) -> None:
        self.world.run(self.world.settle())
        writes = self.world.writes
        most = MOST_WRITES * (1 + self.user.changes) * len(NAMES)
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
                    most = asked + (self.user.amnesia if deed.startswith("flash") else 0)
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

    def _reach(self, what: Any, goal: str) -> None:
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
                )
                if short:
                    found.append(f"{name}: {short}: {host}")
        return found

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


async def _nothing() -> None:
    return


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with api_in_a_thread(tmp_path_factory.mktemp("api")) as found:
        yield found


def test_whatever_happens_to_hosts_the_laws_hold(kubeconfig: Path) -> None:
    HostLife.kubeconfig = kubeconfig
    run_state_machine_as_test(
        HostLife,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            derandomize=EXAMPLES == 25,
            database=None,
        ),
    )
