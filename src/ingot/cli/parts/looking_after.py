"""Which hosts the operator looks after, and how: the options and the environment that Metal3's operator has for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click

from ingot.hosts import HostSettings

WORKERS: Final = 32
"""Hosts that are looked at at the same time. They mostly wait for the API, so it has nothing to do with processors."""
MOST_WORKERS: Final = 1000

NAMESPACE: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class LookingAfter:
    namespace: str
    """Empty for all of them."""
    workers: int
    settings: HostSettings


class _Namespace(click.ParamType[str]):
    name = "NAMESPACE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        found = str(value).strip()
        if "," in found:
            self.fail(
                f"{found!r} names several namespaces. An operator looks after one, or after all: leave it out, or start one "
                "operator for each.",
                param,
                ctx,
            )
        if found and not NAMESPACE.fullmatch(found):
            self.fail(f"{found!r} is not a name that a namespace can have", param, ctx)
        return found


_OPTIONS: Final[tuple[Callable[[Any], Any], ...]] = (
    click.option(
        "--namespace",
        type=_Namespace(),
        envvar="WATCH_NAMESPACE",
        default="",
        show_envvar=True,
        help="Look after the hosts of this namespace only; all of them by default.",
    ),
    click.option(
        "--max-provisioning-retries",
        type=click.IntRange(min=0),
        default=HostSettings().most_attempts,
        show_default=True,
        help="Attempts to provision the same image before the host waits for a person; 0 for no limit.",
    ),
    click.option(
        "--provisioning-limit",
        type=click.IntRange(min=1),
        envvar="PROVISIONING_LIMIT",
        default=HostSettings().provisioning_limit,
        show_default=True,
        show_envvar=True,
        help="Hosts that may boot a ramdisk over the network at the same time; those with virtual media do not count.",
    ),
    click.option(
        "--build-preprov-image",
        is_flag=True,
        envvar="IRONIC_USE_COREOS_IPA",
        show_envvar=True,
        help="Have a ramdisk built for each host (PreprovisioningImage). Something has to build them: `ingot operator "
        "--controllers images`, or another's controller.",
    ),
    click.option(
        "--controller-concurrency",
        type=click.IntRange(min=0, max=MOST_WORKERS),
        envvar="BMO_CONCURRENCY",
        default=0,
        show_envvar=True,
        help=f"Hosts that are looked at at the same time; 0, the default, for {WORKERS}.",
    ),
)


def looking_after_options(command: Command) -> Command:
    """The options; `looking_after_from` reads them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def looking_after_from(options: Mapping[str, Any], *, ramdisk_source: str = "") -> LookingAfter:
    return LookingAfter(
        namespace=options["namespace"],
        workers=options["controller_concurrency"] or WORKERS,
        settings=HostSettings(
            most_attempts=options["max_provisioning_retries"],
            provisioning_limit=options["provisioning_limit"],
            own_ramdisks=options["build_preprov_image"],
            ramdisk_source=ramdisk_source,
        ),
    )
