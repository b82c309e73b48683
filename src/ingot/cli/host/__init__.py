"""`ingot host`: everyday work with hosts, on any API. One module a verb, loaded on use.

Verbs that ask something of one host are decisions over it (`ingot.cli.parts.errands`); those that tell about hosts share
`ingot.cli.parts.host_report`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import click

from ingot.cli.parts.lazy import LazyGroup


class Verbs(LazyGroup):
    table: ClassVar[Mapping[str, tuple[str, str]]] = {
        "list": ("ingot.cli.host.list:list_hosts", "The hosts, where they are, and why."),
        "show": ("ingot.cli.host.show:show", "All of one host."),
        "add": ("ingot.cli.host.add:add", "Add a host: address, user name, password."),
        "power": ("ingot.cli.host.power:power", "Switch a host on or off, or reboot it."),
        "inspect": ("ingot.cli.host.inspect:inspect", "Look at the hardware of a host again."),
        "provision": ("ingot.cli.host.provision:provision", "Have an image installed on a host."),
        "deprovision": ("ingot.cli.host.deprovision:deprovision", "Remove it, and clean the disks."),
        "detach": ("ingot.cli.host.detach:detach", "Let a host go as it runs."),
        "attach": ("ingot.cli.host.detach:attach", "Take a detached host again, as it runs."),
        "retry": ("ingot.cli.host.retry:retry", "Try at once what failed."),
        "pause": ("ingot.cli.host.pause:pause", "Leave a host alone."),
        "unpause": ("ingot.cli.host.pause:unpause", "Look after it again."),
        "delete": ("ingot.cli.host.delete:delete", "Delete a host, if need be without its back end."),
    }


@click.group(cls=Verbs)
@click.pass_context
def host(context: click.Context) -> None:
    """Everyday work with hosts.

    \b
    ingot host list
    ingot host show h17
    """
    # The finalizer has the name that Metal3 gave it; an API complains of that with every write, and nobody here can change it.
    log = logging.getLogger("ingot.kube.transport")
    context.call_on_close(partial(log.setLevel, log.level))
    log.setLevel(logging.ERROR)
