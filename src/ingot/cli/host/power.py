"""`ingot host power on|off|reboot NAME`: on and off are `spec.online`, a reboot is an annotation that goes when it was done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ingot.cli.parts.errands import Errand, Refusal, annotated, errand_options, must_stay, run_errand
from ingot.cli.parts.following import SETTLES, well

if TYPE_CHECKING:
    from ingot.api.baremetalhost import BareMetalHost


@click.group()
def power() -> None:
    """Switch a host on or off, or reboot it.

    \b
    ingot host power off h17 --wait
    ingot host power reboot h17 --hard
    """


@power.command("on")
@errand_options
def on(**options: Any) -> None:
    """Switch a host on (spec.online).

    \b
    ingot host power on h17 --wait
    """
    run_errand(options, lambda host: switched(host, on=True))


@power.command("off")
@errand_options
def off(**options: Any) -> None:
    """Switch a host off (spec.online). Its system is asked to shut down first.

    \b
    ingot host power off h17 --wait --timeout 300
    """
    run_errand(options, lambda host: switched(host, on=False))


@power.command("reboot")
@click.option("--hard", is_flag=True, help="Cut the power, instead of asking the system to shut down.")
@click.option(
    "--force",
    is_flag=True,
    help="Also where no system runs: an available host, or a ramdisk that does not come up.",
)
@errand_options
def reboot(hard: bool, force: bool, **options: Any) -> None:
    """Switch a host off and on again, once.

    \b
    ingot host power reboot h17 --hard --wait
    """
    run_errand(options, lambda host: rebooted(host, hard=hard, force=force))


def switched(host: BareMetalHost, *, on: bool) -> Errand:
    must_stay(host)
    if not on and host.spec.disable_power_off:
        raise Refusal(
            f"{host.key} must never be off: spec.disablePowerOff is true. To restart it: ingot host power reboot."
        )
    word = "on" if on else "off"
    same = host.spec.online is on
    return Errand(
        patch=None if same else {"spec": {"online": on}},
        said=f"was to be {word} already" if same else f"is to be switched {word}",
        done=lambda found: well(found) and found.spec.online is on and found.status.powered_on is on,
        end=f"is {word}",
    )


def rebooted(host: BareMetalHost, *, hard: bool = False, force: bool = False) -> Errand:
    from ingot.api.baremetalhost import Annotation, OperationalStatus
    from ingot.api.installed import RUNS_A_SYSTEM

    must_stay(host)
    if not force and host.state not in RUNS_A_SYSTEM:
        raise Refusal(
            f"{host.key} is {host.state or 'new'}, and runs no system that could be rebooted. With --force its machine is "
            "restarted all the same, where nothing forbids it."
        )
    if not host.spec.online:
        raise Refusal(
            f"{host.key} is to be off (spec.online is false). To switch it on: ingot host power on."
        )
    wish: dict[str, Any] = ({"mode": "hard"} if hard else {}) | ({"force": True} if force else {})

    def done(found: BareMetalHost) -> bool:
        asked = Annotation.REBOOT in found.metadata.annotations
        busy = found.status.operational_status is OperationalStatus.SERVICING
        return well(found) and found.status.powered_on and not asked and not busy

    return Errand(
        patch=annotated(Annotation.REBOOT, json.dumps(wish) if wish else ""),
        said=f"is to be rebooted{' by cutting its power' if hard else ''}",
        done=done,
        end="was rebooted",
        settles=SETTLES,
    )
