"""The template for network boot, filled in by the real Ironic's own functions, and run by the farm's iPXE."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ingot.lab.ipxe import LoadFailed, NetBoot, network_boot
from ingot.services import ipxe
from ingot.services.environment import ensure

NODE = "0b7f4c1e-93cf-4b6a-8f25-6a0f6f5d2f11"
MACS = ["52:54:00:00:00:01", "52:54:00:00:00:02"]
BOOT = "http://10.0.0.1:6180"
FILES = "https://10.0.0.1:6385/files/secret-key"
COREOS = (
    "fips=1 ignition.firstboot ignition.platform.id=metal "
    "coreos.live.rootfs_url=https://10.0.0.1:8084/images/abc/44.1-rootfs.img"
)

# As `create_pxe_config` and `switch_pxe_config` do it; `boot.ipxe` as `create_ipxe_boot_script`.
IN_IRONIC = """
import json, sys
from ironic.common import utils
from ironic.drivers.modules import deploy_utils
from ironic.conf import CONF
asked = json.load(sys.stdin)
with open(asked["file"], "w") as file:
    file.write(utils.render_template(asked["template"], {"pxe_options": asked["options"], "ROOT": "", "DISK_IDENTIFIER": ""}))
if asked["switch"]:
    deploy_utils.switch_pxe_config(asked["file"], None, "uefi", ipxe_enabled=True, **asked["switch"])
with open(asked["file"]) as file:
    script = file.read()
first = utils.render_template(CONF.pxe.ipxe_boot_script, {"ipxe_for_mac_uri": "pxelinux.cfg/", "ipxe_fallback_script": None})
print(json.dumps([first, script]))
"""


async def booted(folder: Path, arguments: str, **switch: Any) -> tuple[NetBoot | None, list[str], str]:
    """What a machine boots, what it has loaded for it, and the script of the host."""
    template, file = folder / "ipxe_config.template", folder / "config"
    template.write_text(ipxe.TEMPLATE)
    asked = {
        "file": str(file),
        "template": str(template),
        "options": {
            "deployment_aki_path": f"{FILES}/{NODE}/deploy_kernel",
            "deployment_ari_path": f"{FILES}/{NODE}/deploy_ramdisk",
            "initrd_filename": "deploy_ramdisk",
            "pxe_append_params": arguments,
            "ipxe_timeout": 60_000,
        },
        "switch": switch,
    }
    ran = await asyncio.to_thread(
        subprocess.run,
        [str(ensure().python), "-c", IN_IRONIC],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    first, script = json.loads(ran.stdout)
    there = {"boot.ipxe": first, "pxelinux.cfg/52-54-00-00-00-02": script}
    loaded: list[str] = []

    async def load(url: str) -> bytes:
        loaded.append(url)
        assert url.startswith(f"{BOOT}/")
        name = url.removeprefix(f"{BOOT}/")
        if name.startswith("pxelinux.cfg/") and name not in there:
            raise LoadFailed("HTTP 404")
        return there.get(name, "").encode()

    return await network_boot(f"{BOOT}/boot.ipxe", macs=MACS, load=load), loaded, script


async def test_a_usual_ramdisk_is_loaded_with_its_ca_behind_it(tmp_path: Path) -> None:
    boot, loaded, script = await booted(
        tmp_path, "nofb nomodeset vga=normal ipa-api-url=https://10.0.0.1:6385"
    )
    assert boot == NetBoot(
        kernel=f"{BOOT}/{NODE}/deploy_kernel",
        command_line="selinux=0 troubleshoot=0 text nofb nomodeset vga=normal ipa-api-url=https://10.0.0.1:6385 "
        f"BOOTIF={MACS[0]} initrd=deploy_ramdisk initrd=agent-ca.img",
        initrds=(f"{BOOT}/{NODE}/deploy_ramdisk", f"{BOOT}/agent-ca.img"),
    )
    assert loaded[:3] == [
        f"{BOOT}/boot.ipxe",
        f"{BOOT}/pxelinux.cfg/52-54-00-00-00-01",
        f"{BOOT}/pxelinux.cfg/52-54-00-00-00-02",
    ]
    assert "secret-key" not in script, "the path of the published files is for TLS"


async def test_coreos_gets_its_own_arguments_and_no_others(tmp_path: Path) -> None:
    boot, _, script = await booted(tmp_path, COREOS)
    assert boot == NetBoot(
        kernel=f"{BOOT}/{NODE}/deploy_kernel",
        command_line=f"{COREOS} BOOTIF={MACS[0]} initrd=deploy_ramdisk",
        initrds=(f"{BOOT}/{NODE}/deploy_ramdisk",),
    )
    assert "selinux" not in script
    assert "coreos.liveiso" not in script


@pytest.mark.parametrize("arguments", ["nofb", COREOS])
async def test_a_host_with_a_system_is_sent_to_its_disk(tmp_path: Path, arguments: str) -> None:
    boot, loaded, _ = await booted(tmp_path, arguments, is_whole_disk_image=True)
    assert boot is None, "the firmware goes on with the disk"
    assert not [url for url in loaded if "deploy_" in url]
