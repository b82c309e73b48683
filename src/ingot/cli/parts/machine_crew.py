"""The crew that gives hosts away: to Machines and MachineSets, and to HostClaims.

Where hosts are looked after in the same process, both crews read the same copy of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click

from ingot.api.baremetalhost import BareMetalHost
from ingot.cli.parts.crews import Crew, Shop
from ingot.cli.parts.looking_after import NAMESPACE, WORKERS
from ingot.kube import Client, Informer, KubeError, NotFound
from ingot.machines.defaults import BrokenDefault, of_release
from ingot.machines.running import KINDS, MachineSettings, machines

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class MachineWork:
    """What was asked for."""

    settings: MachineSettings

    async def crew(self, shop: Shop, hosts: Informer[BareMetalHost] | None) -> Crew:
        """`hosts`, with the pool's indexes, where another crew runs such an informer."""
        await _look_for_kinds(shop.client, self.settings.namespace)
        running = machines(shop.client, shop.recorder, self.settings, hosts=hosts)
        return Crew(
            informers=running.informers,
            controllers=running.controllers,
            work=running.tasks,
            announcement=lambda: "hosts are given to machines and claims",
        )


async def _look_for_kinds(client: Client, namespace: str) -> None:
    """Say which kinds the API does not know; whatever else is wrong with it is weather, and the informers tell it."""
    missing = []
    for kind in KINDS:
        try:
            # Whoever is kept to one namespace may not ask about all.
            await client.latest_version(kind, namespace=namespace)
        except NotFound:
            missing.append(f"{kind.kind} ({kind.group}/{kind.version})")
        except KubeError:
            return
    if missing:
        raise click.ClickException(
            f"{client.server} does not know {', '.join(missing)}, which --controllers machines works at. Install the "
            "definitions with `ingot crds | kubectl apply --server-side -f -`, or leave machines out of --controllers."
        )


_OPTIONS: Final[tuple[Callable[[Any], Any], ...]] = (
    click.option(
        "--machinesets",
        type=click.Choice(["auto", "on", "off"]),
        default="auto",
        show_default=True,
        help="For machines: whether to look after MachineSets. auto: unless the cluster's Machine API operator does.",
    ),
    click.option(
        "--defaults-namespace",
        metavar="NAMESPACE",
        envvar="INGOT_DEFAULTS_NAMESPACE",
        default="",
        show_envvar=True,
        help="For machines: where the ConfigMap ingot-target-image is, which says what is installed for Machines that do not "
        "say it themselves.",
    ),
    click.option(
        "--release-target",
        metavar="YAML",
        envvar="INGOT_RELEASE_TARGET",
        default="",
        show_envvar=True,
        help="For machines: what is installed where neither says it, as in a provider spec: "
        "'customDeploy: {method: install_coreos}'.",
    ),
)


def machine_options(command: Command) -> Command:
    """The options; `machine_work_from` reads them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def machine_work_from(options: Mapping[str, Any]) -> MachineWork:
    namespace: str = options["defaults_namespace"].strip()
    if namespace and not NAMESPACE.fullmatch(namespace):
        raise click.UsageError(f"--defaults-namespace: {namespace!r} is not a name that a namespace can have")
    try:
        of_release(options["release_target"])
    except BrokenDefault as error:
        raise click.UsageError(str(error)) from error
    return MachineWork(
        MachineSettings(
            namespace=options["namespace"],
            workers=options["controller_concurrency"] or WORKERS,
            machinesets=options["machinesets"],
            defaults_namespace=namespace,
            release_target=options["release_target"],
        )
    )
