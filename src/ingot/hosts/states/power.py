"""Power: bring the machine to on or off as wanted, reboot it when somebody asks, and note what it is.

What is wanted is decided by a pure function; the back end is told only when that differs from what is known.

A reboot is a power off and a power on with an annotation between them. The annotation goes as soon as the machine is seen off,
not before: whenever the operator dies, what is left to do can be told from the annotation and from the machine, and it is
neither forgotten nor done twice. A host with `disablePowerOff` is never off, so there it goes when the reboot was done.

On the way from off to on lies what can only be done there: `data_image` and `servicing`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ingot.api.baremetalhost import (
    BARE_METAL_HOSTS,
    Annotation,
    BareMetalHost,
    ErrorType,
    EventReason,
    State,
)
from ingot.api.installed import RUNS_A_SYSTEM
from ingot.hosts.beside.data_image import attend_data_image
from ingot.hosts.host_pass import Pass
from ingot.hosts.metrics import METRICS
from ingot.hosts.outcome import SOON, Fail, Outcome, Stay, Wait
from ingot.hosts.states.reboots import reboots
from ingot.hosts.states.servicing import begin_servicing, go_on_servicing, is_serviced
from ingot.kube import Conflict
from ingot.provisioner import Busy, Failed, NotRegistered, Power, PowerOffMode, Ready, Vitals

UNKNOWN: Final = Wait("the back end does not know the host; it is registered again", look_again=SOON)
POWER_MANAGED: Final = frozenset({State.AVAILABLE, State.PROVISIONED, State.EXTERNALLY_PROVISIONED})


def wanted_power(host: BareMetalHost) -> Power | None:
    """What the user asked for; None where the machine is not ours to switch."""
    if host.state not in POWER_MANAGED:
        return None
    if host.spec.disable_power_off:
        return Power.ON if host.spec.online else None
    return Power.ON if host.spec.online and not reboots(host) else Power.OFF


async def manage_power(p: Pass) -> Outcome | None:
    """Switch the machine where needed; None when it is as wanted."""
    if not await look_at_vitals(p):
        return UNKNOWN
    if p.state in RUNS_A_SYSTEM and is_serviced(p.status):
        return await go_on_servicing(p) or await _after_servicing(p)
    return await _bring_about(p)


def at_rest(p: Pass, otherwise: str) -> Stay:
    """What to say of a host whose power is as wanted."""
    held = " and ".join(reboots(p.current).held_by)
    if not held:
        return Stay(otherwise)
    if p.host.spec.disable_power_off:
        return Stay(
            f"annotation {held} asks for the host to be kept off, and spec.disablePowerOff forbids it: the host stays on. "
            f"For one reboot, use the annotation {Annotation.REBOOT}"
        )
    return Stay(f"the host is kept off by annotation {held}; it is switched on when that is removed")


async def _bring_about(p: Pass, *, starts: bool = True, switched: bool = False) -> Outcome | None:
    """From what is known of the machine to what is wanted of it. `switched`: it has just been switched by us."""
    on = p.vitals.powered_on if p.vitals is not None else None
    if on is not None and on is not p.status.powered_on:
        _note_power(p, on, switched=switched)
    if on is False and Annotation.REBOOT in p.host.metadata.annotations:
        await drop_reboot(p)
    wanted = wanted_power(p.current)
    if starts and p.state in RUNS_A_SYSTEM and wanted is Power.ON and on is False:
        outcome = await attend_data_image(p) or await begin_servicing(p)
        return outcome or await _after_servicing(p)
    if p.host.spec.disable_power_off and on is not False and reboots(p.current).once:
        return await _reboot(p)
    if wanted is None or on is (wanted is Power.ON):
        return None
    return await _switch(p, wanted)


async def _after_servicing(p: Pass) -> Outcome | None:
    """It may have left the machine on or off. Whatever is still different waits for the next reboot."""
    if not await look_at_vitals(p):
        return UNKNOWN
    return await _bring_about(p, starts=False)


async def _switch(p: Pass, wanted: Power) -> Outcome | None:
    if (outcome := await _set_power(p, wanted)) is not None:
        return outcome
    on = wanted is Power.ON
    p.vitals = replace(p.vitals, powered_on=on) if p.vitals is not None else Vitals(powered_on=on)
    p.completed()
    # After a power off there may be a power on to come. After a power on nothing is left, so this ends.
    return await _bring_about(p, switched=True)


def _note_power(p: Pass, on: bool, *, switched: bool) -> None:
    """The power changed. What was wanted of a host that waits here, or was done just now, is our doing and is told."""
    p.change(powered_on=on)
    wanted = Power.ON if on else Power.OFF
    if wanted_power(p.current) is not wanted or not (switched or p.host.state is p.state):
        return
    p.tell(EventReason.POWER_ON if on else EventReason.POWER_OFF, f"Host powered {wanted.value}")
    METRICS.switched(p.key, on=on)
    if not on:
        _tell_what_cannot_be_read(p, reboots(p.current).unreadable)


async def _reboot(p: Pass) -> Outcome | None:
    """For a host that must not be off: the back end does in one what is two orders otherwise."""
    if (outcome := await _set_power(p, Power.OFF)) is not None:
        return outcome
    _tell_what_cannot_be_read(p, reboots(p.current).unreadable)
    await drop_reboot(p)
    p.tell(EventReason.POWER_ON, "Host rebooted")
    p.completed()
    return await _bring_about(p)


async def _set_power(p: Pass, wanted: Power) -> Outcome | None:
    """Tell the back end; None when it is done."""
    failed_before = p.failed_with(ErrorType.POWER_MANAGEMENT)
    if p.failed_with(ErrorType.PROVISIONING):
        # What is wrong with an image that is to come is not the machine's doing.
        p.completed()
    # A machine that did not react to a polite request gets an impolite one.
    impolite = failed_before or p.status.error_count > 0 or reboots(p.current).mode is PowerOffMode.HARD
    match await p.tools.backend.set_power(
        p.ref,
        wanted,
        mode=PowerOffMode.HARD if impolite else PowerOffMode.SOFT,
        permit=p.permit,
        again=failed_before,
    ):
        case Ready():
            return None
        case Busy(why, detail):
            return Wait(why, detail)
        case NotRegistered(why):
            return Wait(why, look_again=SOON)
        case Failed(message):
            return Fail(ErrorType.POWER_MANAGEMENT, message)


def _tell_what_cannot_be_read(p: Pass, names: tuple[str, ...]) -> None:
    """Told with the power off that it was obeyed with, so once."""
    for name in names:
        p.tell(
            EventReason.INVALID_ANNOTATION_VALUE,
            f"Annotation {name} is neither empty nor JSON with mode (hard or soft) and force (true or false): "
            "the host was switched off as if it were empty",
            "Warning",
        )


async def drop_reboot(p: Pass) -> None:
    """What the plain annotation asked for has been done."""
    patch = {"metadata": {"annotations": {Annotation.REBOOT: None}}}
    try:
        await p.patch_host(patch)
    except Conflict:
        # Somebody writes the host at this moment. The next pass decides anew, and must not find a request that was obeyed.
        newer = await p.tools.client.get(BARE_METAL_HOSTS, p.key)
        if _asks(newer) == _asks(p.host) and newer.metadata.uid == p.host.metadata.uid:
            await p.tools.client.patch(
                BARE_METAL_HOSTS, p.key, patch, resource_version=newer.metadata.resource_version
            )
        raise


def _asks(host: BareMetalHost) -> str | None:
    return host.metadata.annotations.get(Annotation.REBOOT)


async def drop_obeyed_restart(p: Pass, answer: Ready[object] | Busy | Failed | NotRegistered) -> None:
    """The same for a ramdisk that was to be booted once more, unless the back end could not be told so."""
    if not (p.refused or isinstance(answer, NotRegistered)):
        await drop_reboot(p)


async def look_at_vitals(p: Pass) -> bool:
    """Note what the back end knows of the machine; False when it does not know the machine."""
    found = await p.tools.backend.vitals(p.ref)
    if isinstance(found, NotRegistered):
        return False
    p.vitals = found
    return True
