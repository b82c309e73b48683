"""CoreOS live systems on simulated servers: by ISO image and over the network, and where a real one would stop."""

from __future__ import annotations

import hashlib
import io
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime

import pytest
import pytest_asyncio
from lab_bench import Bench, until
from lab_coreos import KEYFILE, Shelf, ignition, initrd, iso, patched
from lab_rack import Rack

from ingot.formats.coreos import LiveIso, minimal_changes, recipe_of
from ingot.images.region import Region
from ingot.images.server import Image, ImageServer, Names, entity_tag
from ingot.images.server import Shelf as ImageShelf
from ingot.images.server import patched as overlaid
from ingot.trust import Authority, ServingTls
from live_images import BY_NAME, LABEL, live_image, root_file_system

pytestmark = pytest.mark.asyncio(loop_scope="module")

OTHER = "fedora-coreos-39.20240101.3.0"
LIVE = "ignition.firstboot ignition.platform.id=metal"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rack]:
    async with Rack.running(tmp_path_factory.mktemp("rack"), servers=36) as rack:
        yield rack


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shelf(rack: Rack) -> AsyncIterator[Shelf]:
    async with Shelf.running(rack.state) as shelf:
        yield shelf


@pytest_asyncio.fixture(loop_scope="module")
async def bench(rack: Rack) -> AsyncIterator[Bench]:
    async with rack.bench() as bench:
        yield bench


def config(bench: Bench, keyfiles: Mapping[str, bytes] | None = None) -> bytes:
    ca = (bench.state / "ca" / "ca.crt").read_bytes()
    return ignition(bench.ironic.url, ca, hostname=bench.plate.name, keyfiles=keyfiles)


async def heard(bench: Bench) -> None:
    async def spoke() -> bool:
        return bool(bench.ironic.heartbeats)

    await until(spoke, "a heartbeat")


async def boot_network(rack: Rack, bench: Bench, arguments: str, image: bytes, rootfs: bytes | int) -> None:
    """Boot from the network, with a script that says so; each server has its own."""
    mac = bench.plate.macs[0].replace(":", "-")
    rack.site.put("kernel", b"not a kernel")
    rack.site.put(f"initrd-{mac}", image)
    rack.site.put(f"rootfs-{mac}", rootfs)
    rack.site.put("boot.ipxe", b"#!ipxe\nchain ${mac:hexhyp}.ipxe\n")
    line = f"kernel kernel {arguments.format(rootfs=f'{rack.site.url}/rootfs-{mac}')} BOOTIF=${{mac}} initrd=initrd"
    script = f"#!ipxe\n{line}\ninitrd initrd-{mac}\nboot\n"
    rack.site.put(f"{mac}.ipxe", script.encode())
    await bench.boot_next("Pxe")
    await bench.reset("On")
    await bench.bmc("GET")


# From an ISO image


@pytest.mark.parametrize("source", ["Cd", "UefiHttp"])
async def test_an_iso_image_boots_and_its_agent_calls_the_ironic_that_ignition_names(
    bench: Bench, shelf: Shelf, source: str
) -> None:
    given = config(bench, keyfiles={"eth0.nmconnection": KEYFILE})
    url = shelf.put(f"{source}.iso", iso(given))
    if source == "Cd":
        await bench.boot_medium(url)
    else:
        boot = {"HttpBootUri": url, "BootSourceOverrideTarget": source, "BootSourceOverrideEnabled": "Once"}
        status, body, _ = await bench.bmc("PATCH", "", {"Boot": boot})
        assert status == 204, body
        await bench.reset("On")
        await bench.bmc("GET")
    await heard(bench)
    server = await bench.server()
    assert server.booted_into == "ramdisk"
    assert server.booted is not None
    assert server.booted.source == source
    live = server.booted.coreos
    assert live is not None
    assert (live.build, live.how, live.root) == (LABEL, "iso", "the medium")
    assert (live.ignition_sha256, live.ignition) == (hashlib.sha256(given).hexdigest(), given.decode())
    assert live.container_image == "registry.example/agent:1"
    assert live.hostname == bench.plate.name
    assert live.keyfiles == {"eth0.nmconnection": KEYFILE.decode()}
    assert f"CoreOS {LABEL}" in await bench.said("booted the ramdisk")
    (posted,) = bench.ironic.inspections
    assert posted["inventory"]["coreos"]["build"] == LABEL
    listed = next(one for one in await bench.lab.servers(history=False) if one.name == server.name)
    assert listed.booted is not None
    assert listed.booted.coreos is not None
    assert listed.booted.coreos.ignition == ""


async def test_only_what_is_needed_is_read_of_a_large_medium(bench: Bench, shelf: Shelf) -> None:
    image = iso(config(bench), ballast=40 << 20)
    url = shelf.put("large.iso", image)
    before, asked = shelf.bytes, len(shelf.ranges)
    await bench.boot_medium(url)
    await heard(bench)
    assert shelf.bytes - before < 4 << 20
    assert 3 < len(shelf.ranges) - asked < 20
    server = await bench.server()
    assert server.booted is not None
    assert (server.booted.sha256, server.booted.size) == ("", len(image))


async def test_the_image_of_a_host_is_booted_from_the_server_that_puts_it_together(
    rack: Rack, bench: Bench
) -> None:
    base = rack.state / "base.iso"
    plain = live_image(ballast=8 << 20)
    base.write_bytes(plain)
    region = Region(base, 0, len(plain))
    given = config(bench)
    pieces = overlaid(region, LiveIso(io.BytesIO(plain)).embedding({"config.ign": given}))
    shelf, name = ImageShelf(), Names(bytes(32)).name("host")
    tag = entity_tag(region, hashlib.sha256(plain).hexdigest(), pieces)
    shelf.put(name, Image(pieces, tag, datetime(2026, 1, 1, tzinfo=UTC)))
    tls = ServingTls(lambda: Authority(rack.state / "ca").issue(rack.state / "images", "x", ["127.0.0.1"]))
    async with ImageServer(shelf, listen=("127.0.0.1", 0), tls=tls, ready=lambda: True) as server:
        await bench.boot_medium(f"https://127.0.0.1:{server.port}/images/{name}/coreos.iso")
        await heard(bench)
    booted = (await bench.server()).booted
    assert booted is not None
    assert booted.coreos is not None
    assert booted.coreos.ignition == given.decode()


async def test_a_large_medium_of_a_server_that_gives_no_parts_is_read_whole(rack: Rack, bench: Bench) -> None:
    image = iso(config(bench), ballast=6 << 20)
    await bench.boot_medium(rack.site.put("whole.iso", image))
    await heard(bench)
    server = await bench.server()
    assert server.booted is not None
    assert (server.booted.sha256, server.booted.size) == (hashlib.sha256(image).hexdigest(), len(image))
    assert server.booted.coreos is not None


@pytest.mark.parametrize("name", ["2020-09", "2021-01", "2021-12", "2023-07-aarch64", "2023-07-s390x"])
async def test_images_of_all_generations_boot(bench: Bench, shelf: Shelf, name: str) -> None:
    plain = live_image(BY_NAME[name])
    image = patched(plain, LiveIso(io.BytesIO(plain)).embedding({"config.ign": config(bench)}))
    await bench.boot_medium(shelf.put(f"{name}.iso", image))
    await heard(bench)


async def test_a_medium_of_another_name_than_the_kernel_waits_for_does_not_boot(
    bench: Bench, shelf: Shelf
) -> None:
    image = iso(config(bench), arguments=f"coreos.liveiso={OTHER} {LIVE}")
    await bench.boot_medium(shelf.put("named.iso", image))
    said = await bench.said("does not boot")
    assert OTHER in said
    assert LABEL in said


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (f"coreos.liveiso={LABEL} ignition.platform.id=metal", "no ignition.firstboot"),
        (f"coreos.liveiso={LABEL} ignition.firstboot", "no ignition.platform.id=metal"),
    ],
)
async def test_without_its_arguments_ignition_does_not_run_and_there_is_no_agent(
    bench: Bench, shelf: Shelf, arguments: str, why: str
) -> None:
    await bench.boot_medium(shelf.put("plain.iso", iso(config(bench), arguments=arguments)))
    assert why in await bench.said("booted the image on the virtual CD")
    server = await bench.server()
    assert server.booted_into == "instance"
    assert server.booted is not None
    assert server.booted.coreos is not None
    assert server.booted.coreos.ignition_sha256 == ""


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "Ignition has no config"),
        (b'{"ignition": {"version": "3.2.0"}}', "makes no unit"),
        (
            b'{"ignition": {"version": "3.2.0"}, "systemd": {"units": [{"name": "ironic-agent.service"}]}}',
            "is not enabled",
        ),
    ],
)
async def test_a_config_without_an_agent_is_a_system_like_any_other(
    bench: Bench, shelf: Shelf, given: bytes | None, why: str
) -> None:
    await bench.boot_medium(shelf.put("other.iso", iso(given)))
    assert why in await bench.said("booted the image on the virtual CD")


async def test_a_config_that_ignition_refuses_ends_the_boot(bench: Bench, shelf: Shelf) -> None:
    await bench.boot_medium(shelf.put("bad.iso", iso(b'{"ignition": {"version": "2.2.0"}}')))
    assert "Ignition fails" in await bench.said("does not boot")


async def test_a_minimal_image_takes_its_root_from_elsewhere(bench: Bench, shelf: Shelf) -> None:
    full = live_image()
    plain = LiveIso(io.BytesIO(full))
    small = b"".join(recipe_of(plain).chunks(plain.iso))
    rootfs = shelf.put("rootfs.img", root_file_system())
    live = LiveIso(io.BytesIO(small))
    image = patched(small, [*minimal_changes(live, rootfs), *live.embedding({"config.ign": config(bench)})])
    await bench.boot_medium(shelf.put("minimal.iso", image))
    await heard(bench)
    server = await bench.server()
    assert server.booted is not None
    assert server.booted.coreos is not None
    assert server.booted.coreos.root == rootfs


# Over the network


async def test_kernel_initial_ram_disk_and_root_file_system_boot_over_the_network(
    rack: Rack, bench: Bench
) -> None:
    given = config(bench)
    image = initrd(b'{"ignition": {"version": "3.0.0"}}', given, keyfiles={"eth0.nmconnection": KEYFILE})
    await boot_network(rack, bench, f"coreos.live.rootfs_url={{rootfs}} {LIVE}", image, root_file_system())
    await heard(bench)
    server = await bench.server()
    assert server.booted is not None
    live = server.booted.coreos
    assert live is not None
    assert (live.build, live.how) == (LABEL, "pxe")
    assert live.root.startswith(f"{rack.site.url}/rootfs-")
    assert live.ignition == given.decode()
    assert live.keyfiles == {"eth0.nmconnection": KEYFILE.decode()}
    (posted,) = bench.ironic.inspections
    assert posted["inventory"]["boot"]["pxe_interface"] == bench.plate.macs[0]


@pytest.mark.parametrize(
    ("arguments", "rootfs", "why"),
    [
        (
            f"coreos.liveiso={LABEL} coreos.live.rootfs_url={{rootfs}} {LIVE}",
            root_file_system(),
            "both coreos.liveiso",
        ),
        (f"coreos.liveiso={LABEL} {LIVE}", root_file_system(), "has none"),
        (LIVE, root_file_system(), "finds no root file system"),
        (f"coreos.live.rootfs_url={{rootfs}} {LIVE}", root_file_system(OTHER), "hash mismatch at offset 0"),
        (f"coreos.live.rootfs_url={{rootfs}} {LIVE}", root_file_system()[:-100], "hash mismatch"),
        (f"coreos.live.rootfs_url={{rootfs}} {LIVE}", 404, "HTTP 404"),
        (f"coreos.live.rootfs_url=tftp://x/rootfs {LIVE}", root_file_system(), "http and https alone"),
        (f'coreos.live.rootfs_url={{rootfs}} {LIVE} "open', root_file_system(), "a quote that does not end"),
    ],
)
async def test_a_live_system_that_finds_no_root_of_its_own_build_does_not_boot(
    rack: Rack, bench: Bench, arguments: str, rootfs: bytes | int, why: str
) -> None:
    await boot_network(rack, bench, arguments, initrd(config(bench)), rootfs)
    assert why in await bench.said("does not boot")
    assert (await bench.server()).booted_into == "nothing"


async def test_a_root_file_system_in_the_initial_ram_disk_has_to_be_of_its_build(
    rack: Rack, bench: Bench
) -> None:
    image = initrd(config(bench))
    image += bytes(-len(image) % 4)
    await boot_network(rack, bench, LIVE, image + root_file_system(OTHER), 404)
    said = await bench.said("does not boot")
    assert OTHER in said
    assert LABEL in said
    rack.site.put(f"initrd-{bench.plate.macs[0].replace(':', '-')}", image + root_file_system())
    await bench.boot_next("Pxe")
    await bench.reset("ForceRestart")
    await bench.bmc("GET")
    await heard(bench)
    booted = (await bench.server()).booted
    assert booted is not None
    assert booted.coreos is not None
    assert booted.coreos.root == "the initial RAM disk"


async def test_an_initial_ram_disk_that_is_cut_short_does_not_boot(rack: Rack, bench: Bench) -> None:
    arguments = f"coreos.live.rootfs_url={{rootfs}} {LIVE}"
    await boot_network(rack, bench, arguments, initrd(config(bench))[:-200], root_file_system())
    assert "cannot be unpacked" in await bench.said("does not boot")


async def test_a_config_at_a_url_counts_more_than_one_that_is_embedded(rack: Rack, bench: Bench) -> None:
    url = rack.site.put("its-own.ign", config(bench))
    arguments = f"coreos.live.rootfs_url={{rootfs}} {LIVE} ignition.config.url={url}"
    await boot_network(
        rack, bench, arguments, initrd(b'{"ignition": {"version": "3.0.0"}}'), root_file_system()
    )
    await heard(bench)
