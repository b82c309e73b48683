"""`--leader-elect` and what belongs to it: contending for the Lease, and what becomes of a process that lost it.

The Lease of who looks after hosts has the name that baremetal-operator gives it, so that where both are installed in one
namespace only one of them works; that of who only gives them to Machines the name that cluster-api-provider-baremetal gives it.
Who only makes images has another one: it works beside them.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click

from ingot.api.meta import Key
from ingot.kube import Client, Elector, Timing

log = logging.getLogger(__name__)

LEASE_NAME: Final = "baremetal-operator"
MACHINES_LEASE_NAME: Final = "controller-leader-election-capbm"
IMAGES_LEASE_NAME: Final = "ingot-images"
EXIT_LOST: Final = 75
"""EX_TEMPFAIL: nothing is wrong that another start would not mend."""

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")

Command = TypeVar("Command", bound=Callable[..., Any])


class Lost(click.ClickException):
    """Another process may lead now."""

    exit_code = EXIT_LOST


@dataclass(frozen=True, slots=True)
class Election:
    """What to contend for."""

    lease: Key
    timing: Timing

    def elector(self) -> Elector:
        return Elector(Client.from_kubeconfig, self.lease, timing=self.timing, on_loss=self._end_soon)

    def lost(self, why: str) -> Lost:
        return Lost(
            f"Lease {self.lease}: {why}. All work has stopped; started again, this process contends anew."
        )

    def _end_soon(self) -> None:
        """End the process from outside its main loop, should that be too busy to end it itself: before others take over."""
        left = (self.timing.duration - self.timing.renew_deadline) / 2
        timer = threading.Timer(left, _end_now, (self.lease, left))
        timer.daemon = True
        timer.start()


def _end_now(lease: Key, after: float) -> None:
    log.error("Lease %s is lost, and the work did not stop within %.1f s; ending the process", lease, after)
    os._exit(EXIT_LOST)


def _seconds(name: str, default: float, help_text: str) -> Callable[[Command], Command]:
    return click.option(
        f"--{name}",
        type=click.FloatRange(min=0, min_open=True),
        envvar=name.upper().replace("-", "_"),
        default=default,
        show_default=True,
        show_envvar=True,
        help=help_text,
    )


_OPTIONS: Final[tuple[Callable[[Any], Any], ...]] = (
    click.option(
        "--leader-elect",
        is_flag=True,
        help="Work only while holding a Lease, so that of several operators one works and the others stand by. "
        "Off by default: on the embedded API one process runs.",
    ),
    click.option(
        "--lease-namespace",
        metavar="NAMESPACE",
        envvar="POD_NAMESPACE",
        show_default="that of --namespace, or default",
        show_envvar=True,
        help="Where the Lease is.",
    ),
    click.option(
        "--lease-name",
        metavar="NAME",
        show_default=f"{LEASE_NAME}; {MACHINES_LEASE_NAME} without hosts; {IMAGES_LEASE_NAME} for images alone",
        help="What it is called.",
    ),
    _seconds("lease-duration-seconds", 15.0, "How long the others wait after the last renewal."),
    _seconds("renew-deadline-seconds", 10.0, "How long after the last renewal the leader goes on working."),
    _seconds("retry-period-seconds", 2.0, "How long between two tries to acquire or renew it."),
)


def election_options(command: Command) -> Command:
    """The options; `election_from` reads them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def election_from(options: Mapping[str, Any], *, usual_name: str = LEASE_NAME) -> Election | None:
    if not options["leader_elect"]:
        return None
    try:
        timing = Timing(
            duration=options["lease_duration_seconds"],
            renew_deadline=options["renew_deadline_seconds"],
            retry=options["retry_period_seconds"],
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    lease = Key(
        options["lease_namespace"] or options["namespace"] or "default", options["lease_name"] or usual_name
    )
    for part in lease:
        if not _NAME.fullmatch(part):
            raise click.UsageError(f"{part!r} is not a name that a Lease or its namespace can have")
    return Election(lease, timing)
