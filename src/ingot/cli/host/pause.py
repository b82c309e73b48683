"""`ingot host pause NAME` and `ingot host unpause NAME`: have Ingot leave a host alone, and look after it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ingot.cli.parts.errands import Errand, Refusal, annotated, errand_options, run_errand

if TYPE_CHECKING:
    from ingot.api.baremetalhost import BareMetalHost


@click.command()
@errand_options
def pause(**options: Any) -> None:
    """Leave a host alone: whatever happens to it or is asked of it, nothing is done.

    What the back end is doing already goes on there.

    \b
    ingot host pause h17
    """
    run_errand(options, paused)


@click.command()
@click.option("--force", is_flag=True, help="Although somebody else paused it.")
@errand_options
def unpause(force: bool, **options: Any) -> None:
    """Look after a host again.

    \b
    ingot host unpause h17
    """
    run_errand(options, lambda host: unpaused(host, force=force))


def paused(host: BareMetalHost) -> Errand:
    from ingot.api.baremetalhost import Annotation

    there = Annotation.PAUSED in host.metadata.annotations
    return Errand(
        patch=None if there else annotated(Annotation.PAUSED, ""),
        said="was paused already" if there else "is paused",
        done=lambda found: Annotation.PAUSED in found.metadata.annotations,
        end="is paused",
    )


def unpaused(host: BareMetalHost, *, force: bool = False) -> Errand:
    from ingot.api.baremetalhost import Annotation

    by = host.metadata.annotations.get(Annotation.PAUSED)
    if by and not force:
        raise Refusal(
            f"{host.key} was paused by {by!r} (the value of its annotation {Annotation.PAUSED}), which will unpause it. Say "
            "--force if it is not in charge any more."
        )
    return Errand(
        patch=None if by is None else annotated(Annotation.PAUSED, None),
        said="was not paused" if by is None else "is looked after again",
        done=lambda found: Annotation.PAUSED not in found.metadata.annotations,
        end="is looked after",
    )
