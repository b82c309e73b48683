"""ironic-python-agent itself, told to install CoreOS: run by the interpreter of its own environment, on a CoreOS that is
a folder. Nothing is replaced but the choice of the disk, which is a loop device that the agent would never take by itself.

Reads one order from its standard input, sends it to the agent's API as Ironic does, and prints what the agent answered.
"""

from __future__ import annotations

import base64
import io
import json
import os
import sys
import tarfile
from typing import Any

from ironic_python_agent import agent, encoding, hardware, utils
from oslo_config import cfg
from oslo_log import log
from werkzeug.test import Client

TOKEN = "a-token-of-the-tests"


class Bench(hardware.HardwareManager):
    """Knows which disk the tests mean, and how this machine boots."""

    def evaluate_hardware_support(self) -> int:
        return int(hardware.HardwareSupport.MAINLINE)  # asked after ours, and before the agent's own

    def get_os_install_device(self, permit_refresh: bool = False) -> str:
        return os.environ["DISK_OF_THE_TEST"]

    def get_boot_info(self) -> Any:
        return hardware.BootInfo(os.environ["BOOT_OF_THE_TEST"])

    def list_hardware_info(self) -> dict[str, Any]:
        return {"interfaces": hardware.dispatch_to_managers("list_network_interfaces")}

    def list_network_interfaces(self) -> list[Any]:
        cards = (("eth0", "e1000"), ("usb0", "cdc_ether"), ("usb1", "cdc_ncm"))
        return hardware.filter_devices(
            [hardware.NetworkInterface(name, "52:54:00:00:00:01", driver=driver) for name, driver in cards]
        )


def main() -> None:
    order = json.loads(sys.stdin.read())
    log.register_options(cfg.CONF)
    cfg.CONF([], project="ironic-python-agent", default_config_files=[], default_config_dirs=[])
    cfg.CONF.set_override("debug", True)
    log.setup(cfg.CONF, "ironic-python-agent")
    hardware.get_managers()  # the agent's first deed when it starts
    here = agent.Host("127.0.0.1", 1)
    served = agent.IronicPythonAgent("http://127.0.0.1:1", here, here, 1, 1, None, 1, 1, False, TOKEN)
    client = Client(served.api)

    def tell(name: str, **params: Any) -> Any:
        answer = client.open(
            "/v1/commands/",
            method="POST",
            query_string={"wait": "true", "agent_token": TOKEN},
            json={"name": name, "params": params},
        )
        return answer.get_json()

    node = order["node"]
    step = {"interface": "deploy", "step": "install_coreos", "priority": 80, "args": order["args"]}
    offered = tell("deploy.get_deploy_steps", node=node, ports=[])
    done = tell("deploy.execute_deploy_step", step=step, node=node, ports=[]) if order["install"] else None
    inventory = hardware.list_hardware_info() if order["inventory"] else {}
    logs = base64.b64decode(utils.collect_system_logs()) if order["inventory"] else b""
    journal = ""
    if logs:
        with tarfile.open(fileobj=io.BytesIO(logs), mode="r:gz") as packed:
            if "coreos-journal" in packed.getnames():
                journal = packed.extractfile("coreos-journal").read().decode()
    found = [manager["name"] for manager in hardware.get_managers_detail()]
    answer = {"offered": offered, "done": done, "managers": found, "inventory": inventory, "journal": journal}
    sys.stdout.write("\n" + encoding.RESTJSONEncoder().encode(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)  # without waiting for threads


if __name__ == "__main__":
    main()
