"""Any process may be killed at any moment: what was under way goes on, and a server is deployed once."""

from __future__ import annotations

import time

import pytest
from machine_room import MachineRoom, Server


@pytest.mark.parametrize("part", ["operator", "api-server", "ironic"])
def test_a_deployment_goes_on_when_a_process_is_killed_in_its_middle(
    room: MachineRoom, server: Server, part: str
) -> None:
    server.provisioned_host(text=f"#cloud-config\n# survives {part}\n")
    room.until_says(server.name, "deploying the image")
    before = room.pid(part)
    room.kill(part)
    room.until_state(server.name, "provisioned")
    assert room.pid(part) != before
    seen = server.until_running()
    assert seen.running is not None
    assert seen.running.user_data == f"#cloud-config\n# survives {part}\n"
    assert seen.deployments == 1


def test_ironics_database_is_disposable(room: MachineRoom, server: Server) -> None:
    server.provisioned_host()
    before = room.until_state(server.name, "provisioned")
    seen = server.until_running()

    for suffix in ("", "-wal", "-shm"):
        (room.state / "ironic" / f"ironic.db{suffix}").unlink(missing_ok=True)
    room.kill("ironic")
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
