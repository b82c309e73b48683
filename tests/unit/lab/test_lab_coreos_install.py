"""CoreOS installed by a simulated agent: what the step is told, what it leaves, and what then boots from the disk."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from lab_bench import Bench
from lab_coreos import KEYFILE, Shelf, ignition, iso
from lab_rack import Rack

from ingot.lab.faults import Faults
from ingot.lab.samples import sample_disk
from live_images import LABEL

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIG = {
    "ignition": {"version": "3.4.0"},
    "storage": {"files": [{"path": "/etc/motd", "contents": {"source": "data:,hi"}}]},
}
KEY = "ssh-ed25519 AAAAC3Nz me@example"
METAL = sample_disk()[: 2 << 20]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rack]:
    async with Rack.running(tmp_path_factory.mktemp("rack"), servers=24) as rack:
        yield rack


@pytest_asyncio.fixture(loop_scope="module")
async def bench(rack: Rack) -> AsyncIterator[Bench]:
    """A server that runs a CoreOS ramdisk, with network settings of its own."""
    async with rack.bench() as bench, Shelf.running(rack.state) as shelf:
        ca = (rack.state / "ca" / "ca.crt").read_bytes()
        given = ignition(
            bench.ironic.url, ca, hostname=bench.plate.name, keyfiles={"eth0.nmconnection": KEYFILE}
        )
        bench.ramdisk_url = shelf.put("agent.iso", iso(given))
        await bench.boot_ramdisk()
        yield bench


async def install(
    bench: Bench, args: dict[str, Any] | None = None, *, drive: Any = None, **instance: Any
) -> dict[str, Any]:
    step = {"interface": "deploy", "step": "install_coreos", "args": args or {}}
    node = {"instance_info": {**instance, **({} if drive is None else {"configdrive": drive})}}
    status, body = await bench.ironic.order(
        "deploy.execute_deploy_step", {"step": step, "node": node, "ports": []}
    )
    assert status == 200, body
    return await bench.ironic.finished()


async def booted(bench: Bench) -> Any:
    await bench.ironic.order("standby.run_image", {})
    await bench.said("booted the image on the disk")
    return (await bench.server()).running


async def test_the_step_is_offered_as_the_real_one_is(bench: Bench) -> None:
    _, steps = await bench.ironic.order("deploy.get_deploy_steps", {"node": {}, "ports": []}, wait=True)
    (step,) = steps["command_result"]["deploy_steps"]["CoreOSHardwareManager"]
    assert (step["step"], step["priority"], step["interface"]) == ("install_coreos", 0, "deploy")
    kernel, network = ["append_kargs", "delete_kargs"], ["copy_network", "network_keyfiles"]
    assert list(step["argsinfo"]) == ["ignition", *kernel, *network, "ssh_keys"]
    assert not any(argument["required"] for argument in step["argsinfo"].values())


@pytest.mark.parametrize("as_text", [True, False])
async def test_the_build_that_runs_is_installed_with_what_the_arguments_say(
    bench: Bench, as_text: bool
) -> None:
    args = {
        "ignition": json.dumps(CONFIG) if as_text else CONFIG,
        "append_kargs": ["console=ttyS0", "quiet"],
        "copy_network": False,
        "ssh_keys": [KEY],
    }
    done = await install(bench, args, drive={"user_data": "not even read", "meta_data": {"name": "other"}})
    assert done["command_status"] == "SUCCEEDED", done
    written = (await bench.server()).written["1"]
    assert (written.coreos, written.image) == (LABEL, f"CoreOS {LABEL}")
    running = await booted(bench)
    assert (running.coreos, running.hostname) == (LABEL, "other")
    assert json.loads(running.user_data) == CONFIG
    assert "config" in json.loads(running.ignition)["ignition"]
    assert (running.arguments, running.keyfiles, running.ssh_keys) == (["console=ttyS0", "quiet"], {}, [KEY])


async def test_what_the_arguments_do_not_say_is_in_the_config_drive(bench: Bench) -> None:
    meta = {"coreos_append_karg": "a=b c", "public_keys": {"me": KEY}}
    done = await install(bench, drive={"user_data": json.dumps(CONFIG), "meta_data": meta})
    assert done["command_status"] == "SUCCEEDED", done
    running = await booted(bench)
    assert json.loads(running.user_data) == CONFIG
    assert (running.arguments, running.ssh_keys) == (["a=b", "c"], [KEY])
    # The ramdisk has network settings of its own, and its maker said that they are taken over.
    assert running.keyfiles == {"eth0.nmconnection": KEYFILE.decode()}


async def test_the_installed_system_is_called_as_the_metadata_say(bench: Bench) -> None:
    meta = {"metal3-name": "h1", "name": "h1", "local-hostname": "web-1.example"}
    assert (await install(bench, drive={"meta_data": meta}))["command_status"] == "SUCCEEDED"
    assert (await booted(bench)).hostname == "web-1.example"


async def test_a_network_of_its_own_takes_the_place_of_the_ramdisks(bench: Bench) -> None:
    own = {"bond0.nmconnection": "[connection]\nid=bond0\n"}
    done = await install(bench, drive={"meta_data": {"coreos_network_keyfiles": own}})
    assert done["command_status"] == "SUCCEEDED", done
    assert (await booted(bench)).keyfiles == own


async def test_a_host_name_in_the_config_is_left_alone(bench: Bench) -> None:
    named = {
        "ignition": {"version": "3.0.0"},
        "storage": {"files": [{"path": "/etc/hostname", "contents": {"source": "data:,mine"}}]},
    }
    assert (await install(bench, {"ignition": named}))["command_status"] == "SUCCEEDED"
    running = await booted(bench)
    assert running.hostname == "mine"
    assert json.loads(running.ignition) == named


@pytest.mark.parametrize("packed", [gzip.compress, lzma.compress, bytes], ids=["gz", "xz", "raw"])
async def test_a_metal_image_is_fetched_checked_and_unpacked(rack: Rack, bench: Bench, packed: Any) -> None:
    content = packed(METAL)
    url = rack.site.put("metal.raw.x", content)
    wrong = await install(bench, image_source=url, image_os_hash_algo="sha256", image_os_hash_value="0" * 64)
    assert "failed to verify against checksum" in wrong["command_error"]["details"]
    bare = await install(bench, image_source=url)
    assert "has no hash" in bare["command_error"]["details"]
    digest = hashlib.sha256(content).hexdigest()
    done = await install(bench, image_source=url, image_os_hash_algo="sha256", image_os_hash_value=digest)
    assert done["command_status"] == "SUCCEEDED", done
    running = await booted(bench)
    assert (running.image_sha256, running.coreos) == (hashlib.sha256(METAL).hexdigest(), "")


@pytest.mark.parametrize(
    ("args", "drive", "why"),
    [
        ({"ignition": "sesame"}, None, "the argument ignition is no JSON"),
        ({"ignition": {"sesame": 1}}, None, "no ignition.version"),
        ({"ignition": {"ignition": {"version": "2.2.0"}}}, None, "spec 3"),
        ({}, {"user_data": "#cloud-config sesame"}, "the user data is no JSON"),
        ({}, "H4sI", "a finished image"),
        ({"image_url": "https://sesame"}, None, "no argument 'image_url'"),
        ({"append_kargs": {"sesame": 1}}, None, "the argument append_kargs"),
        ({"copy_network": "sesame"}, None, "neither true nor false"),
    ],
)
async def test_what_cannot_be_installed_is_refused_before_the_disk_is_touched(
    bench: Bench, args: dict[str, Any], drive: Any, why: str
) -> None:
    done = await install(bench, args, drive=drive)
    assert done["command_error"]["type"] == "DeploymentError"
    assert why in done["command_error"]["details"]
    assert "sesame" not in done["command_error"]["details"].replace("image_url", "")
    assert (await bench.server()).written == {}


async def test_a_config_that_ignition_refuses_is_noticed_at_the_first_boot(bench: Bench) -> None:
    twice = {"ignition": {"version": "3.0.0"}, "storage": {"files": [{"path": "/a"}, {"path": "/a"}]}}
    assert (await install(bench, {"ignition": twice}))["command_status"] == "SUCCEEDED"
    await bench.ironic.order("standby.run_image", {})
    assert "Ignition fails" in await bench.said("does not boot")


async def test_faults_hold_for_this_step_too(bench: Bench) -> None:
    await bench.lab.set_faults(bench.plate.name, Faults(fail_steps={"install_coreos": "no space left"}))
    assert "no space left" in (await install(bench))["command_error"]["details"]
    await bench.lab.set_faults(bench.plate.name, Faults(die_in_step="install_coreos"))
    step = {"interface": "deploy", "step": "install_coreos", "args": {}}
    await bench.ironic.order("deploy.execute_deploy_step", {"step": step, "node": {}, "ports": []})
    await bench.said("the agent died in the middle of install_coreos")
    assert (await bench.server()).written == {}
