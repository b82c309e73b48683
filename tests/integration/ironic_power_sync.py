"""What Ironic asks a BMC in one cycle of its power sync, by its own Redfish driver: run by the interpreter of its environment.

Takes a configuration file and the URL of a BMC, asks the four questions of a cycle, and prints the answers as JSON. The first
cycle logs in, so there are two. It imports nothing of ours.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

from ironic.common import service
from ironic.drivers.modules.redfish.management import RedfishManagement
from ironic.drivers.modules.redfish.power import RedfishPower

from ironic import objects


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
        uuid="0b7f4c1e-93cf-4b6a-8f25-6a0f6f5d2f11", driver="redfish", driver_info=access, properties={}
    )
    task = SimpleNamespace(node=node)
    power, management = RedfishPower(), RedfishManagement()
    for _ in range(2):
        # As `do_sync_power_state` of the conductor has them.
        answers = (
            power.get_power_state(task),
            management.get_boot_mode(task),
            management.get_secure_boot_state(task),
            management.get_node_health(task).value,
        )
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
