"""Where a server can boot from, besides the ramdisk on its virtual CD: live media, sticks, URLs and the network."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from lab_bench import Bench, config_drive, until
from lab_rack import Rack

from fat_volumes import fat_volume
from ingot.formats import FormatError
from ingot.formats.boot_parameters import grub_config
from ingot.formats.fat import looks_like_fat, read_fat
from ingot.formats.iso9660 import build_iso
from ingot.lab.errors import BootFailure
from ingot.lab.ipxe import Load, LoadFailed, NetBoot, network_boot
from ingot.lab.medium import CA_IN_RAMDISK, read_medium
from ingot.lab.samples import initrd, kernel, live_iso

pytestmark = pytest.mark.asyncio(loop_scope="module")

MADE_AT = datetime(2026, 1, 1, tzinfo=UTC)
CHAIN = """#!ipxe
set netid:int32 -1
:loop
inc netid || chain pxelinux.cfg/${mac:hexhyp} || goto old_rom
isset ${net${netid}/mac} || goto loop_done
echo Attempting to boot from MAC ${net${netid}/mac:hexhyp}
chain pxelinux.cfg/${net${netid}/mac:hexhyp} || goto loop
exit 0

:loop_done
echo PXE boot failed! No configuration found for any of the present NICs.
prompt --timeout 180
reboot
"""


def script(parameters: str) -> str:
    return f"""#!ipxe
set attempts:int32 2
set i:int32 0
goto deploy

:deploy
imgfree
kernel --timeout 60 ../kernel selinux=0 {parameters} BOOTIF=${{mac}} initrd=deploy_ramdisk || goto retry
initrd --timeout 60 ../initrd || goto retry
boot

:retry
iseq ${{i}} ${{attempts}} && goto fail ||
inc i
goto deploy

:fail
poweroff

:boot_whole_disk
sanboot --no-describe || exit 0
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rack]:
    async with Rack.running(tmp_path_factory.mktemp("rack"), servers=11) as rack:
        yield rack


@pytest_asyncio.fixture(loop_scope="module")
async def bench(rack: Rack) -> AsyncIterator[Bench]:
    async with rack.bench() as bench:
        yield bench


async def heard(bench: Bench) -> None:
    async def spoke() -> bool:
        return bool(bench.ironic.heartbeats)

    await until(spoke, "a heartbeat")


def ca(bench: Bench) -> bytes:
    return (bench.state / "ca" / "ca.crt").read_bytes()


async def test_an_iso_without_an_agent_is_an_operating_system_with_the_config_drive_on_the_stick(
    bench: Bench,
) -> None:
    drive = await bench.lab.add_image(config_drive(user_data="live!", hostname="live-1"), name="drive.iso")
    await bench.insert(drive.url, "Usb")
    live = bench.lab.file.image("live-iso")
    await bench.boot_medium(live.url)
    await bench.said("booted the image on the virtual CD")
    server = await bench.server()
    assert server.running is not None
    assert (server.running.image_sha256, server.running.image_size) == (live.sha256, live.size)
    assert (server.running.user_data, server.running.hostname) == ("live!", "live-1")
    assert server.booted is not None
    assert (server.booted.source, server.booted.sha256) == ("Cd", live.sha256)
    assert server.deployments == 0


async def test_parameters_on_a_stick_make_an_agent_of_a_plain_iso(bench: Bench) -> None:
    token = "from-the-stick"
    lines = f"ipa-api-url={bench.ironic.url}\nipa-agent-token={token}\nboot_method=vmedia\n"
    stick = await bench.lab.add_image(fat_volume({"parameters.txt": lines.encode()}), name="stick.img")
    await bench.insert(stick.url, "Usb")
    files = {"/boot/grub/grub.cfg": b"menuentry x {\nlinux /vmlinuz quiet\n}\n", CA_IN_RAMDISK: ca(bench)}
    plain = await bench.lab.add_image(build_iso(files, label="R", made_at=MADE_AT), name="plain.iso")
    bench.ironic.token = "******"
    await bench.boot_medium(plain.url)
    await heard(bench)
    assert bench.ironic.heartbeats[0]["agent_token"] == token


async def test_what_is_on_the_stick_counts_more_than_what_the_medium_has(bench: Bench) -> None:
    token = "from-the-stick"
    stick = await bench.lab.add_image(
        fat_volume({"parameters.txt": f"ipa-agent-token={token}\n".encode()}), name="stick.img"
    )
    await bench.insert(stick.url, "Usb")
    bench.ironic.token = "******"
    await bench.boot_medium(bench.ramdisk_url)
    await heard(bench)
    assert bench.ironic.heartbeats[0]["agent_token"] == token


async def test_a_stick_that_cannot_be_read_stops_no_boot(bench: Bench) -> None:
    await bench.insert((await bench.lab.add_image(b"neither" * 1000)).url, "Usb")
    await bench.boot_medium(bench.ramdisk_url)
    await heard(bench)
    await bench.said("goes on without the stick")


async def test_uefi_boots_what_is_behind_its_url(bench: Bench) -> None:
    boot = {
        "BootSourceOverrideTarget": "UefiHttp",
        "BootSourceOverrideEnabled": "Once",
        "HttpBootUri": bench.ramdisk_url,
    }
    status, body, _ = await bench.bmc("PATCH", "", {"Boot": boot})
    assert status < 300, body
    await bench.reset("On")
    await bench.bmc("GET")
    await heard(bench)
    server = await bench.server()
    assert server.booted is not None
    assert (server.booted.source, server.booted_into) == ("UefiHttp", "ramdisk")


async def test_the_network_boots_kernel_and_ramdisk_of_the_card_that_ironic_knows(
    rack: Rack, bench: Bench
) -> None:
    mac = bench.plate.macs[1]
    parameters = f"ipa-api-url={bench.ironic.url} ipa-inspection-callback-url={bench.ironic.url}/v1/continue_inspection"
    rack.site.put("boot.ipxe", CHAIN.encode())
    rack.site.put("pxelinux.cfg/" + mac.replace(":", "-"), script(parameters).encode())
    rack.site.put("kernel", kernel())
    rack.site.put("initrd", initrd(ca=ca(bench)))
    await bench.boot_next("Pxe")
    await bench.reset("On")
    await heard(bench)
    (posted,) = bench.ironic.inspections
    assert posted["inventory"]["boot"]["pxe_interface"] == posted["boot_interface"] == bench.plate.macs[0]
    server = await bench.server()
    assert server.booted is not None
    digests = [hashlib.sha256(content).hexdigest() for content in (kernel(), initrd(ca=ca(bench)))]
    assert server.booted.sha256 == hashlib.sha256("".join(digests).encode()).hexdigest()


async def test_a_network_that_knows_none_of_its_cards_boots_nothing(rack: Rack, bench: Bench) -> None:
    rack.site.put("boot.ipxe", CHAIN.encode())
    await bench.boot_next("Pxe")
    await bench.reset("On")
    assert "found nothing to boot" in await bench.said("does not boot")


@pytest.mark.parametrize("label", ["ISOIMAGE", "config-2"])
async def test_what_ironic_puts_on_a_medium_is_found_wherever_it_is(bench: Bench, label: str) -> None:
    """With network data on it, Ironic gives the medium the label of a config drive."""
    network = {"links": [{"id": "eth0"}]}
    config = grub_config(
        kernel="/vmlinuz", initrd="/initrd", values={"ipa-api-url": bench.ironic.url, "nofb": ""}
    )
    files = {
        "/EFI/fedora/grub.cfg": config.encode(),
        "/initrd": initrd(ca=ca(bench)),
        "/openstack/latest/network_data.json": json.dumps(network).encode(),
    }
    found = read_medium(io.BytesIO(build_iso(files, label=label, made_at=MADE_AT)))
    assert found.for_agent
    assert found.bootable
    assert found.network_data == network
    assert found.ca.encode() == ca(bench)


async def test_a_boot_that_is_held_goes_on_when_it_is_released(bench: Bench) -> None:
    name = bench.plate.name
    await bench.lab.hold(name, "boot")
    await bench.boot_medium(bench.ramdisk_url)
    await bench.said("held at boot")
    assert ((await bench.server()).held_at, (await bench.server()).booted_into) == ("boot", "nothing")
    await bench.lab.release(name)
    await heard(bench)


async def test_an_agent_that_is_held_before_its_inspection_posts_nothing(bench: Bench) -> None:
    await bench.lab.hold(bench.plate.name, "inspection")
    await bench.boot_medium(bench.ramdisk_url)
    await bench.said("held at inspection")
    assert bench.ironic.inspection_tries == 0
    await bench.lab.hold(bench.plate.name, "lookup")
    await bench.said("held at lookup")
    assert (len(bench.ironic.inspections), bench.ironic.lookups) == (1, [])
    await bench.lab.release(bench.plate.name)
    await heard(bench)


async def test_a_stick_is_read_with_its_label_and_long_names() -> None:
    long = b"x" * 1500
    volume = read_fat(
        io.BytesIO(fat_volume({"parameters.txt": b"a=b\n", "a file with a long name.cfg": long}))
    )
    assert volume.label == "ir-vfd-dev"
    assert volume.files == {"parameters.txt": b"a=b\n", "a file with a long name.cfg": long}


@pytest.mark.parametrize("cut", [100, 600, 20_000])
async def test_a_stick_that_is_cut_short_is_refused(cut: int) -> None:
    content = fat_volume({"parameters.txt": b"x" * 30_000})
    assert looks_like_fat(content)
    with pytest.raises(FormatError):
        read_fat(io.BytesIO(content[:cut]))


def loads(files: dict[str, str]) -> Load:
    async def load(url: str) -> bytes:
        if url not in files:
            raise LoadFailed(url)
        return files[url].encode()

    return load


@pytest.mark.parametrize(
    ("files", "boots"),
    [
        (
            {"k": "", "i": "", "s": "#!ipxe\nkernel k a=1 mac=${mac}\ninitrd i\nboot\n"},
            NetBoot("http://x/k", "a=1 mac=52:54:00:00:00:01", ("http://x/i",)),
        ),
        ({"s": "#!ipxe\nsanboot http://y/boot.iso\n"}, NetBoot(iso="http://y/boot.iso")),
        ({"s": "#!ipxe\nsanboot --no-describe || exit 0\n"}, None),
        ({"s": "#!ipxe\nchain t || goto on\nboot\n:on\nexit 0\n"}, None),
        ({"s": "#!ipxe\nchain t\n", "t": "#!ipxe\nkernel k\nboot\n", "k": ""}, NetBoot("http://x/k")),
        ({"s": "#!ipxe\niseq 1 2 && goto a ||\nsanboot http://y/b\n:a\nexit\n"}, NetBoot(iso="http://y/b")),
    ],
)
async def test_scripts_end_in_what_they_boot(files: dict[str, str], boots: NetBoot | None) -> None:
    found = await network_boot(
        "http://x/s",
        macs=["52:54:00:00:00:01"],
        load=loads({f"http://x/{name}": text for name, text in files.items()}),
    )
    assert found == boots


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#!ipxe\n:a\ngoto a\n", "does not come to an end"),
        ("#!ipxe\ngoto nowhere\n", "there is no such label"),
        ("#!ipxe\nchain s\n", "without an end"),
        ("#!ipxe\npoweroff\n", "found nothing to boot"),
        ("<html>", "no iPXE script"),
    ],
)
async def test_scripts_that_boot_nothing_say_so(text: str, words: str) -> None:
    with pytest.raises(BootFailure, match=words):
        await network_boot("http://x/s", macs=["52:54:00:00:00:01"], load=loads({"http://x/s": text}))


async def test_the_live_medium_of_the_lab_is_bootable_and_knows_no_agent() -> None:
    found: Any = read_medium(io.BytesIO(live_iso()))
    assert (found.bootable, found.for_agent) == (True, False)
