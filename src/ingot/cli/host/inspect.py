"""`ingot host inspect NAME`: have an available host inspected again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ingot.cli.parts.errands import Errand, Refusal, annotated, errand_options, must_stay, run_errand
from ingot.cli.parts.following import well

if TYPE_CHECKING:
    from ingot.api.baremetalhost import BareMetalHost


@click.command()
@errand_options
def inspect(**options: Any) -> None:
    """Look at the hardware of a host again.

    The inspection begins when the host is available; its HardwareData is then made anew.

    \b
    ingot host inspect h17 --wait
    """
    run_errand(options, inspected_again)


def inspected_again(host: BareMetalHost) -> Errand:
    from ingot.api.baremetalhost import Annotation, State
    from ingot.api.inspection import inspection_is_disabled
    from ingot.api.installed import RUNS_A_SYSTEM, wanted

    must_stay(host)
    if inspection_is_disabled(host):
        raise Refusal(
            f"{host.key}: inspection is disabled, by spec.inspectionMode or by the annotation {Annotation.INSPECT}. "
            "Remove that first."
        )
    if host.state in RUNS_A_SYSTEM or wanted(host.spec) is not None:
        raise Refusal(
            f"{host.key} is {host.state or 'new'}: a host is inspected while it is available and has nothing to install. "
            "To empty it: ingot host deprovision."
        )
    earlier = host.status.operation_history.inspect.start

    def done(found: BareMetalHost) -> bool:
        last = found.status.operation_history.inspect
        asked = Annotation.INSPECT in found.metadata.annotations
        return well(found) and found.state is State.AVAILABLE and last.start != earlier and not asked

    return Errand(
        patch=annotated(Annotation.INSPECT, ""),
        said="is to be inspected"
        if host.state is State.AVAILABLE
        else "is to be inspected once it is available",
        done=done,
        end="was inspected",
    )
