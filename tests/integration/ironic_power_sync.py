"""What Ironic asks a BMC in one cycle of its power sync, by its own Redfish driver: run by the interpreter of its environment.

Takes a configuration file, which has our plugin in it, and the URL of a BMC. Has the conductor look at the BMC twice, because
the first look logs in, and prints what it noted as JSON.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

from ironic.common import service
from ironic.conductor import manager
from ironic.drivers.modules.redfish.management import RedfishManagement
from ironic.drivers.modules.redfish.power import RedfishPower

from ironic import objects


class Task:
    """With a node that nobody keeps: there is no database."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.driver = SimpleNamespace(power=RedfishPower(), management=RedfishManagement())
        node.save = lambda: None

    def upgrade_lock(self, **_: Any) -> None:
        pass


def main() -> None:
    objects.register_all()
    service.prepare_service("ironic_power_sync", ["ironic-power-sync", "--config-file", sys.argv[1]])
    access = {
        "redfish_address": sys.argv[2],
        "redfish_system_id": "/redfish/v1/Systems/1",
        "redfish_username": "admin",
        "redfish_password": "password",
    }
    node = objects.Node(
        uuid="0b7f4c1e-93cf-4b6a-8f25-6a0f6f5d2f11",
        driver="redfish",
        driver_info=access,
        properties={"vendor": "known"},
        power_state="power on",
        **dict.fromkeys(("boot_mode", "secure_boot", "health", "last_error")),
    )
    failures = [manager.do_sync_power_state(Task(node), 0) for _ in range(2)]
    print(json.dumps([failures, node.boot_mode, node.secure_boot, node.health]))


if __name__ == "__main__":
    main()
