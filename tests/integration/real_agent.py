"""ironic-python-agent itself, at work without a machine under it: run by the interpreter of its own environment.

It is the oracle: what it says and answers is right, whatever our own reading of it is. Reads a list of orders (`{"do": ...}`)
from its standard input, and prints what it saw of each as JSON. Only what touches hardware is replaced, by a hardware manager
that says what the order says; everything else is the agent's own code. It imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from ironic_python_agent import (
    agent,
    device_hints,
    encoding,
    errors,
    hardware,
    inspector,
    ironic_api_client,
    tls_utils,
)
from oslo_config import cfg
from oslo_log import log
from werkzeug.test import Client

CONF = cfg.CONF
GENERIC = hardware.HardwareSupport.GENERIC
Told = dict[str, Any]


class Bench(hardware.GenericHardwareManager):
    """The generic manager, on a machine that was described to it."""

    def __init__(self, described: Told) -> None:
        super().__init__()
        self._described = described
        self.release = threading.Event()

    def list_network_interfaces(self) -> list[Any]:
        return [
            hardware.NetworkInterface(f"eth{number}", mac)
            for number, mac in enumerate(self._described["macs"])
        ]

    def get_cpus(self) -> Any:
        return hardware.CPU("Simulated CPU", "2400", 8, "x86_64", ["aes"], 1)

    def get_memory(self) -> Any:
        return hardware.Memory(16 << 30, 16 << 10)

    def list_block_devices(self, **_: Any) -> list[Any]:
        names = ("/dev/sda", "/dev/sdb", "/dev/sdc")
        return [hardware.BlockDevice(name, "Simulated disk", 20 << 30, False) for name in names]

    def get_system_vendor_info(self) -> Any:
        firmware = hardware.SystemFirmware("Ingot", "1.0.0", "01/01/2026")
        return hardware.SystemVendorInfo("Practice Server", "S", "Ingot", firmware)

    def get_boot_info(self) -> Any:
        return hardware.BootInfo("uefi")

    def get_bmc_address(self) -> Any:
        return None

    def get_bmc_v6address(self) -> Any:
        return None

    def get_bmc_mac(self) -> Any:
        return None

    def _get_system_lshw_dict(self) -> Told:
        return {}

    def full_sync(self) -> None:
        """Nothing was written."""

    def generate_tls_certificate(self, ip_address: str) -> Any:
        folder = Path(tempfile.mkdtemp())
        text = tls_utils._generate_tls_certificate(
            str(folder / "crt"), str(folder / "key"), "agent", ip_address
        )
        return tls_utils.TlsCertificate(text, str(folder / "crt"), str(folder / "key"))

    def erase_devices_metadata(self, node: Told, ports: Any) -> None:
        if "on fire" in self._described.get("state", ""):
            raise errors.CleaningError("disk on fire")

    def erase_pstore(self, node: Told, ports: Any) -> None:
        """There is none."""

    def erase_devices(self, node: Told, ports: Any) -> dict[str, None]:
        self.release.wait(60)
        return {device.name: None for device in self.list_block_devices()}


Bench.__name__ = "GenericHardwareManager"  # Ironic is told of managers by the names of their classes


def calls(order: Told) -> Told:
    """The three calls to Ironic, each by the class that makes it."""
    CONF.set_override("inspection_callback_url", order["url"] + "/v1/continue_inspection")
    inspected = inspector.inspect()
    client = ironic_api_client.APIClient([order["url"]])
    found = client.lookup_node(
        hardware_info=hardware.list_hardware_info(),
        timeout=30,
        starting_interval=1,
        node_uuid=inspected,
    )
    client.agent_token = found["config"]["agent_token"]
    client.heartbeat(found["node"]["uuid"], agent.Host("127.0.0.1", 9999), "https", order["certificate"])
    return {"found": found}


def answers(order: Told) -> list[Any]:
    """What the agent's API says to each of these requests: status and body. "then" lets the step that runs come to its end."""
    served = agent.IronicPythonAgent(
        order["url"],
        agent.Host("127.0.0.1", 1),
        agent.Host("127.0.0.1", 1),
        1,
        1,
        None,
        1,
        1,
        False,
        order["token"],
    )
    client = Client(served.api)
    said: list[Any] = []
    for request in order["requests"]:
        if "then" in request:
            manager().release.set()
            served.list_command_results()[-1].join()
            continue
        answer = client.open(
            request["path"],
            method=request.get("method", "GET"),
            query_string=request.get("query", {}),
            json=request.get("json"),
        )
        said.append([answer.status_code, answer.get_json()])
    return said


def hints(order: Told) -> list[str | None]:
    """Which device each of these root device hints means."""
    found = (device_hints.match_root_device_hints(order["devices"], wanted) for wanted in order["hints"])
    return [device and device["name"] for device in found]


def fields(_: Told) -> Told:
    """What the agent says of each piece of hardware, and how it says that something failed."""
    kinds = {
        "interface": hardware.NetworkInterface,
        "cpu": hardware.CPU,
        "disk": hardware.BlockDevice,
        "memory": hardware.Memory,
        "system_vendor": hardware.SystemVendorInfo,
        "firmware": hardware.SystemFirmware,
        "boot": hardware.BootInfo,
    }
    failed = errors.ImageChecksumError("the-id", "https://x/disk.raw", "aa", "bb")
    return {name: list(kind.serializable_fields) for name, kind in kinds.items()} | {
        "checksum": json.loads(encoding.RESTJSONEncoder().encode(failed)),
        "inventory": sorted(hardware.list_hardware_info()),
    }


def live(order: Told) -> None:
    """Be the agent of a machine that has just booted, until somebody ends the process."""
    manager().release.set()
    CONF.set_override("advertise_host", "127.0.0.1")
    CONF.set_override("advertise_port", order["port"])
    CONF.set_override("listen_host", "127.0.0.1")
    CONF.set_override("listen_port", order["port"])
    CONF.set_override("api_url", order["url"])
    if order["inspects"]:
        CONF.set_override("inspection_callback_url", order["url"] + "/v1/continue_inspection")
    agent.IronicPythonAgent.from_config(CONF).run()


def manager() -> Bench:
    return hardware._global_managers[0]["manager"]


def main() -> None:
    orders = json.loads(sys.stdin.read())
    log.register_options(CONF)
    CONF([], project="ironic-python-agent", default_config_files=[], default_config_dirs=[])
    log.setup(CONF, "ironic-python-agent")
    CONF.set_override("inspection_dhcp_wait_timeout", 0)
    known = {"calls": calls, "answers": answers, "hints": hints, "fields": fields, "live": live}
    done = []
    for order in orders:
        CONF.set_override("cafile", order.get("ca"))
        described = {"name": "GenericHardwareManager", "manager": Bench(order), "support": GENERIC}
        hardware._global_managers = [described]
        done.append(known[order["do"]](order))
    sys.stdout.write(json.dumps(done, default=str))
    sys.stdout.flush()
    os._exit(0)  # without waiting for threads


if __name__ == "__main__":
    main()
