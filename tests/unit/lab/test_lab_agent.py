"""The agent: the token's rules, commands, heartbeats, and what it does to the disk."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
from typing import Any

import pytest
from aiohttp import web
from lab_bench import FAST, Bench, config_drive, serving, until
from lab_ironic import DEADLINE, NODE, TOKEN

from ingot.lab.agent.checksum import Checksum, checksum_in_file, expected_checksum
from ingot.lab.faults import Faults
from ingot.lab.fetching import fetched
from ingot.lab.samples import sample_disk
from ingot.trust import client_context

USER_DATA = "#cloud-config\npassword: grüße\n"


async def test_look_up_gives_the_token_that_every_heartbeat_carries(bench: Bench) -> None:
    await bench.boot_ramdisk()
    beat = bench.ironic.heartbeats[0]
    assert beat["agent_token"] == TOKEN
    assert beat["callback_url"].startswith(f"https://{bench.plate.host}:")
    assert "BEGIN CERTIFICATE" in beat["agent_verify_ca"]
    assert "PRIVATE KEY" not in beat["agent_verify_ca"]


async def test_a_token_that_an_earlier_agent_got_leaves_this_one_mute(bench: Bench) -> None:
    bench.ironic.token = "******"
    await bench.boot_medium(bench.lab.file.ramdisk_url)
    await bench.said("gave the token to an earlier agent")
    assert bench.ironic.heartbeats == []


async def test_every_boot_has_a_new_certificate(bench: Bench) -> None:
    await bench.boot_ramdisk()
    await bench.reset("ForceOff")
    bench.ironic.token = another = "another-token-of-forty-three-characters-or-so"
    await bench.boot_ramdisk()
    first, last = bench.ironic.heartbeats[0], bench.ironic.heartbeats[-1]
    assert first["agent_verify_ca"] != last["agent_verify_ca"]
    assert last["agent_token"] == another


async def test_inspection_data_are_posted_again_while_ironic_is_busy(bench: Bench) -> None:
    bench.ironic.refuse_inspections = 2
    await bench.boot_ramdisk()
    await bench.said("inspection data were taken")
    assert (bench.ironic.inspection_tries, len(bench.ironic.inspections)) == (3, 1)


async def test_an_agent_whose_data_are_never_taken_goes_on_without(bench: Bench) -> None:
    bench.ironic.refuse_inspections = 99
    await bench.boot_ramdisk()
    await bench.said("inspection data were not taken")
    assert (bench.ironic.inspection_tries, bench.ironic.inspections) == (5, [])


async def test_inspection_data_that_nobody_wants_are_posted_once(bench: Bench) -> None:
    bench.ironic.expects_inspection = False
    await bench.boot_ramdisk()
    await bench.said("inspection data were not taken")
    assert (bench.ironic.inspection_tries, bench.ironic.inspections) == (1, [])


async def test_nobody_commands_the_agent_without_the_token(bench: Bench) -> None:
    await bench.boot_ramdisk()
    status, body = await bench.ironic.order("clean.get_clean_steps", {}, wait=True, token="wrong")
    assert status == 401
    assert body["faultstring"] == "401 Unauthorized: Token invalid."
    assert await bench.ironic.results() == []


async def test_an_unknown_command_is_refused(bench: Bench) -> None:
    await bench.boot_ramdisk()
    status, body = await bench.ironic.order("image.explode", {})
    assert (status, body["faultstring"]) == (400, "Invalid command: Unknown command: explode")
    status, body = await bench.ironic.order("kitchen.cook", {})
    assert (status, body["faultstring"]) == (404, "Not found: Extension with id kitchen not found.")


async def test_steps_are_offered_with_what_ironic_must_know(bench: Bench) -> None:
    await bench.boot_ramdisk()
    for kind in ("clean", "deploy", "service"):
        status, body = await bench.ironic.order(
            f"{kind}.get_{kind}_steps", {"node": {}, "ports": []}, wait=True
        )
        assert (status, body["command_status"], body["command_name"]) == (
            200,
            "SUCCEEDED",
            f"get_{kind}_steps",
        )
        for step in body["command_result"][f"{kind}_steps"]["GenericHardwareManager"]:
            assert {"step", "priority", "interface", "reboot_requested"} <= set(step)


async def test_a_heartbeat_follows_a_step_but_never_sooner_than_the_gap(bench: Bench) -> None:
    await bench.boot_ramdisk()
    step = {"step": "erase_devices_metadata", "interface": "deploy", "priority": 10}
    await bench.ironic.order("clean.execute_clean_step", {"step": step, "node": {}, "ports": []})

    async def again() -> bool:
        return len(bench.ironic.heard_at) >= 2

    await until(again, "the heartbeat after the step")
    first, second = bench.ironic.heard_at[:2]
    assert second - first >= FAST.heartbeat_gap


async def test_a_quick_command_forces_no_heartbeat(bench: Bench) -> None:
    await bench.boot_ramdisk()
    await bench.ironic.order("clean.get_clean_steps", {}, wait=True)
    step = {"step": "erase_devices_metadata", "interface": "deploy"}
    heard = len(bench.ironic.heartbeats)
    assert heard == 1
    await bench.ironic.order("clean.execute_clean_step", {"step": step})

    async def more() -> bool:
        return len(bench.ironic.heartbeats) > heard

    await until(more, "a heartbeat")
    assert len(bench.ironic.heartbeats) == 2


async def test_a_refused_heartbeat_is_sent_again(bench: Bench) -> None:
    bench.ironic.refuse_heartbeats = 2
    await bench.boot_ramdisk()
    assert bench.ironic.refuse_heartbeats == 0


@pytest.mark.parametrize("format_name", ["raw", "qcow2"])
async def test_an_image_is_written_and_runs_with_its_config_drive(bench: Bench, format_name: str) -> None:
    await bench.boot_ramdisk()
    done = await bench.deploy_sample(format_name, config_drive(user_data=USER_DATA, hostname="web-1"))
    assert done["command_status"] == "SUCCEEDED", done
    assert done["command_result"]["deploy_step"]["step"] == "write_image"
    await bench.ironic.order("image.install_bootloader", {})
    await bench.ironic.order("standby.power_off", {})
    assert (await bench.server()).power == "Off"
    await bench.reset("On")
    await bench.said("booted the image on the disk")
    server = await bench.server()
    assert server.booted_into == "instance"
    assert server.running is not None
    assert server.running.image_sha256 == hashlib.sha256(sample_disk()).hexdigest()
    assert (server.running.user_data, server.running.hostname) == (USER_DATA, "web-1")
    assert (server.deployments, server.boots) == (1, 2)


async def test_user_data_appear_in_no_log_line(bench: Bench) -> None:
    await bench.boot_ramdisk()
    await bench.deploy_sample("raw", config_drive(user_data="top secret", hostname="web-1"))
    assert not [line.text for line in (await bench.server()).log if "secret" in line.text]
    assert "command_params" not in (await bench.ironic.results())[-1]


async def test_a_wrong_checksum_fails_in_the_agents_words_and_leaves_no_image(bench: Bench) -> None:
    await bench.boot_ramdisk()
    image = bench.lab.file.image("raw")
    wrong = "0" * 64
    done = await bench.deploy({"urls": [image.url], "os_hash_algo": "sha256", "os_hash_value": wrong})
    assert done["command_status"] == "FAILED"
    error = done["command_error"]
    assert (error["type"], error["message"]) == ("ImageChecksumError", "Error verifying image checksum")
    assert f"image checksum: {wrong}; verification checksum: {image.sha256}" in error["details"]
    assert (await bench.server()).deployments == 0
    await bench.reset("ForceRestart")
    await bench.said("the disk is not bootable")


async def test_the_checksum_may_be_in_a_file(bench: Bench) -> None:
    await bench.boot_ramdisk()
    image = bench.lab.file.image("qcow2")
    sums = f"{'1' * 64}  other.qcow2\n{image.sha256} *{image.name}\n".encode()
    listed = await bench.lab.add_image(sums, name="SHA256SUMS")
    done = await bench.deploy({"urls": [image.url], "os_hash_algo": "sha256", "os_hash_value": listed.url})
    assert done["command_status"] == "SUCCEEDED", done


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"disk_format": "qcow2"}, "declared as qcow2, but its content is raw"),
        ({"os_hash_value": None, "checksum": None}, "no checksum"),
        ({"os_hash_algo": "md5", "os_hash_value": "0" * 32}, "MD5 checksums are disabled"),
        ({"urls": ["https://127.0.0.1:1/x"]}, "Download of image image failed"),
        ({"urls": []}, "at least one element"),
    ],
)
async def test_an_image_that_cannot_be_used_fails_with_a_reason(
    bench: Bench, change: dict[str, Any], words: str
) -> None:
    await bench.boot_ramdisk()
    image = bench.lab.file.image("raw")
    info = {"urls": [image.url], "os_hash_algo": "sha256", "os_hash_value": image.sha256, **change}
    done = await bench.deploy(info)
    assert done["command_status"] == "FAILED"
    assert words in done["command_error"]["details"]


async def test_a_config_drive_that_is_not_whole_fails_the_step(bench: Bench) -> None:
    await bench.boot_ramdisk()
    image = bench.lab.file.image("raw")
    info = {"id": "image", "urls": [image.url], "os_hash_algo": "sha256", "os_hash_value": image.sha256}
    packed = gzip.compress(config_drive(user_data=USER_DATA, hostname="web-1"))
    for content in (packed[: len(packed) // 2], b"no gzip"):
        args = {"image_info": info, "configdrive": base64.b64encode(content).decode()}
        step = {"interface": "deploy", "step": "write_image", "args": args}
        await bench.ironic.order("deploy.execute_deploy_step", {"step": step})
        done = await bench.ironic.finished()
        assert done["command_status"] == "FAILED"
        assert "the config drive is not base64 and gzip" in done["command_error"]["details"]
    assert (await bench.server()).deployments == 0


async def test_a_server_that_would_pack_what_it_sends_is_asked_not_to(bench: Bench) -> None:
    async def packing(_: web.Request) -> web.Response:
        answer = web.Response(body=sample_disk())
        answer.enable_compression()
        return answer

    await bench.boot_ramdisk()
    digest = hashlib.sha256(sample_disk()).hexdigest()
    trusted = client_context(bench.state / "ca" / "ca.crt")
    async with serving(bench.state, packing) as url:
        done = await bench.deploy({"urls": [url], "checksum": digest})
        assert done["command_status"] == "SUCCEEDED", done
        async with fetched(url, "the medium", trusted=trusted, folder=bench.state) as medium:
            assert medium.sha256 == digest


async def test_md5_works_where_ironic_allows_it(bench: Bench) -> None:
    bench.ironic.md5 = True
    await bench.boot_ramdisk()
    digest = hashlib.md5(sample_disk()).hexdigest()
    done = await bench.deploy({"urls": [bench.lab.file.image("raw").url], "checksum": digest})
    assert done["command_status"] == "SUCCEEDED", done


async def test_cleaning_really_wipes_image_and_config_drive(bench: Bench) -> None:
    await bench.boot_ramdisk()
    await bench.deploy_sample("raw", config_drive(user_data=USER_DATA, hostname="web-1"))
    step = {"step": "erase_devices_metadata", "interface": "deploy"}
    await bench.ironic.order("clean.execute_clean_step", {"step": step})
    assert (await bench.ironic.finished())["command_result"]["clean_step"] == step
    folder = bench.state / "lab" / "servers" / bench.plate.name
    with (folder / "disk-1.img").open("rb") as disk:
        assert disk.read(1 << 20) == bytes(1 << 20)
    assert not (folder / "config-drive-1.iso").exists()
    assert (await bench.server()).cleanings == 1
    await bench.reset("ForceRestart")
    await bench.said("the disk is not bootable")


async def test_a_fault_makes_the_named_step_fail(bench: Bench) -> None:
    await bench.lab.set_faults(
        bench.plate.name, Faults(fail_steps={"erase_devices_metadata": "disk on fire"})
    )
    await bench.boot_ramdisk()
    await bench.ironic.order("clean.execute_clean_step", {"step": {"step": "erase_devices_metadata"}})
    failed = await bench.ironic.finished()
    assert failed["command_error"] == {
        "type": "CleaningError",
        "code": 500,
        "message": "Clean step failed",
        "details": "disk on fire",
    }
    assert (await bench.server()).cleanings == 0


async def test_a_restart_from_within_boots_the_disk(bench: Bench) -> None:
    await bench.boot_ramdisk()
    await bench.deploy_sample("raw")
    status, body = await bench.ironic.order("standby.run_image", {})
    assert (status, body["command_status"]) == (200, "SUCCEEDED")
    await bench.said("booted the image on the disk")
    server = await bench.server()
    assert (server.power, server.booted_into, server.boots) == ("On", "instance", 2)


async def test_switching_on_right_after_the_agent_switched_off_boots_anew(bench: Bench) -> None:
    await bench.boot_ramdisk()
    await bench.deploy_sample("raw")
    await bench.ironic.order("standby.power_off", {})
    await bench.reset("On")
    await bench.reset("ForceOff")
    await bench.reset("On")
    await bench.said("booted the image on the disk")
    with pytest.raises(OSError):
        await bench.ironic.results()


async def test_a_long_command_keeps_the_agent_busy_for_others(bench: Bench) -> None:
    await bench.boot_ramdisk()
    gate = asyncio.Event()

    async def held(_: web.Request) -> web.Response:
        await gate.wait()
        return web.Response(body=b"never the image")

    async with serving(bench.state, held) as url:
        info = {"id": "slow", "urls": [url], "os_hash_algo": "sha256", "os_hash_value": "0" * 64}
        step = {"step": "write_image", "interface": "deploy", "args": {"image_info": info}}
        await bench.ironic.order("deploy.execute_deploy_step", {"step": step})
        status, body = await bench.ironic.order(
            "clean.execute_clean_step", {"step": {"step": "erase_devices"}}
        )
        assert status == 409
        assert body["faultstring"] == "Agent is busy: executing command execute_deploy_step"
        assert (await bench.ironic.order("deploy.get_deploy_steps", {}, wait=True))[0] == 409
        gate.set()
        commands = await bench.ironic.results()
    assert [command["command_name"] for command in commands] == ["execute_deploy_step"]


async def test_power_off_in_the_middle_of_a_download_ends_it(bench: Bench) -> None:
    await bench.boot_ramdisk()
    arrived, gate = asyncio.Event(), asyncio.Event()

    async def held(_: web.Request) -> web.Response:
        arrived.set()
        await gate.wait()
        return web.Response(body=sample_disk())

    async with serving(bench.state, held) as url:
        info = {"id": "slow", "urls": [url], "os_hash_algo": "sha256", "os_hash_value": "0" * 64}
        step = {"step": "write_image", "interface": "deploy", "args": {"image_info": info}}
        await bench.ironic.order("deploy.execute_deploy_step", {"step": step})
        await asyncio.wait_for(arrived.wait(), DEADLINE)
        await bench.reset("ForceOff")
        gate.set()
    server = await bench.server()
    assert (server.power, server.deployments, server.booted_into) == ("Off", 0, "nothing")
    assert not (bench.state / "lab" / "servers" / server.name / "download").exists()


async def test_logs_are_collected_as_an_archive(bench: Bench) -> None:
    await bench.boot_ramdisk()
    _, body = await bench.ironic.order("log.collect_system_logs", {}, wait=True)
    assert body["command_result"]["system_logs"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"algorithm": "sha256", "value": "a" * 64}, Checksum("sha256", "a" * 64)),
        ({"value": "a" * 128}, Checksum("sha512", "a" * 128)),
        ({"short": "a" * 64}, Checksum("sha256", "a" * 64)),
        ({"algorithm": "sha512", "value": "https://x/SUMS"}, Checksum("sha512", "https://x/SUMS")),
        ({"short": "http://x/SUMS"}, Checksum("", "http://x/SUMS")),
    ],
)
def test_the_checksum_that_is_asked_for(given: dict[str, str], wanted: Checksum) -> None:
    algorithm, value, short = (given.get(name) for name in ("algorithm", "value", "short"))
    assert expected_checksum(algorithm=algorithm, value=value, short=short, md5_allowed=False) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "{sum}\n",
        "{sum}  disk.raw\n",
        "ffff  x\n{sum} *./disk.raw\n",
        "SHA256 (disk.raw) = {sum}\n",
        "\n{sum}  a/disk.raw\n",
    ],
)
def test_checksum_files_in_their_usual_forms(text: str) -> None:
    digest = "ab" * 32
    found = checksum_in_file(
        text.format(sum=digest), image_url="https://x/y/disk.raw?z=1", algorithm="", md5_allowed=False
    )
    assert found == Checksum("sha256", digest)


def test_a_checksum_file_without_the_image_says_so() -> None:
    with pytest.raises(ValueError, match=r"no line for disk\.raw"):
        checksum_in_file(
            "ab  other\ncd  x\n", image_url="https://x/disk.raw", algorithm="sha256", md5_allowed=True
        )


@pytest.mark.parametrize("text", ["{sum}\n", "{sum}  disk.raw\n"])
def test_a_file_with_md5_checksums_is_refused_where_md5_is(text: str) -> None:
    said, url = text.format(sum="ab" * 16), "https://x/disk.raw"
    with pytest.raises(ValueError, match="MD5 checksums are disabled"):
        checksum_in_file(said, image_url=url, algorithm="", md5_allowed=False)
    found = checksum_in_file(said, image_url=url, algorithm="", md5_allowed=True)
    assert found == Checksum("md5", "ab" * 16)


async def test_the_node_is_the_one_that_was_looked_up(bench: Bench) -> None:
    await bench.boot_ramdisk()
    await bench.said(f"the agent found its node {NODE}")
