"""`ingot operator`: the controllers, against any Kubernetes API.

`--controllers` chooses: those of hosts, of machines, of images, or several; each set can be a process of its own. How to reach
Ironic comes from the environment under the names that Metal3 uses (IRONIC_ENDPOINT, IRONIC_CACERT_FILE, METAL3_AUTH_ROOT_DIR,
DEPLOY_ISO_URL), what ramdisks are told under those of its image controller (IRONIC_BASE_URL, IRONIC_AGENT_IMAGE, …), and so may
some of the options; the API comes from KUBECONFIG. What is wrong with them is said in a sentence before anything starts.

What runs, and in which order, is in `parts.operating`.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from ingot.cli.parts.backends import Backend, DemoBackend, IronicBackend
from ingot.cli.parts.electing import (
    IMAGES_LEASE_NAME,
    LEASE_NAME,
    MACHINES_LEASE_NAME,
    election_from,
    election_options,
)
from ingot.cli.parts.host_crew import HostWork
from ingot.cli.parts.image_crew import image_options, image_work_from, where_images_are
from ingot.cli.parts.listen import AddressAndPort, Listen, log_to_stderr
from ingot.cli.parts.looking_after import looking_after_from, looking_after_options
from ingot.cli.parts.machine_crew import machine_options, machine_work_from
from ingot.cli.parts.operating import Wanted, garbage_seldom_looked_for, operate
from ingot.cli.parts.state import StateFolder, state_option
from ingot.cli.parts.switching import switches_from
from ingot.cli.parts.webhook import webhook_from, webhook_options
from ingot.kube import Client, ConfigError, NotLeading

E = TypeVar("E", bound=Exception)

HOSTS: Final = "hosts"
MACHINES: Final = "machines"
IMAGES: Final = "images"
CONTROLLERS: Final = (HOSTS, MACHINES, IMAGES)
LEASES: Final = {HOSTS: LEASE_NAME, MACHINES: MACHINES_LEASE_NAME, IMAGES: IMAGES_LEASE_NAME}
"""What each contends for where it works without those before it."""


class _Controllers(click.ParamType[frozenset[str]]):
    name = "NAME[,NAME]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> frozenset[str]:
        if isinstance(value, frozenset):
            return value
        found = frozenset(filter(None, (name.strip() for name in str(value).split(","))))
        if not found or not found <= set(CONTROLLERS):
            self.fail(
                f"{value!r} is not a list of controllers; there are: {', '.join(CONTROLLERS)}", param, ctx
            )
        return found


@click.command()
@state_option
@click.option(
    "--controllers",
    type=_Controllers(),
    default=HOSTS,
    show_default=True,
    help="What to work at: hosts (BareMetalHost and what belongs to it), machines (hosts for Machines, MachineSets and "
    "HostClaims), images (ramdisks for hosts, made and served), or several, with commas between.",
)
@click.option(
    "--provisioner",
    type=click.Choice(["ironic", "demo"]),
    default="ironic",
    show_default=True,
    help="What drives the machines. demo: there are none; see how Ingot works without hardware.",
)
@click.option(
    "--demo-script",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="How the machines of --provisioner demo behave: YAML or JSON. By default all goes well, in a second or two a step.",
)
@click.option(
    "--push-listen",
    type=AddressAndPort(),
    default="127.0.0.1:0",
    show_default=True,
    help="Where the plugin inside Ironic reports changes. TLS, with the token in STATE/operator/push-token.",
)
@click.option(
    "--health-listen",
    type=AddressAndPort(),
    help="Serve /livez, /readyz and /metrics here, with TLS; metrics, and reasons, for who has the token in "
    "STATE/operator/metrics-token. Off by default.",
)
@looking_after_options
@machine_options
@image_options
@election_options
@webhook_options
@click.option("--verbose", "-v", is_flag=True, help="Log more.")
def operator(
    state: StateFolder,
    controllers: frozenset[str],
    provisioner: str,
    demo_script: Path | None,
    push_listen: Listen,
    health_listen: Listen | None,
    verbose: bool,
    **options: Any,
) -> None:
    """Run the controllers until told to stop.

    Ends with exit code 75 when the Lease of --leader-elect is lost: started again, the process contends anew.
    """
    log_to_stderr(verbose=verbose)
    election = election_from(
        options, usual_name=next(LEASES[name] for name in CONTROLLERS if name in controllers)
    )
    webhook = webhook_from(options)
    source = where_images_are(options, served_here=IMAGES in controllers)
    looking_after = looking_after_from(options, ramdisk_source=source)
    hosts = machines = images = None
    if HOSTS in controllers:
        backend = _backend(provisioner, push_listen, demo_script)
        hosts = HostWork(backend, webhook, switches_from(os.environ), looking_after)
    elif webhook is not None:
        raise click.UsageError(
            "--webhook-listen goes with --controllers hosts: the rules are asked about hosts"
        )
    if MACHINES in controllers:
        machines = machine_work_from(options)
    if IMAGES in controllers:
        images = image_work_from(options, state)
    try:
        # Read here only to say what is wrong with it before anything starts.
        Client.from_kubeconfig()
    except ConfigError as error:
        raise click.ClickException(str(error)) from error
    wanted = Wanted(state, health_listen, election, hosts, machines, images)
    try:
        with garbage_seldom_looked_for():
            asyncio.run(operate(wanted))
    except BaseExceptionGroup as group:
        if (lost := _first(group, NotLeading)) and election is not None:
            raise election.lost(str(lost)) from group
        if told := _first(group, click.ClickException):
            raise told from group
        raise


def _backend(provisioner: str, push: Listen, demo_script: Path | None) -> Backend:
    if provisioner == "demo":
        return DemoBackend.from_file(demo_script)
    if demo_script is not None:
        raise click.UsageError("--demo-script is for --provisioner demo")
    return IronicBackend.from_environment(os.environ, push)


def _first(group: BaseExceptionGroup[Any], kind: type[E]) -> E | None:
    """The first error of that kind in a group, however deep it is nested."""
    found: BaseException | None = group.subgroup(kind)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found if isinstance(found, kind) else None
