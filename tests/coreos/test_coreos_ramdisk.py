"""Hosts' ramdisks, fetched over HTTP and read by others: the real coreos-installer, and the real ironic-python-agent."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from agent_environment import agent_python

from ingot.formats.network import keyfiles_of_nmstate
from ingot.images.ramdisk import AgentSettings, Base, RamdiskMaker, agent_ignition, minimal_of
from ingot.images.region import Region
from ingot.images.server import Image, ImageServer, Names, Shelf
from ingot.services.environment import without_ours
from live_images import BY_NAME, DEFAULT, GENERATIONS, NEWEST, live_image, live_initrd

TOOL = Path(__file__).parents[2] / "tools" / "coreos-installer" / "build"
THEIRS = Path(subprocess.run([TOOL, "--where"], capture_output=True, text=True, check=True).stdout.strip())
with_coreos_installer = pytest.mark.skipif(
    not THEIRS.exists(), reason="coreos-installer is not built; `make test-coreos` builds it"
)

ROOTFS_URL = "https://10.0.0.1:8084/images/abc/rootfs.img"
SETTINGS = AgentSettings(
    api_urls=("https://10.0.0.1:6385", "https://[fd00::1]:6385"),
    ca=b"-----BEGIN CERTIFICATE-----\n",
    ip_options=("ip=dhcp",),
)
KEYFILES = keyfiles_of_nmstate(
    b'{"interfaces": [{"name": "eth0", "type": "ethernet", "state": "up", "ipv4": {"enabled": true, "dhcp": true}}]}'
)
CONFIG = agent_ignition(SETTINGS, hostname="h1", keyfiles=KEYFILES)
NAMES = Names(b"a key for tests, long enough")


def theirs(*arguments: str | Path) -> bytes:
    ended = subprocess.run([THEIRS, *arguments], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout


def base_of(folder: Path, name: str) -> Base:
    path = folder / "live.iso"
    path.write_bytes(live_image(BY_NAME[name]))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return Base.read(Region.whole(path), architecture=BY_NAME[name].architecture, sha256=sha256)


async def fetched(image: Image, path: Path) -> Path:
    """The image as somebody has it who asked a server for it."""
    shelf = Shelf()
    shelf.put(NAMES.name("h1"), image)
    async with (
        ImageServer(shelf, listen=("127.0.0.1", 0), tls=None, ready=lambda: True) as server,
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{server.port}/images/{NAMES.name('h1')}/image") as answer,
    ):
        assert answer.status == 200
        content = await answer.read()
    await asyncio.to_thread(path.write_bytes, content)
    return path


ARGUED = [one.name for one in GENERATIONS if one.arguments_json and one.network]


@with_coreos_installer
@pytest.mark.parametrize("name", ARGUED)
async def test_coreos_installer_reads_the_config_the_network_and_the_arguments_of_an_iso(
    name: str, tmp_path: Path
) -> None:
    maker = RamdiskMaker(base_of(tmp_path, name), SETTINGS, rootfs_url=ROOTFS_URL)
    made = maker.make("iso", hostname="h1", keyfiles=KEYFILES)
    iso = await fetched(made.image, tmp_path / "served.iso")
    assert theirs("iso", "ignition", "show", iso) == CONFIG
    assert theirs("iso", "kargs", "show", iso).decode().strip() == f"{DEFAULT} ip=dhcp"
    (tmp_path / "network").mkdir()
    theirs("iso", "network", "extract", "-C", tmp_path / "network", iso)
    assert {path.name: path.read_bytes() for path in (tmp_path / "network").iterdir()} == KEYFILES
    # What is changed for a host is all that is: reset, it is what was published.
    theirs("iso", "reset", iso)
    assert iso.read_bytes() == live_image(BY_NAME[name])


@with_coreos_installer
async def test_coreos_installer_reads_what_is_behind_an_initial_ram_disk(tmp_path: Path) -> None:
    maker = RamdiskMaker(base_of(tmp_path, NEWEST.name), SETTINGS, rootfs_url=ROOTFS_URL)
    made = maker.make("initrd", hostname="h1", keyfiles=KEYFILES)
    initrd = await fetched(made.image, tmp_path / "initrd.img")
    assert initrd.read_bytes().startswith(live_initrd())
    assert theirs("pxe", "ignition", "unwrap", initrd) == CONFIG
    (tmp_path / "network").mkdir()
    theirs("pxe", "network", "unwrap", "-C", tmp_path / "network", initrd)
    assert {path.name: path.read_bytes() for path in (tmp_path / "network").iterdir()} == KEYFILES


@with_coreos_installer
async def test_a_minimal_iso_is_the_one_that_coreos_installer_makes_with_our_config_in_it(
    tmp_path: Path,
) -> None:
    base = base_of(tmp_path, NEWEST.name)
    minimal = minimal_of(base, tmp_path / "made")
    maker = RamdiskMaker(
        base, AgentSettings(api_urls=SETTINGS.api_urls), rootfs_url=ROOTFS_URL, minimal=minimal
    )
    made = maker.make("iso", hostname="h1", keyfiles={})
    ours = await fetched(made.image, tmp_path / "served.iso")
    expected = tmp_path / "expected.iso"
    theirs("iso", "extract", "minimal-iso", "--rootfs-url", ROOTFS_URL, base.iso.path, expected)
    assert theirs("iso", "ignition", "show", ours) == agent_ignition(
        maker.settings, hostname="h1", keyfiles={}
    )
    theirs("iso", "ignition", "remove", ours)
    assert ours.read_bytes() == expected.read_bytes()


# The agent


READ = """
import json, sys
from oslo_config import cfg
from oslo_log import log
from ironic_python_agent import config, inspector, utils
log.register_options(cfg.CONF)
cfg.CONF(["--config-dir", sys.argv[1]])
verify, _ = utils.get_ssl_client_options(cfg.CONF)
told = {name: getattr(cfg.CONF, name) for name in sys.argv[2].split()}
print(json.dumps({**told, "verify": verify, "reports_to": inspector._get_urls()}))
"""


@pytest.fixture(scope="module")
def agent_reads(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], dict[str, Any]]:
    """What the agent makes of the file that a config puts where its container looks."""

    def read(ignition: bytes) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("agent")
        files = {file["path"]: file for file in json.loads(ignition)["storage"]["files"]}
        source = files["/etc/ironic-python-agent.conf"]["contents"]["source"]
        content = gzip.decompress(base64.b64decode(source.partition(",")[2]))
        (folder / "ignition.conf").write_bytes(content)
        wanted = "api_url insecure enable_vlan_interfaces collect_lldp agent_token"
        ended = subprocess.run(
            [agent_python(), "-c", READ, folder, wanted],
            capture_output=True,
            text=True,
            check=True,
            env=without_ours(os.environ),
        )
        found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
        return found

    return read


def test_the_agent_calls_whom_it_is_told_and_verifies_it(
    agent_reads: Callable[[bytes], dict[str, Any]],
) -> None:
    told = agent_reads(CONFIG)
    assert told["api_url"] == "https://10.0.0.1:6385,https://[fd00::1]:6385"
    assert told["reports_to"] == [f"{url}/v1/continue_inspection" for url in SETTINGS.api_urls]
    assert told["verify"] == "/etc/ironic-python-agent/ironic.crt"
    assert told["insecure"] is False
    assert told["agent_token"] is None
    assert told["enable_vlan_interfaces"] == ""
    assert told["collect_lldp"] is True


def test_an_agent_without_a_ca_of_its_own_verifies_all_the_same(
    agent_reads: Callable[[bytes], dict[str, Any]],
) -> None:
    told = agent_reads(
        agent_ignition(AgentSettings(api_urls=("https://a.example:1",)), hostname="h1", keyfiles={})
    )
    assert told["verify"] is True
    assert told["enable_vlan_interfaces"] == "all"
