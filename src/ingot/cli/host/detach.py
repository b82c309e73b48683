"""`ingot host detach NAME` and `ingot host attach NAME`: have the back end let a host go as it runs, and take it again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ingot.cli.parts.errands import Errand, Refusal, annotated, errand_options, must_stay, run_errand
from ingot.cli.parts.following import SETTLES, well

if TYPE_CHECKING:
    from ingot.api.baremetalhost import BareMetalHost


@click.command()
@click.option("--force", is_flag=True, help="In any state; what is under way at the machine is given up.")
@click.option(
    "--delay-deletion",
    is_flag=True,
    help="Should the host be deleted meanwhile: wait until it is attached again. Without this it goes as it is.",
)
@errand_options
def detach(force: bool, delay_deletion: bool, **options: Any) -> None:
    """Let a host go without touching its machine, which runs on.

    Nobody manages it until it is attached again, and the address of its BMC can be changed.

    \b
    ingot host detach h17 --wait
    """
    run_errand(options, lambda host: let_go(host, force=force, delay_deletion=delay_deletion))


@click.command()
@errand_options
def attach(**options: Any) -> None:
    """Take a detached host again, as it runs.

    \b
    ingot host attach h17 --wait
    """
    run_errand(options, taken_again)


def let_go(host: BareMetalHost, *, force: bool = False, delay_deletion: bool = False) -> Errand:
    from ingot.api.baremetalhost import Annotation, OperationalStatus
    from ingot.api.detachment import LET_GO_FROM

    must_stay(host)
    wish: dict[str, Any] = ({"force": True} if force else {}) | (
        {"deleteAction": "delay"} if delay_deletion else {}
    )
    later = not force and host.state not in LET_GO_FROM
    return Errand(
        patch=annotated(Annotation.DETACHED, json.dumps(wish) if wish else ""),
        said="is to be detached" + (" once it is available or provisioned" if later else ""),
        done=lambda found: found.status.operational_status is OperationalStatus.DETACHED,
        end="is detached",
    )


def taken_again(host: BareMetalHost) -> Errand:
    from ingot.api.baremetalhost import Annotation, OperationalStatus

    there = Annotation.DETACHED in host.metadata.annotations
    if not there and host.status.operational_status is not OperationalStatus.DETACHED:
        raise Refusal(f"{host.key} is not detached.")
    return Errand(
        patch=annotated(Annotation.DETACHED, None) if there else None,
        said="is to be managed again",
        done=lambda found: well(found) and found.status.operational_status is OperationalStatus.OK,
        end="is managed again",
        settles=SETTLES,
    )
