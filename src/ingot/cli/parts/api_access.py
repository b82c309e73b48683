"""Which Kubernetes API a command talks to, and in which namespace: the same options everywhere.

The API is the first of: `--kubeconfig`, KUBECONFIG, what `ingot up` runs on this machine (STATE/kubeconfig), what kubectl
would take. The namespace is `--namespace`, else that of the kubeconfig's context, else `default`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ingot.cli.parts.state import StateFolder, state_option

if TYPE_CHECKING:
    from ingot.kube import Client

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """What was asked for on the command line."""

    kubeconfig: Path | None
    context: str | None
    namespace: str | None
    state: StateFolder

    def namespace_for(self, client: Client) -> str:
        """The namespace that was asked for, else the one that the kubeconfig names."""
        return self.namespace or client.namespace or "default"

    def client(self) -> Client:
        """A client of that API; use it with `async with`. Raises `KubeError` with a sentence when there is none."""
        from ingot.kube import Client

        path = self.kubeconfig
        if path is None and not os.environ.get("KUBECONFIG") and self.state.kubeconfig.exists():
            path = self.state.kubeconfig
        return Client.from_kubeconfig(path, context=self.context)


def api_options(command: Command) -> Command:
    """`--kubeconfig`, `--context`, `--namespace`, `--state`. The command takes them as `**options` to `access_from`."""
    for option in (
        state_option,
        click.option(
            "-n",
            "--namespace",
            metavar="NAMESPACE",
            help="Where to look; by default the namespace of the kubeconfig's context, or `default`.",
        ),
        click.option(
            "--context", metavar="NAME", help="A context of the kubeconfig; its current one by default."
        ),
        click.option(
            "--kubeconfig",
            type=click.Path(dir_okay=False, path_type=Path),
            help="The API to talk to; also KUBECONFIG. Without either, what `ingot up` runs here.",
        ),
    ):
        command = option(command)
    return command


def access_from(options: Mapping[str, Any]) -> ApiAccess:
    return ApiAccess(options["kubeconfig"], options["context"], options["namespace"], options["state"])
