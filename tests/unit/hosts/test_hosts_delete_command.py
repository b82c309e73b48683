"""`ingot host delete`, as a person uses it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rack import IMAGE, Rack

from ingot.api.baremetalhost import Annotation
from ingot.api.meta import Key
from ingot.cli.main import main
from ingot.embedded.server import Running
from ingot.kube import NotFound
from ingot.provisioner import Busy


@pytest.fixture
def kubeconfig(api: Running) -> Path:
    return api.kubeconfig


async def delete(rack: Rack, kubeconfig: Path, *words: str) -> Result:
    command = ["host", "delete", "--kubeconfig", str(kubeconfig), "--namespace", rack.namespace, *words]
    return await asyncio.to_thread(CliRunner().invoke, main, command)


async def test_a_host_is_deleted_and_what_it_waits_for_is_told(rack: Rack, kubeconfig: Path) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    rack.backend.hold("deprovision", Busy("cleaning the disks"))
    command = asyncio.create_task(delete(rack, kubeconfig, "h1"))
    await rack.until(key, lambda host: rack.sentence(host) == "cleaning the disks")
    await rack.settle()
    rack.backend.let_go("deprovision")
    rack.backend.tell(key)
    told = await command
    assert told.exit_code == 0, told.output
    assert told.output.splitlines()[0] == f"{key} is being deleted"
    assert "  deprovisioning: cleaning the disks" in told.output
    assert told.output.splitlines()[-1] == f"{key} is gone"


async def test_a_forced_delete_tells_what_it_leaves_behind(rack: Rack, kubeconfig: Path) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    rack.backend.away = "connection refused"
    told = await delete(rack, kubeconfig, "h1", "--force")
    assert told.exit_code == 0, told.output
    for part in ("by force", "id-of-h1", "ingot-forgotten-hosts", IMAGE["url"], "switched on", "is gone"):
        assert part in told.output
    with pytest.raises(NotFound):
        await rack.get(key)


async def test_a_host_that_is_stuck_is_let_go_by_the_same_command(rack: Rack, kubeconfig: Path) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    rack.backend.away = "connection refused"
    assert (await delete(rack, kubeconfig, "h1", "--no-wait")).exit_code == 0
    await rack.until(key, lambda host: "the deletion waits for the back end" in rack.sentence(host))
    told = await delete(rack, kubeconfig, "h1", "--timeout", "1")
    assert told.exit_code == 1
    assert "the deletion waits for the back end" in told.output
    assert "is not gone after 1 s" in told.output
    assert "--force" in told.output
    assert (await delete(rack, kubeconfig, "h1", "--force")).exit_code == 0
    with pytest.raises(NotFound):
        await rack.get(key)


async def test_nobody_has_to_wait(rack: Rack, kubeconfig: Path) -> None:
    key = await rack.host()
    await rack.until_state(key, "available")
    rack.backend.hold("delete", Busy("the node is locked"))
    told = await delete(rack, kubeconfig, "h1", "--no-wait")
    assert (told.exit_code, told.output) == (0, f"{key} is being deleted\n")
    host = await rack.get(key)
    assert host.metadata.deletion_timestamp is not None
    assert Annotation.FORCE_DELETE not in host.metadata.annotations


async def test_a_paused_host_is_said_to_be_paused(rack: Rack, kubeconfig: Path) -> None:
    key = await rack.host()
    await rack.until_state(key, "available")
    await rack.annotate(key, Annotation.PAUSED)
    told = await delete(rack, kubeconfig, "h1", "--no-wait")
    assert Annotation.PAUSED in told.output


async def test_a_host_that_is_not_there_is_named(rack: Rack, kubeconfig: Path) -> None:
    told = await delete(rack, kubeconfig, "h1")
    assert told.exit_code == 1
    assert f"{rack.namespace}/h1" in told.output
    assert "Traceback" not in told.output


async def test_force_without_a_finalizer_of_ours_is_a_plain_delete(rack: Rack, kubeconfig: Path) -> None:
    await rack.operator.end()
    key = await rack.host()
    told = await delete(rack, kubeconfig, "h1", "--force")
    assert told.exit_code == 0, told.output
    assert "never knew the host" in told.output
    with pytest.raises(NotFound):
        await rack.get(Key(*key))
