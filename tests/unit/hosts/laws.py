"""The laws themselves, over what can be seen of a host and of its machine."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ingot.api.baremetalhost import Annotation, BareMetalHost, OperationalStatus, State
from ingot.api.hostfirmwarecomponents import HostFirmwareComponents
from ingot.api.hostfirmwaresettings import HostFirmwareSettings
from ingot.api.installed import RUNS_A_SYSTEM, must_deprovision
from ingot.hosts.states.reboots import reboots
from ingot.hosts.states.servicing import is_serviced
from ingot.provisioner.demo.effects import version_in
from ingot.provisioner.demo.firmware import SETTINGS
from ingot.provisioner.demo.machine import Machine

_EDIT: Final = re.compile(r"spec\.|Secret|annotation|HostFirmware|DataImage|force")


@dataclass(frozen=True)
class Seen:
    """A host when the world was at rest, and what had been done to its machine by then."""

    host: BareMetalHost
    disk: str
    on: bool
    done: dict[str, int] = field(default_factory=dict)

    @classmethod
    def now(cls, host: BareMetalHost, machine: Machine) -> Seen:
        disk = machine.disk.image if machine.disk is not None else ""
        return cls(host, disk, machine.powered_on, dict(machine.done))

    @property
    def runs_what_is_wanted(self) -> bool:
        host = self.host
        if host.metadata.deletion_timestamp is not None or must_deprovision(host):
            return False
        external = host.state is State.EXTERNALLY_PROVISIONED
        return host.state in RUNS_A_SYSTEM and (not external or host.spec.externally_provisioned)

    @property
    def wants_to_stop(self) -> bool:
        return not self.host.spec.online or bool(reboots(self.host)) or is_serviced(self.host.status)

    def times(self, *deeds: str) -> int:
        return sum(times for deed, times in self.done.items() if deed.startswith(deeds))


def is_left_alone(host: BareMetalHost) -> bool:
    """Whether somebody asked for it to be let be."""
    detached = host.status.operational_status is OperationalStatus.DETACHED
    return detached or Annotation.PAUSED in host.metadata.annotations


def untouched(before: Seen, after: Seen, *, may_be_replaced: bool, may_be_stopped: bool) -> str:
    """What was done to a running system that nobody asked for; "" for nothing."""
    if not before.runs_what_is_wanted or may_be_replaced:
        return ""
    for deeds in (("deploy",), ("undeploy",), ("prepare",), ("inspect",)):
        if before.times(*deeds) != after.times(*deeds):
            return f"it was done {deeds[0]} to a running system"
    if before.disk != after.disk:
        return f"its disk has {after.disk!r}, and had {before.disk!r}"
    # A machine that is off is serviced on its way to being on.
    stops = ("power off", "reboot", "service") if before.on else ("power off", "reboot")
    stopped = before.times(*stops) != after.times(*stops)
    if stopped and not (may_be_stopped or before.wants_to_stop):
        return "it was stopped"
    return ""


def hopeless(host: BareMetalHost, *, has_timer: bool) -> str:
    """Whether an error leads nowhere; "" when there is a next try, or the error says which edit starts one."""
    status = host.status
    if not status.error_type or is_left_alone(host):
        return ""
    if status.next_try is not None:
        return "" if has_timer else "it names a next try, and nobody is going to make it"
    return "" if _EDIT.search(status.error_message) else "no next try, and no edit that starts one"


def short_of_its_goal(
    host: BareMetalHost,
    machine: Machine,
    settings: HostFirmwareSettings | None,
    components: HostFirmwareComponents | None,
    *,
    taken_over: bool,
) -> str:
    """What a host with nothing in its way still lacks of what its spec asks for; "" when it is there.

    `taken_over`: somebody else may have installed what is there.
    """
    spec, status, state = host.spec, host.status, host.state
    if host.metadata.deletion_timestamp is not None:
        return "it is being deleted, and is still there"
    if status.error_type:
        return f"it has an error: {status.error_message}"
    if status.operational_status is not OperationalStatus.OK:
        return f"its operational status is {status.operational_status}"
    wanted = _goals(host)
    if state not in wanted:
        return f"it should be {' or '.join(wanted)}"
    if state is State.PROVISIONED and spec.image is not None and not taken_over:
        disk = machine.disk.image if machine.disk is not None else ""
        if disk != spec.image.url:
            return f"its disk has {disk!r}"
    if machine.record is None or any(work.under_way for work in machine.record.works.values()):
        return "its machine is busy, or forgotten"
    if machine.powered_on is not spec.online or status.powered_on is not spec.online:
        return f"its machine is {'on' if machine.powered_on else 'off'}, and says {status.powered_on}"
    if Annotation.REBOOT in host.metadata.annotations and state in RUNS_A_SYSTEM:
        return "it was not rebooted"
    return _unapplied(host, machine, settings, components) if state is State.AVAILABLE else ""


def _goals(host: BareMetalHost) -> tuple[State, ...]:
    if host.spec.externally_provisioned and host.state is not State.PROVISIONED:
        return (State.EXTERNALLY_PROVISIONED,)
    if host.spec.image is None and not host.spec.externally_provisioned:
        return (State.AVAILABLE,)
    return (State.PROVISIONED,) if host.spec.online else (State.PROVISIONED, State.AVAILABLE)


def _unapplied(
    host: BareMetalHost,
    machine: Machine,
    settings: HostFirmwareSettings | None,
    components: HostFirmwareComponents | None,
) -> str:
    raid = host.spec.raid
    if raid is not None and (
        machine.raid is None or machine.raid.hardware_raid_volumes != raid.hardware_raid_volumes
    ):
        return f"its volumes are {machine.raid}"
    present = {**SETTINGS, **machine.settings}
    if settings is not None and all(
        c.status == "True" for c in settings.status.conditions if c.type == "Valid"
    ):
        for name, value in settings.spec.settings.items():
            if present.get(name) != str(value):
                return f"setting {name} is {present.get(name)}, and {value} is wanted"
    for update in components.spec.updates if components is not None else []:
        if machine.versions.get(update.component) != version_in(update.url):
            return (
                f"{update.component} has {machine.versions.get(update.component)}, and {update.url} is wanted"
            )
    return ""
