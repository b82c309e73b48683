"""Firmware updates and volumes that Ironic was killed at, in every moment in which nobody would go on with them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from cut_off_world import Node

from ingot_ironic import unbroken_updates
from ingot_ironic.unbroken_updates import NOTE

UPDATE = {"interface": "firmware", "step": "update"}
VOLUMES = {"interface": "raid", "step": "create_configuration"}
LONG_AGO, LATER = "2026-11-17T04:00:00.000000", "2026-11-17T05:00:00.000000"
WANTS_REBOOT = "firmware_reboot_requested"


class Killed(BaseException):
    """Ironic ends there."""


class Ironic:
    """One that looks after updates and volumes as the real one does, and that can be killed at a place."""

    reboot, wants_reboot, rebooted = (
        "rebooting",
        WANTS_REBOOT,
        ("bios_reboot_triggered", "nic_reboot_triggered"),
    )

    def __init__(self, node: Node) -> None:
        world = self
        self.steps = {"clean wait": "clean", "service wait": "service"}
        self.node = node
        self.done: list[str] = []
        self.trouble: dict[str, BaseException] = {}
        self.callable_after = 0
        self.utils = self
        self.fail = {"clean": self._fail, "service": self._fail}

        class Firmware:
            def _continue_updates(
                self, task: Any, update_service: Any, settings: list[dict[str, Any]]
            ) -> None:
                if settings[0].get("wait") or len(settings) > 1:
                    world.does("waits")
                    return
                reboot = task.node.driver_internal_info.get(WANTS_REBOOT)
                task.node.del_driver_internal_info("redfish_fw_updates")
                task.node.del_driver_internal_info(WANTS_REBOOT)
                task.node.save()
                world.does("forgets")
                if reboot:
                    world.utils.node_power_action(task, world.reboot)
                world.does("looks whether the BMC is steady")
                world.utils.notify_conductor_resume_operation(task, "clean")

        class Raid:
            def _clear_raid_configs(self, node: Node) -> None:
                node.del_driver_internal_info("raid_configs")
                node.save()
                world.does("forgets")

            def _check_node_raid_config(self, task: Any) -> None:
                if task.node.driver_internal_info["raid_configs"]["task_monitor_uri"]:
                    world.does("waits")
                    return
                self._clear_raid_configs(task.node)
                world.does("reads the volumes")
                world.utils.notify_conductor_resume_operation(task, "clean")

        class Manager:
            host = "127.0.0.1"

            def _correct_stuck_states(self) -> None: ...

            def _spawn_worker(self, function: Any, *arguments: Any) -> None:
                function(*arguments)

        self.firmware, self.raid, self.manager_class = Firmware, Raid, Manager
        unbroken_updates.hook(self, pause=lambda _: None)

    def does(self, what: str) -> None:
        self.done.append(what)
        if trouble := self.trouble.get(what):
            raise trouble

    def notify_conductor_resume_operation(self, task: Any, operation: str) -> None:
        assert not self.callable_after, "what is told to somebody who cannot be called is lost"
        self.does("goes on")

    def node_power_action(self, task: Any, new_state: str, timeout: int | None = None) -> None:
        self.does(new_state)

    def can_be_called(self) -> bool:
        self.callable_after = max(0, self.callable_after - 1)
        return not self.callable_after

    def admin(self) -> str:
        return "admin"

    def waiting(self) -> list[tuple[str, dict[str, Any]]]:
        return [("a", self.node.saved)] if self.node.provision_state in self.steps else []

    @contextlib.contextmanager
    def acquire(self, context: str, uuid: str, *, purpose: str, patient: bool) -> Iterator[Any]:
        assert patient
        yield self.task()

    def task(self) -> Any:
        driver = SimpleNamespace(firmware=self.firmware(), raid=self.raid())
        return SimpleNamespace(node=self.node, driver=driver)

    def _fail(self, task: Any, message: str) -> None:
        self.done.append(f"fails: {message}")

    def ends_an_update(self, *settings: dict[str, Any]) -> None:
        self.firmware()._continue_updates(self.task(), None, list(settings) or [{"component": "bios"}])

    def looks_at_volumes(self) -> None:
        self.raid()._check_node_raid_config(self.task())


def waiting(step: dict[str, Any] = UPDATE, **info: Any) -> Node:
    node = Node("a", "clean wait", clean_step=step)
    node.driver_internal_info = {**node.driver_internal_info, **info}
    node.save()
    return node


def killed(ironic: Ironic, at: str, work: Any) -> None:
    ironic.trouble[at] = Killed()
    with pytest.raises(Killed):
        work()


def restarted(node: Node) -> list[str]:
    """What another Ironic does with what was saved."""
    node.driver_internal_info = node.saved
    ironic = Ironic(node)
    ironic.manager_class()._correct_stuck_states()
    return ironic.done


END = ["forgets", "looks whether the BMC is steady", "goes on"]


@pytest.mark.parametrize("at", ["forgets", "looks whether the BMC is steady", "goes on"])
def test_an_update_that_was_over_is_gone_on_from(at: str) -> None:
    ironic = Ironic(waiting(redfish_fw_updates=[{}]))
    killed(ironic, at, ironic.ends_an_update)
    assert restarted(ironic.node) == END


def test_an_update_that_was_over_and_wanted_a_reboot_gets_it_once() -> None:
    ironic = Ironic(
        waiting(redfish_fw_updates=[{}], **{WANTS_REBOOT: True}, last_power_state_change=LONG_AGO)
    )
    killed(ironic, "forgets", ironic.ends_an_update)
    assert restarted(ironic.node) == ["forgets", "rebooting", "looks whether the BMC is steady", "goes on"]


def test_one_that_was_rebooted_since_is_not_rebooted_again() -> None:
    ironic = Ironic(waiting(redfish_fw_updates=[{}], **{WANTS_REBOOT: True}))
    killed(ironic, "looks whether the BMC is steady", ironic.ends_an_update)
    ironic.node.saved = {**ironic.node.saved, "last_power_state_change": "2999-01-01T00:00:00"}
    assert restarted(ironic.node) == END


def test_volumes_that_were_made_are_gone_on_from() -> None:
    for at in ("forgets", "reads the volumes", "goes on"):
        ironic = Ironic(waiting(VOLUMES, raid_configs={"task_monitor_uri": []}))
        killed(ironic, at, ironic.looks_at_volumes)
        assert restarted(ironic.node) == ["forgets", "reads the volumes", "goes on"]


@pytest.mark.parametrize("settings", [({"wait": 5},), ({}, {})])
def test_updates_that_are_not_over_are_looked_after_by_ironic(settings: tuple[dict[str, Any], ...]) -> None:
    ironic = Ironic(waiting(redfish_fw_updates=list(settings)))
    killed(ironic, "waits", lambda: ironic.ends_an_update(*settings))
    ironic.node.save()
    assert NOTE not in ironic.node.saved
    assert restarted(ironic.node) == []


def test_a_note_of_another_step_means_nothing() -> None:
    ironic = Ironic(waiting(redfish_fw_updates=[{}]))
    ironic.ends_an_update()
    ironic.node.saved = {**ironic.node.saved, "clean_step_index": 1}
    assert restarted(ironic.node) == []


def test_what_is_noted_after_the_start_is_looked_after_by_who_noted_it() -> None:
    ironic = Ironic(waiting(redfish_fw_updates=[{}]))
    ironic.ends_an_update()
    ironic.done.clear()
    ironic.manager_class()._correct_stuck_states()
    assert ironic.done == []


@pytest.mark.parametrize(
    ("update", "switched", "wanted"),
    [
        ({"bios_reboot_triggered": True}, LONG_AGO, ["rebooting"]),
        ({"bios_reboot_triggered": True}, None, ["rebooting"]),
        ({"nic_reboot_triggered": True}, LONG_AGO, ["rebooting"]),
        ({"bios_reboot_triggered": True}, LATER, []),
        ({}, LONG_AGO, []),
    ],
)
def test_a_reboot_that_was_decided_and_not_begun_is_done(
    update: dict[str, Any], switched: str | None, wanted: list[str]
) -> None:
    info = {"last_power_state_change": switched} if switched else {}
    since = "2026-11-17T04:30:00.000000"
    node = waiting(redfish_fw_updates=[update], redfish_fw_update_start_time=since, **info)
    assert restarted(node) == wanted


def test_a_node_that_does_not_wait_any_more_is_left_alone() -> None:
    ironic = Ironic(waiting(redfish_fw_updates=[{}]))
    killed(ironic, "forgets", ironic.ends_an_update)
    ironic.node.provision_state = "clean failed"
    assert restarted(ironic.node) == []


def test_a_bmc_that_does_not_come_back_fails_the_step_instead_of_leaving_the_node_to_nobody() -> None:
    ironic = Ironic(waiting(redfish_fw_updates=[{}]))
    ironic.trouble["looks whether the BMC is steady"] = RuntimeError("no answer in 480 s")
    ironic.ends_an_update()
    assert ironic.done[-1].startswith("fails: The BMC has done what it was asked for")
    assert "no answer in 480 s" in ironic.done[-1]


def test_volumes_that_cannot_be_read_fail_the_step_too() -> None:
    ironic = Ironic(waiting(VOLUMES, raid_configs={"task_monitor_uri": []}))
    ironic.trouble["reads the volumes"] = RuntimeError("no answer")
    ironic.looks_at_volumes()
    assert ironic.done[-1].startswith("fails: ")


def test_trouble_while_ironic_still_looks_for_something_is_left_to_its_next_look() -> None:
    ironic = Ironic(waiting(VOLUMES, raid_configs={"task_monitor_uri": ["/task/1"]}))
    ironic.trouble["waits"] = RuntimeError("the BMC is busy")
    with pytest.raises(RuntimeError):
        ironic.looks_at_volumes()
    assert ironic.done == ["waits"]


def test_going_on_waits_until_a_conductor_that_starts_can_be_told() -> None:
    ironic = Ironic(waiting(redfish_fw_updates=[{}]))
    ironic.callable_after = 20
    ironic.ends_an_update()
    assert ironic.done[-1] == "goes on"
