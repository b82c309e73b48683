"""What the agent does to the server's disks: where images go, RAID, installers, files, credentials, and images it cannot use."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from lab_bench import Bench, config_drive
from lab_rack import Rack

from ingot.lab.agent.hints import root_device
from ingot.lab.agent.raid import arrays_for
from ingot.lab.components import Components, Volume
from ingot.lab.devices import devices
from ingot.lab.errors import StepFailed
from ingot.lab.inventory import inventory
from ingot.lab.labfile import Plate
from ingot.lab.record import Array, Record
from ingot.lab.samples import sample_disk

pytestmark = pytest.mark.asyncio(loop_scope="module")

IMAGE = sample_disk()[: 2 << 20]
"""Its start is enough of a disk, and soon written."""
DIGEST = hashlib.sha256(IMAGE).hexdigest()
GIB = 1 << 30


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rack]:
    async with Rack.running(tmp_path_factory.mktemp("rack"), servers=8) as rack:
        yield rack


@pytest_asyncio.fixture(loop_scope="module")
async def bench(rack: Rack) -> AsyncIterator[Bench]:
    async with rack.bench() as bench:
        await bench.boot_ramdisk()
        yield bench


async def run(
    bench: Bench,
    step: str,
    args: dict[str, Any] | None = None,
    *,
    node: dict[str, Any] | None = None,
    kind: str = "deploy",
) -> dict[str, Any]:
    """Order a step and wait for its end."""
    asked = {"interface": "deploy", "step": step, "args": args or {}}
    status, body = await bench.ironic.order(
        f"{kind}.execute_{kind}_step", {"step": asked, "node": node or {}, "ports": []}
    )
    assert status == 200, body
    return await bench.ironic.finished()


def info(url: str, **more: Any) -> dict[str, Any]:
    return {
        "image_info": {
            "id": "image",
            "urls": [url],
            "os_hash_algo": "sha256",
            "os_hash_value": DIGEST,
            **more,
        }
    }


async def booted(bench: Bench) -> Any:
    await bench.ironic.order("standby.run_image", {})
    await bench.said("booted the image on the disk")
    return await bench.server()


async def test_hints_of_the_node_choose_the_disk_and_the_server_boots_it(rack: Rack, bench: Bench) -> None:
    url = rack.site.put("hinted.raw", IMAGE)
    node = {"properties": {"root_device": {"size": ">= 50", "rotational": True}}, "instance_info": {}}
    done = await run(bench, "write_image", info(url), node=node)
    assert done["command_status"] == "SUCCEEDED", done
    assert "written to device /dev/sdb root_uuid=0x" in done["command_result"]["deploy_result"]["result"]
    ((key, written),) = (await bench.server()).written.items()
    assert (key, written.image, written.size, written.sha256) == ("2", "image", len(IMAGE), DIGEST)
    assert (await booted(bench)).booted.source == "/dev/sdb"


async def test_hints_that_no_disk_meets_fail_in_the_agents_words(bench: Bench) -> None:
    node = {"instance_info": {"root_device": {"serial": "nobody's"}}}
    done = await run(bench, "write_image", info(bench.lab.file.image("raw").url), node=node)
    assert done["command_error"]["type"] == "DeviceNotFound"
    assert "No suitable device was found" in done["command_error"]["details"]

    partition = await run(bench, "write_image", info("https://x/y", image_type="partition"))
    assert "writes images of whole disks only" in partition["command_error"]["details"]


async def test_a_raw_image_is_streamed_to_the_disk_and_a_wrong_one_leaves_nothing(
    rack: Rack, bench: Bench
) -> None:
    url = rack.site.put("streamed.raw", IMAGE)
    streamed = {"disk_format": "raw", "stream_raw_images": True}
    wrong = await run(bench, "write_image", info(url, os_hash_value="0" * 64, **streamed))
    assert wrong["command_error"]["type"] == "ImageChecksumError"
    assert (await bench.server()).written == {}
    done = await run(bench, "write_image", info(url, **streamed))
    assert done["command_status"] == "SUCCEEDED", done
    assert (await booted(bench)).running.image_sha256 == DIGEST


async def test_images_behind_a_log_in_are_fetched_with_what_ironic_gives(rack: Rack, bench: Bench) -> None:
    url = rack.site.put("locked.raw", IMAGE)
    whole = base64.b64encode(b"Bearer abc").decode()
    assert (await run(bench, "write_image", info(url, image_request_authorization=whole)))[
        "command_status"
    ] == "SUCCEEDED"
    basic = {
        "image_server_auth_strategy": "http_basic",
        "image_server_user": "u",
        "image_server_password": "p",
    }
    assert (await run(bench, "write_image", info(url, **basic)))["command_status"] == "SUCCEEDED"
    basic["image_server_password"] = ""
    failed = await run(bench, "write_image", info(url, **basic))
    assert "Missing ['password'] fields" in failed["command_error"]["details"]
    login = "Basic " + base64.b64encode(b"u:p").decode()
    assert [given for path, given in rack.site.asked if path == "locked.raw"] == ["Bearer abc", login]


async def test_a_server_in_trouble_is_asked_again_and_one_that_has_nothing_is_not(
    rack: Rack, bench: Bench
) -> None:
    trouble, gone = rack.site.put("trouble.raw", 503), rack.site.put("gone.raw", 404)
    assert (await run(bench, "write_image", info(trouble)))["command_error"]["type"] == "ImageDownloadError"
    failed = await run(bench, "write_image", info(gone))
    assert failed["command_error"]["type"] == "ImageDownloadFatalError"
    asked = [path for path, _ in rack.site.asked]
    assert (asked.count("trouble.raw"), asked.count("gone.raw")) == (3, 1)


async def test_software_raid_is_made_shown_written_to_and_taken_apart(rack: Rack, bench: Bench) -> None:
    logical = {"controller": "software", "raid_level": "1", "size_gb": "MAX", "volume_name": "root"}
    two = [{"size": 100, "serial": f"<in> {end}"} for end in ("02", "03")]
    node = {"target_raid_config": {"logical_disks": [logical | {"physical_disks": two}]}}
    done = await run(bench, "create_configuration", node=node, kind="clean")
    assert done["command_result"]["clean_result"] == node["target_raid_config"]
    (array,) = (await bench.server()).arrays
    assert (array.device, array.level, array.members) == ("/dev/md0", "1", ["2", "3"])
    _, hardware = await bench.ironic.order("poll.get_hardware_info", {}, wait=True)
    assert "/dev/md0" in [disk["name"] for disk in hardware["command_result"]["disks"]]

    hint = {"instance_info": {"root_device": {"name": "/dev/md0"}}}
    url = rack.site.put("raid.raw", IMAGE)
    assert (await run(bench, "write_image", info(url), node=hint))["command_status"] == "SUCCEEDED"
    assert list((await bench.server()).written) == ["md0"]
    await run(bench, "delete_configuration", kind="service")
    server = await bench.server()
    assert (server.arrays, server.written) == ([], {})


async def test_an_installer_reads_the_nodes_config_drive_in_clear(bench: Bench) -> None:
    drive = {"user_data": '{"ignition": {"version": "3.4.0"}}', "meta_data": {"local-hostname": "core-1"}}
    done = await run(bench, "install_coreos", node={"instance_info": {"configdrive": drive}})
    assert done["command_status"] == "SUCCEEDED", done
    rendered = await run(bench, "install_coreos", node={"instance_info": {"configdrive": "H4sI"}})
    assert "the config drive is a finished image" in rendered["command_error"]["details"]
    running = (await booted(bench)).running
    assert (running.user_data, running.hostname) == (drive["user_data"], "core-1")
    assert running.image_sha256 == bench.lab.file.image("raw").sha256


async def test_files_are_put_into_the_image_and_a_config_drive_comes_from_its_url(
    rack: Rack, bench: Bench
) -> None:
    early = await run(bench, "inject_files", {"files": [{"path": "/etc/motd", "content": "aGk="}]})
    assert "no image was written yet" in early["command_error"]["details"]
    packed = base64.b64encode(gzip.compress(config_drive(user_data="by URL", hostname="url-1")))
    args = info(rack.site.put("image.raw", IMAGE)) | {"configdrive": rack.site.put("drive", packed)}
    assert (await run(bench, "write_image", args))["command_status"] == "SUCCEEDED"
    files = [
        {"path": "/etc/motd", "content": "aGk="},
        {"path": "/etc/x", "content": rack.site.put("x", b"y")},
    ]
    assert (await run(bench, "inject_files", {"files": files}))["command_status"] == "SUCCEEDED"
    written = (await bench.server()).written["1"].files
    assert written == {
        path: hashlib.sha256(text).hexdigest() for path, text in (("/etc/motd", b"hi"), ("/etc/x", b"y"))
    }
    _, found = await bench.ironic.order("standby.get_partition_uuids", {}, wait=True)
    assert found["command_result"] == {"root uuid": "0x00000000"}
    assert (await booted(bench)).running.user_data == "by URL"


PLATE = Plate(
    name="s",
    system_id="0a0b0c0d-1",
    host="127.1.0.1",
    bmc_port=1,
    username="u",
    password="p",
    macs=["52:54:00:00:00:01"],
)


async def test_a_hardware_volume_takes_the_place_of_its_drives() -> None:
    assert [(one.key, one.name) for one in devices(PLATE, Record())] == [
        ("1", "/dev/sda"),
        ("2", "/dev/sdb"),
        ("3", "/dev/sdc"),
    ]
    volume = Volume(id="7", storage="1", name="v", raid_type="RAID1", capacity=90 * GIB, drives=["2", "3"])
    found = devices(PLATE, Record(components=Components(volumes=[volume])))
    assert [(one.key, one.name, one.size) for one in found] == [
        ("1", "/dev/sda", 20 * GIB),
        ("volume-7", "/dev/sdb", 90 * GIB),
    ]
    assert len({one.wwn for one in found}) == 2
    assert root_device(found, {"wwn": found[1].wwn}).key == "volume-7"


@pytest.mark.parametrize(("build", "names", "arch"), [("storage", 8, "x86_64"), ("arm", 1, "aarch64")])
async def test_builds_differ_in_what_is_inside(build: str, names: int, arch: str) -> None:
    plate = Plate(
        name="s", system_id="a-1", host="h", bmc_port=1, username="u", password="p", macs=["m"], build=build
    )
    found = inventory(plate, Record())
    assert (len(found["disks"]), found["cpu"]["architecture"]) == (names, arch)


def logical(level: str, size: int | str, **more: Any) -> dict[str, Any]:
    return {"controller": "software", "raid_level": level, "size_gb": size, **more}


@pytest.mark.parametrize(
    ("disks", "made"),
    [
        ([], []),
        ([{"controller": "hw", "raid_level": "1", "size_gb": 10}], []),
        ([logical("1", 10)], [("/dev/md0", "1", 10)]),
        ([logical("1", 10), logical("0", 5)], [("/dev/md0", "1", 10), ("/dev/md1", "0", 15)]),
        ([logical("1", 10), logical("5", 5)], [("/dev/md0", "1", 10), ("/dev/md1", "5", 10)]),
    ],
)
async def test_arrays_of_a_configuration(
    disks: list[dict[str, Any]], made: list[tuple[str, str, int]]
) -> None:
    arrays: list[Array] = arrays_for({"logical_disks": disks}, devices(PLATE, Record()))
    assert [(array.device, array.level, array.size // GIB) for array in arrays] == made


@pytest.mark.parametrize(
    ("disks", "words"),
    [
        ([logical("0", 10)], "requires RAID-1 for the first"),
        ([logical("1", "MAX"), logical("1", "MAX")], "only one RAID device with size 'MAX'"),
        ([logical("1", 5), logical("6", 5)], "not possible for RAID level 6"),
        ([logical("1", 5), logical("7", 5)], "does not support RAID level 7"),
        ([logical("1", 5)] * 3, "one or two logical disks"),
        ([logical("1", 500)], "do not fit"),
        ([logical("1", 5, physical_disks=[{"name": "/dev/sdz"}])], "No candidates for physical disk"),
        ([logical("1", 5), {"raid_level": "1", "size_gb": 5}], "'controller'='software'"),
    ],
)
async def test_configurations_that_are_refused(disks: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(StepFailed, match=words):
        arrays_for({"logical_disks": disks}, devices(PLATE, Record()))
