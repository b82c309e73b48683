"""The Ironic back end on its stage: a fake Ironic whose conductor does by itself what it is asked for, to one machine."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

from contract import Stage
from fake_ironic import FakeIronic
from fake_plugin import FakePlugin
from ironic_orders import until

from ingot.provisioner import Census
from ingot.provisioner.ironic import IronicAccess, IronicProvisioner, PushListen, Ramdisk
from ingot.trust import Authority, random_token

SOON = 0.01
INVENTORY = {"cpu": {"architecture": "x86_64", "count": 4}, "memory": {"physical_mb": 8192}}
# State of a node → what is done to the machine, in the words of the tests, and the verb that it can fail for
DEEDS = {
    "verifying": ("register", "register"),
    "inspecting": ("inspect", "inspect"),
    "adopting": ("adopt", "adopt"),
    "deploying": ("deploy", "provision"),
    "deleting": ("undeploy", "deprovision"),
    "servicing": ("service", "service"),
}


class Machine:
    """What is left when Ironic's database is lost."""

    def __init__(self) -> None:
        self.powered_on = True
        self.disk = ""
        self.settings = {"ProcTurboMode": "Enabled", "QuietBoot": "true"}

    def bios(self) -> list[dict[str, Any]]:
        values = {"ProcTurboMode": ["Enabled", "Disabled"], "QuietBoot": ["true", "false"]}
        return [
            {
                "name": name,
                "value": value,
                "attribute_type": "Enumeration",
                "allowable_values": values[name],
            }
            for name, value in self.settings.items()
        ]


class IronicStage(Stage):
    backend: IronicProvisioner
    answers_at_once = frozenset({"subscribe"})

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._certificate = Authority(folder / "ca").issue(folder, "fake", ["127.0.0.1"])
        self.ironic = FakeIronic(self._certificate)
        self.machine = Machine()
        self._counted: Counter[str] = Counter()
        self._fails: Counter[str] = Counter()
        self._senders = 0

    async def open(self) -> None:
        await self.ironic.start()
        await self._open_backend()

    async def close(self) -> None:
        await self._close_backend()
        await self.ironic.stop()

    async def restart(self) -> None:
        await self._close_backend()
        await self._open_backend()

    async def _open_backend(self) -> None:
        auth = self._folder / "auth"
        auth.mkdir(exist_ok=True)
        (auth / "username").write_text(self.ironic.username)
        (auth / "password").write_text(self.ironic.password)
        where = IronicAccess(
            endpoint=self.ironic.url,
            ca_file=self._certificate.ca_file,
            auth_folder=auth,
            ramdisk=Ramdisk(iso="https://127.0.0.1/ramdisk.iso"),
            timeout=5,
            orphaned_after=0,
        )
        self._listen = PushListen(
            host="127.0.0.1", port=0, tls=self._certificate.server_context(), token=random_token()
        )
        self.backend = IronicProvisioner(where, self._listen)
        await self.backend.__aenter__()
        self._plug_in()

    async def _close_backend(self) -> None:
        self.ironic.on_change = lambda node, deleted: None
        await self._plugin.stop()
        await self.backend.__aexit__(None, None, None)

    def _plug_in(self) -> None:
        assert self.backend.push_port is not None
        self._senders += 1
        sender = f"ironic-{self._senders}"
        self._plugin = FakePlugin(
            self.backend.push_port, self._listen.token, self._certificate.ca_file, sender
        )
        self.ironic.on_change = self._changed
        # What was begun before goes on.
        for node in list(self.ironic.nodes.values()):
            self._later(node)

    def _changed(self, node: dict[str, Any], deleted: bool) -> None:
        self._plugin.changed(node, deleted)
        if not deleted:
            self._later(node)

    def _later(self, node: dict[str, Any]) -> None:
        asyncio.get_running_loop().call_later(SOON, self._conduct, node["uuid"])

    # What a conductor does

    def _conduct(self, uuid: str) -> None:
        node = self.ironic.nodes.get(uuid)
        if node is None:
            return
        if uuid in self.ironic.media.under_way:
            self._change_media(uuid)
        elif node["target_power_state"] is not None:
            self._switch(node)
        elif node["provision_state"] == "cleaning":
            self._clean(node)
        elif node["provision_state"] in DEEDS:
            self._do(node, *DEEDS[node["provision_state"]])

    def _do(self, node: dict[str, Any], deed: str, verb: str) -> None:
        if self._is_to_fail(verb):
            self.ironic.fail(node["uuid"], f"the machine did not {deed}")
            return
        self._counted[deed] += 1
        match deed:
            case "register":
                self.ironic.bios[node["uuid"]] = self.machine.bios()
                node["power_state"] = self._power()
            case "inspect":
                self.ironic.inventories[node["uuid"]] = {"inventory": INVENTORY}
            case "deploy":
                self.machine.disk = node["instance_info"]["image_source"]
                self.machine.powered_on = True
            case "undeploy":
                self.machine.disk = ""
            case "service":
                self._apply(node, self.ironic.service_steps[-1])
        node["power_state"] = self._power()
        self.ironic.finish(node["uuid"])

    def _clean(self, node: dict[str, Any]) -> None:
        if node["target_provision_state"] == "manageable":
            if self._is_to_fail("prepare"):
                why = "the machine was not prepared"
                self.ironic.fail(node["uuid"], why, maintenance=True, fault="clean failure")
                return
            self._counted["prepare"] += 1
            self._apply(node, self.ironic.clean_steps[-1])
        self.ironic.finish(node["uuid"])

    def _apply(self, node: dict[str, Any], steps: list[dict[str, Any]]) -> None:
        for step in steps:
            if step["step"] == "apply_configuration":
                self.machine.settings |= {one["name"]: one["value"] for one in step["args"]["settings"]}
        self.ironic.bios[node["uuid"]] = self.machine.bios()

    def _switch(self, node: dict[str, Any]) -> None:
        asked = self.ironic.power_targets[-1]
        deed = "reboot" if asked.endswith("rebooting") else asked.removeprefix("soft ")
        if self._is_to_fail(deed):
            why = f"Failed to change power state to '{deed}': no"
            self.ironic.change(node["uuid"], target_power_state=None, last_error=why)
            return
        self._counted[deed] += 1
        self.machine.powered_on = deed != "power off"
        self.ironic.change(node["uuid"], target_power_state=None, power_state=self._power())

    def _change_media(self, uuid: str) -> None:
        if self._is_to_fail("data image"):
            self.ironic.media.fail(uuid, "no")
            return
        self._counted["attach" if self.ironic.media.under_way[uuid] else "eject"] += 1
        self.ironic.media.finish(uuid)

    def _is_to_fail(self, verb: str) -> bool:
        left = self._fails[verb]
        self._fails[verb] = max(0, left - 1)
        return left > 0

    def _power(self) -> str:
        return "power on" if self.machine.powered_on else "power off"

    # What a test knows and spoils

    def done(self, deed: str) -> int:
        return self._counted[deed]

    def powered_on(self) -> bool:
        return self.machine.powered_on

    def on_disk(self) -> str:
        return self.machine.disk

    def will_fail(self, verb: str, times: int = 1) -> None:
        if verb == "subscribe":
            self.ironic.media.error, self.ironic.media.errors_left = "no", times
        else:
            self._fails[verb] = times

    async def lose_memory(self) -> None:
        self.ironic.lose_database()
        self._starts_anew()
        await self.all_told()

    async def all_told(self) -> None:
        await self._plugin.delivered()

    def _starts_anew(self) -> None:
        """A conductor that starts says so under a name that nobody has heard before."""
        self._plugin.sender = f"{self._plugin.sender}-again"
        self._plugin.heartbeat()

    async def look_around(self, census: Census) -> None:
        self.backend.follow(census)
        # Then all nodes are listed.
        lists = self.ironic.requests.count("GET /v1/nodes")
        self._starts_anew()
        await until(lambda: self.ironic.requests.count("GET /v1/nodes") > lists)

    def away(self, away: bool) -> None:
        self.ironic.errors_left = 10**6 if away else 0
        if not away:
            self._starts_anew()
