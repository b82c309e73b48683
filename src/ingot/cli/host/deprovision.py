"""`ingot host deprovision NAME`: remove what is installed, and clean the disks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ingot.cli.parts.errands import Errand, Refusal, errand_options, must_not_be_used, must_stay, run_errand
from ingot.cli.parts.following import well

if TYPE_CHECKING:
    from ingot.api.baremetalhost import BareMetalHost


@click.command()
@click.option("--force", is_flag=True, help="Although something uses the host (spec.consumerRef).")
@errand_options
def deprovision(force: bool, **options: Any) -> None:
    """Remove what is installed on a host, and clean its disks.

    What was on them is lost. The host is then available for another image.

    \b
    ingot host deprovision h17 --wait
    """
    run_errand(options, lambda host: emptied(host, force=force))


def emptied(host: BareMetalHost, *, force: bool = False) -> Errand:
    from ingot.api.baremetalhost import State
    from ingot.api.installed import installed, wanted

    must_stay(host)
    must_not_be_used(host, force=force)
    if host.spec.externally_provisioned:
        raise Refusal(
            f"{host.key} was installed by somebody else (spec.externallyProvisioned), and Ingot leaves it as it is. "
            "Unset that to have it deprovisioned."
        )
    if wanted(host.spec) is None and installed(host.status) is None and host.state is State.AVAILABLE:
        raise Refusal(f"{host.key} is available: nothing is installed on it.")
    return Errand(
        patch={"spec": {"image": None, "customDeploy": None}},
        said="is to be deprovisioned",
        done=lambda found: well(found) and found.state is State.AVAILABLE and installed(found.status) is None,
        end="is available",
    )
