"""`ingot host retry NAME`: try at once what failed, as if it had not failed before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ingot.cli.parts.errands import Errand, Refusal, annotated, errand_options, run_errand
from ingot.cli.parts.following import SETTLES, well

if TYPE_CHECKING:
    from ingot.api.baremetalhost import BareMetalHost


@click.command()
@errand_options
def retry(**options: Any) -> None:
    """Try at once what failed, with the pauses between two tries as short as at first.

    Changing the host or one of its Secrets does the same.

    \b
    ingot host retry h17 --wait
    """
    run_errand(options, tried_again)


def tried_again(host: BareMetalHost) -> Errand:
    from ingot.api.baremetalhost import Annotation

    if not host.status.error_type:
        raise Refusal(f"{host.key} has not failed: there is nothing to try again.")
    if Annotation.PAUSED in host.metadata.annotations:
        raise Refusal(f"{host.key} is paused, and nothing is tried. First: ingot host unpause.")

    def noticed(found: BareMetalHost) -> bool:
        return Annotation.RETRY not in found.metadata.annotations

    return Errand(
        patch=annotated(Annotation.RETRY, ""),
        said="is tried again",
        done=lambda found: noticed(found) and well(found),
        end="has no error any more",
        noticed=noticed,
        settles=SETTLES,
    )
