"""Any process may be killed at any moment: what was under way goes on, and a server is deployed once."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any

import pytest
from machine_room import PATIENCE, MachineRoom, Server, error_of, state_of

from ingot.lab.client import Lab
from ingot.lab.faults import Faults


@pytest.mark.parametrize("part", ["operator", "api-server"])
def test_a_deployment_goes_on_when_a_process_is_killed_in_its_middle(
    room: MachineRoom, server: Server, part: str
) -> None:
    # Known beforehand: on a busy machine a deployment is over before `ingot status` has answered.
    pid = room.pid(part)
    server.provisioned_host(text=f"#cloud-config\n# survives {part}\n")
    room.until_says(server.name, "deploying the image")
    os.kill(pid, signal.SIGKILL)
    room.until_state(server.name, "provisioned")
    room.started_again(part, before=pid)
    seen = server.until_running()
    assert seen.running is not None
    assert seen.running.user_data == f"#cloud-config\n# survives {part}\n"
    assert seen.deployments == 1


def test_an_ironic_killed_at_the_beginning_in_the_middle_and_at_the_end_of_a_deployment_costs_no_second_one(
    room: MachineRoom, server: Server
) -> None:
    pid = room.pid("ironic")
    server.provisioned_host(text="#cloud-config\n# survives Ironic\n")
    room.until_says(server.name, "deploying the image")
    os.kill(pid, signal.SIGKILL)
    # These steps are over in a second; a slow BMC leaves time to hit them.
    behave(room, server, Faults(slow_seconds=1.5))
    pid = room.started_again("ironic", before=pid)
    # The image is written and the agent is there to say so.
    reaches(room, server, "prepare_instance_boot")
    os.kill(pid, signal.SIGKILL)
    pid = room.started_again("ironic", before=pid)
    reaches(room, server, "boot_instance")
    os.kill(pid, signal.SIGKILL)
    behave(room, server, Faults())
    before = room.get("bmh", server.name)["status"]["provisioning"]["ID"]

    def managed_anew(host: dict[str, Any]) -> bool:
        assert not error_of(host)
        return state_of(host) == "provisioned" and host["status"]["provisioning"]["ID"] != before

    room.until(server.name, managed_anew, what="provisioned and known to Ironic anew")
    seen = server.until_running()
    assert seen.deployments == 1
    assert seen.running is not None
    assert seen.running.user_data == "#cloud-config\n# survives Ironic\n"
    # Only a host that Ironic has taken over can be switched off.
    room.patch(server.name, {"online": False})
    room.until(server.name, lambda host: not host["status"]["poweredOn"], what="off")
    assert server.seen().deployments == 1
    assert "ProvisioningError" not in room.events(server.name)


def reaches(room: MachineRoom, server: Server, step: str) -> None:
    """Wait until Ironic is at this deploy step. The step may be short, so nothing else is asked meanwhile."""
    deadline = time.monotonic() + PATIENCE
    while room.ironic_node(server.name).get("deploy_step", {}).get("step") != step:
        assert time.monotonic() < deadline, f"Ironic never came to {step}\n{room.logs()}"
        time.sleep(0.1)


def behave(room: MachineRoom, server: Server, faults: Faults) -> None:
    async def tell() -> None:
        async with Lab.open(room.state) as lab:
            await lab.set_faults(server.name, faults)

    asyncio.run(tell())


def test_ironics_database_is_disposable(room: MachineRoom, server: Server) -> None:
    server.provisioned_host()
    before = room.until_state(server.name, "provisioned")
    seen = server.until_running()

    for suffix in ("", "-wal", "-shm"):
        (room.state / "ironic" / f"ironic.db{suffix}").unlink(missing_ok=True)
    os.kill(room.pid("ironic"), signal.SIGKILL)
    host = room.until(
        server.name,
        lambda host: host["status"]["provisioning"]["ID"] != before["status"]["provisioning"]["ID"],
        what="registered again",
    )
    host = room.until_state(server.name, "provisioned")
    # Adopting comes after registering: wait until Ironic says active, which is when power can be managed again.
    room.patch(server.name, {"online": False})
    room.until(server.name, lambda host: not host["status"]["poweredOn"], what="off")

    now = server.seen()
    assert now.deployments == seen.deployments == 1
    assert now.boots == seen.boots
    since = [action.what for action in now.power_actions[len(seen.power_actions) :]]
    assert since == ["GracefulShutdown"], "only the power off that was asked for"
    assert host["status"]["provisioning"]["image"] == before["status"]["provisioning"]["image"]


def test_stopping_and_starting_goes_on_where_it_was(room: MachineRoom, server: Server) -> None:
    server.provisioned_host(cleaning=True)
    room.until_says(server.name, "cleaning the disks")
    kubeconfig = (room.state / "kubeconfig").read_text()
    room.down()
    time.sleep(1)
    room.up()
    assert (room.state / "kubeconfig").read_text() == kubeconfig
    room.until_state(server.name, "provisioned")
    assert server.seen().deployments == 1
