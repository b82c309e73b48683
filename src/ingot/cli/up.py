"""`ingot up`: start everything on this machine and show it coming up. The work is in `ingot.cli.parts`."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import click

from ingot.cli.parts.plan import Wishes
from ingot.cli.parts.sentences import errors_as_sentences
from ingot.cli.parts.show import Lines
from ingot.cli.parts.state import StateFolder, state_option


@click.command()
@state_option
@click.option("--detach", is_flag=True, help="Run in the background; return when everything is up.")
@click.option(
    "--servers", type=click.IntRange(1, 200), default=3, show_default=True, help="Simulated servers to have."
)
@click.option(
    "--provision",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="How many of them get an image and user data when they are first created.",
)
@click.option(
    "--no-hosts",
    is_flag=True,
    help="Do not create hosts for them; `ingot lab manifests` prints what to apply.",
)
@click.option("--no-lab", is_flag=True, help="No simulated servers: only the API, Ironic and the operator.")
@click.option(
    "--coreos",
    type=click.Path(exists=True, path_type=Path),
    metavar="FOLDER",
    help="Servers boot CoreOS as their ramdisk, made of this release payload (`ingot release`) or live ISO file. "
    "Also IRONIC_USE_COREOS_IPA=true, with INGOT_RELEASE_PAYLOAD or DEPLOY_ISO.",
)
@click.option(
    "--network-boot",
    is_flag=True,
    envvar="INGOT_NETWORK_BOOT",
    show_envvar=True,
    help="Servers may boot over the network: hand out boot files for iPXE, on a port without TLS.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=900.0,
    show_default=True,
    help="With --detach: seconds to wait. What runs goes on running afterwards.",
)
def up(
    state: StateFolder,
    detach: bool,
    servers: int,
    provision: int,
    no_hosts: bool,
    no_lab: bool,
    coreos: Path | None,
    network_boot: bool,
    timeout: float,
) -> None:
    """Start everything on this machine and show it coming up.

    The first start takes a minute or two, because Ironic gets an environment of its own. Ctrl-C stops everything; starting
    again goes on where it was: hosts, images and addresses stay.
    """
    if state.is_foreign():
        raise click.ClickException(
            f"{state.path} holds {state.strangers()[0]!r} and nothing of Ingot's. "
            "Choose an empty or new folder with --state: it becomes Ingot's own."
        )
    # A link stays one: it may lead to another payload tomorrow.
    coreos = coreos.absolute() if coreos else coreos_from(os.environ)
    with errors_as_sentences():
        state.create()
    wishes = Wishes(
        servers=servers,
        provision=min(provision, servers),
        hosts=not no_hosts,
        lab=not no_lab,
        coreos=coreos,
        network_boot=network_boot,
    )
    # A part that is restarted is told by the supervisor; that its watchers lost it meanwhile is no news.
    log = logging.getLogger("ingot.kube")
    click.get_current_context().call_on_close(partial(log.setLevel, log.level))
    log.setLevel(logging.ERROR)
    if detach:
        _detached(state, wishes, timeout)
    else:
        _here(state, wishes)


def _here(state: StateFolder, wishes: Wishes) -> None:
    from ingot.cli.parts.advice import ingot
    from ingot.cli.parts.run import bring_up

    try:
        with errors_as_sentences():
            if sys.stdout.isatty():
                from ingot.cli.parts.screen import Screen

                with Screen() as screen:
                    asyncio.run(bring_up(state, wishes, screen))
            else:
                asyncio.run(bring_up(state, wishes, Lines()))
    except KeyboardInterrupt:
        # Once parts run, Ctrl-C is theirs and ends them in order.
        raise click.ClickException(
            f"interrupted before any part ran; `{ingot('up', state)}` begins again"
        ) from None
    click.echo(f"Everything has stopped. `{ingot('up', state)}` goes on where it was.")


def _detached(state: StateFolder, wishes: Wishes, timeout: float) -> None:
    from ingot.cli.parts.advice import commands
    from ingot.cli.parts.follow import start_in_background, until_up
    from ingot.embedded.supervisor import holder
    from ingot.services.environment import ensure

    show = Lines()
    with errors_as_sentences():
        if held := holder(state.run):
            show.say(f"already running (process {held.pid})")
            hosts = asyncio.run(
                until_up(state, show, alive=lambda: holder(state.run) is not None, within=timeout)
            )
        else:
            # Here, because whoever waits wants to see it move.
            ensure(progress=show.say)
            child = start_in_background(state, *_options(wishes))
            hosts = asyncio.run(until_up(state, show, alive=lambda: child.poll() is None, within=timeout))
    show.advise(commands(state, hosts, detached=True))


def _options(wishes: Wishes) -> list[str]:
    wanted = ["--network-boot"] if wishes.network_boot else []
    if wishes.coreos is not None:
        wanted += ["--coreos", str(wishes.coreos)]
    if not wishes.lab:
        return [*wanted, "--no-lab"]
    wanted += ["--servers", str(wishes.servers), "--provision", str(wishes.provision)]
    return wanted if wishes.hosts else [*wanted, "--no-hosts"]


def coreos_from(environment: Mapping[str, str]) -> Path | None:
    """What ramdisks are made of, as the environment says; None where it asks for no CoreOS."""
    asked = environment.get("IRONIC_USE_COREOS_IPA", "").strip().lower()
    if asked in ("", "false", "no", "off", "0"):
        return None
    if asked not in ("true", "yes", "on", "1"):
        raise click.ClickException(f"IRONIC_USE_COREOS_IPA is {asked!r}; expected true or false.")
    for name in ("INGOT_RELEASE_PAYLOAD", "DEPLOY_ISO"):
        if found := environment.get(name, "").strip():
            path = Path(found).expanduser().absolute()
            if not path.exists():
                raise click.ClickException(f"{name} is {found!r}, and there is nothing.")
            return path
    raise click.ClickException(
        "IRONIC_USE_COREOS_IPA is true, and nothing says what ramdisks are made of. Give a release payload with --coreos FOLDER "
        "or INGOT_RELEASE_PAYLOAD, or a live ISO file with DEPLOY_ISO."
    )
