"""What a test of `ingot host` does: type commands, and look at hosts through the API."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import SECRETS
from ingot.api.meta import Key
from ingot.cli.main import main
from ingot.kube import Client
from ingot.provisioner.demo import Behaviour, HostScript, Script

SCRIPT = Script(
    default=HostScript(others=Behaviour(seconds=0.1), components={"bios": "1.0"}),
    hosts={
        "broken": HostScript(
            others=Behaviour(seconds=0.1),
            inspect=Behaviour(seconds=0, fails=1, message="no disks were found"),
        ),
        "slow": HostScript(others=Behaviour(seconds=0.1), inspect=Behaviour(seconds="forever")),
    },
)
IMAGE = ("--image", "https://images.example/a.raw", "--checksum", "00ff", "--format", "raw")
ADDRESS = "redfish://192.0.2.1/redfish/v1/Systems/1"


class Site:
    def __init__(self, client: Client, kubeconfig: Path) -> None:
        self.client = client
        self.kubeconfig = kubeconfig

    async def host(self, *words: str, input: str | None = None, **environment: str) -> Result:
        """`ingot host …`"""
        clean = {"KUBECONFIG": str(self.kubeconfig), "INGOT_BMC_PASSWORD": "", "INGOT_BMC_USERNAME": ""}
        runner = CliRunner(env=clean | environment)
        # The command has an event loop of its own.
        return await asyncio.to_thread(runner.invoke, main, ["host", *words], input=input)

    async def added(self, name: str, *words: str) -> Result:
        login = {"INGOT_BMC_USERNAME": "admin", "INGOT_BMC_PASSWORD": "hunter2"}
        return await self.host("add", name, "--address", ADDRESS, *words, **login)

    async def get(self, name: str) -> BareMetalHost:
        return await self.client.get(BARE_METAL_HOSTS, Key("default", name))

    async def patch(self, name: str, patch: dict[str, Any]) -> None:
        await self.client.patch(BARE_METAL_HOSTS, Key("default", name), patch)

    async def secrets(self) -> list[str]:
        return sorted(
            one.metadata.name for one in (await self.client.list(SECRETS, namespace="default")).items
        )
