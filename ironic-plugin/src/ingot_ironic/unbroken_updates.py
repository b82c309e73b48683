"""Firmware updates and volumes that a BMC was asked for go on after Ironic was killed.

Ironic looks from time to time how far the BMC is, and notes with the node what it is looking for. It is not looking any more, or
looks for something that never comes, when it is killed

    when it has noted that it reboots the machine, and has not begun to      the machine is rebooted now
    in the reboot                                                            see `unbroken_power`
    when all is done and forgotten, and the step was not gone on from        the step is gone on from now

The last of these takes a minute or more after an update, because Ironic waits until the BMC is steady. That all is done is noted
when it is forgotten, with the number of the step: a note of another step means nothing. If the BMC does not answer then, the step
fails; Ironic would forget about the node.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from ingot_ironic import restart
from ingot_ironic.selfcheck import takes

LOG: Final = logging.getLogger(__name__)

NOTE: Final = "ingot_step_is_over"
_UPDATES: Final = "redfish_fw_updates"
_UPDATES_SINCE: Final = "redfish_fw_update_start_time"
_VOLUMES: Final = "raid_configs"
_SWITCHED: Final = "last_power_state_change"
START: Final = 60.0
"""Seconds in which a conductor that starts can be called."""


class Ironic(restart.Conductor):
    """And what updates and makes volumes."""

    def __init__(self) -> None:
        super().__init__()
        from ironic.common import rpc, states
        from ironic.conductor import utils
        from ironic.drivers.modules.redfish import firmware, raid

        self.reboot: str = states.REBOOT
        self.utils: Any = utils
        self.firmware: Any = firmware.RedfishFirmware
        self.raid: Any = raid.RedfishRAID
        self.wants_reboot: str = firmware.FIRMWARE_REBOOT_REQUESTED
        self.rebooted: tuple[str, ...] = (firmware.BIOS_REBOOT_TRIGGERED, firmware.NIC_REBOOT_TRIGGERED)
        self.fail: Mapping[str, Callable[[Any, str], None]] = {
            "clean": utils.cleaning_error_handler,
            "deploy": utils.deploying_error_handler,
            "service": utils.servicing_error_handler,
        }
        self._rpc: Any = rpc

    def can_be_called(self) -> bool:
        return self._rpc.GLOBAL_MANAGER is not None

    def waiting(self) -> Iterable[tuple[Any, ...]]:
        """UUID and notes of the nodes that wait in the middle of their steps."""
        return self.nodes("uuid", "driver_internal_info", provision_state_in=list(self.steps))


def install() -> None:
    """Have them go on. Raises when this Ironic looks after them in another way."""
    hook(Ironic())


def hook(ironic: Any, pause: Callable[[float], None] = time.sleep) -> None:
    takes(ironic.firmware._continue_updates, "self", "task", "update_service", "settings")
    takes(ironic.raid._clear_raid_configs, "self", "node")
    takes(ironic.raid._check_node_raid_config, "self", "task")
    takes(ironic.utils.notify_conductor_resume_operation, "task", "operation")
    _end_updates(ironic)
    _end_volumes(ironic)
    _call_when_it_can_be_called(ironic, pause)
    restart.at_start(ironic, lambda _: _cut_off(ironic), functools.partial(_go_on, ironic, _now()))


def _end_updates(ironic: Any) -> None:
    original = ironic.firmware._continue_updates

    @functools.wraps(original)
    def _continue_updates(self: Any, task: Any, update_service: Any, settings: Any) -> None:
        if len(settings) == 1 and not settings[0].get("wait"):
            reboot = bool(task.node.driver_internal_info.get(ironic.wants_reboot))
            _note(ironic, task.node, reboot=reboot)
        with _failing(ironic, task, _UPDATES):
            original(self, task, update_service, settings)

    ironic.firmware._continue_updates = _continue_updates


def _end_volumes(ironic: Any) -> None:
    clear, check = ironic.raid._clear_raid_configs, ironic.raid._check_node_raid_config

    @functools.wraps(clear)
    def _clear_raid_configs(self: Any, node: Any) -> None:
        _note(ironic, node)
        clear(self, node)

    @functools.wraps(check)
    def _check_node_raid_config(self: Any, task: Any) -> None:
        with _failing(ironic, task, _VOLUMES):
            check(self, task)

    ironic.raid._clear_raid_configs = _clear_raid_configs
    ironic.raid._check_node_raid_config = _check_node_raid_config


@contextlib.contextmanager
def _failing(ironic: Any, task: Any, looked_for: str) -> Iterator[None]:
    """What goes wrong when Ironic does not look for it any more fails the step, for nobody would look at the node again."""
    try:
        yield
    except Exception as error:  # see above
        kind = ironic.steps.get(task.node.provision_state) if task.node is not None else None
        if kind is None or looked_for in task.node.driver_internal_info:
            raise
        ironic.fail[kind](
            task, f"The BMC has done what it was asked for, and then something went wrong: {error}"
        )


def _call_when_it_can_be_called(ironic: Any, pause: Callable[[float], None]) -> None:
    """Ironic looks after BMCs a moment before it can be told to go on, and being told is lost then."""
    original = ironic.utils.notify_conductor_resume_operation

    @functools.wraps(original)
    def notify_conductor_resume_operation(task: Any, operation: str) -> None:
        waited = 0.0
        while not ironic.can_be_called() and waited < START:
            pause(0.2)
            waited += 0.2
        original(task, operation)

    ironic.utils.notify_conductor_resume_operation = notify_conductor_resume_operation


def _note(ironic: Any, node: Any, **more: Any) -> None:
    """Saved together with what is forgotten, by who forgets it."""
    kind = ironic.steps.get(node.provision_state)
    if kind is not None:
        node.set_driver_internal_info(NOTE, {"step": _number(node, kind), "at": _now(), **more})


def is_over(node: Any, kind: str) -> bool:
    """Whether it was noted that the step is, which the node is at."""
    noted, number = node.driver_internal_info.get(NOTE), _number(node, kind)
    return bool(noted) and number is not None and noted["step"] == number


def _cut_off(ironic: Any) -> list[str]:
    return [uuid for uuid, info in ironic.waiting() if NOTE in info or _UPDATES in info]


def _go_on(ironic: Any, start: str, task: Any) -> None:
    """`start`: what was noted later is looked after by who noted it."""
    node, kind = task.node, ironic.steps.get(task.node.provision_state)
    if kind is None:
        return
    noted = node.driver_internal_info.get(NOTE)
    if is_over(node, kind) and noted["at"] < start:
        LOG.warning("Node %s was cut off when its %s step was over: it goes on now.", node.uuid, kind)
        _end(ironic, task, getattr(node, f"{kind}_step"), noted)
    elif _is_to_be_rebooted(ironic, node):
        LOG.warning("Node %s was to be rebooted for an update when Ironic ended: it is now.", node.uuid)
        ironic.utils.node_power_action(
            task, ironic.reboot, node.driver_internal_info[_UPDATES][0].get("power_timeout")
        )


def _end(ironic: Any, task: Any, step: Mapping[str, Any], noted: Mapping[str, Any]) -> None:
    """What Ironic does when all is done, once more: with nothing left to look for, that is all it does."""
    node = task.node
    match step.get("interface"):
        case "firmware":
            if noted.get("reboot") and not _switched_since(node, noted["at"]):
                node.set_driver_internal_info(ironic.wants_reboot, True)
            task.driver.firmware._continue_updates(task, None, [{}])
        case "raid":
            node.set_driver_internal_info(_VOLUMES, {"task_monitor_uri": []})
            task.driver.raid._check_node_raid_config(task)


def _is_to_be_rebooted(ironic: Any, node: Any) -> bool:
    """Whether that was noted, and no power was switched since the update was begun."""
    updates, since = (node.driver_internal_info.get(key) for key in (_UPDATES, _UPDATES_SINCE))
    decided = updates and any(updates[0].get(key) for key in ironic.rebooted)
    return bool(decided and since) and not _switched_since(node, since)


def _switched_since(node: Any, moment: str) -> bool:
    switched = node.driver_internal_info.get(_SWITCHED)
    return switched is not None and datetime.fromisoformat(switched) >= datetime.fromisoformat(moment)


def _now() -> str:
    """As Ironic notes its own moments."""
    return datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def _number(node: Any, kind: str) -> int | None:
    number: int | None = node.driver_internal_info.get(f"{kind}_step_index")
    return number
