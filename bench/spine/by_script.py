"""What the bare script is told, and what comes back: the same node, image and config drive that Ingot would ask for."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from typing import Any, Final

from ingot.lab.client import Lab
from ingot.lab.labfile import LabFile, Plate
from ingot.lab.manifests import USER_DATA, network_data
from ingot.trust import Authority
from spine import bare_script
from spine.room import SETTLE, Room
from spine.run import Run, processor_time, running

IMAGE_FORMAT: Final = "qcow2"
PATIENCE: Final = 600.0


async def by_script(room: Room, lab: Lab, plate: Plate) -> Run:
    """The script, as a process of its own, in the place of the operator."""
    ironic = room.leader("ironic")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(bare_script.__file__), stdin=PIPE, stdout=PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            process.stdin.write(json.dumps(order(room, lab.file, [plate])).encode())
            process.stdin.close()
            first = await process.stdout.readline()
            before = processor_time(ironic)
            last = await process.stdout.readline()
            spent = processor_time(ironic) - before
            if await process.wait() != 0:
                raise SystemExit(f"the script failed on {plate.name}; what it says stands above")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    found = json.loads(first) | json.loads(last)
    return Run(
        began=found["began"],
        told=found["told"],
        server=await running(lab, plate.name),
        processor={"script": found["processor"], "Ironic": spent},
    )


def order(room: Room, lab: LabFile, plates: Sequence[Plate], *, to: str = "provisioned") -> dict[str, Any]:
    """All that the script has to know to take these servers to "available" or to "provisioned"."""
    names = ["127.0.0.1", "localhost"]
    username, password = room.account
    certificate = Authority(room.state.ca).issue(room.state.operator, "operator", names)
    return {
        "url": f"{room.ironic.api_url}/v1",
        "ca": str(room.trusted.ca_file),
        "username": username,
        "password": password,
        "push_port": room.ports["operator"],
        "push_cert": str(certificate.cert_file),
        "push_key": str(certificate.key_file),
        "push_token": room.trusted.push_token_file.read_text().strip(),
        "settle": SETTLE,
        "to": to,
        "hosts": [_host(lab, plate) for plate in plates],
    }


def _host(lab: LabFile, plate: Plate) -> dict[str, Any]:
    instance, image = str(uuid.uuid4()), lab.image(IMAGE_FORMAT)
    return {
        "node": _node(lab, plate),
        "mac": plate.macs[0],
        "instance": instance,
        "image": {
            "image_source": image.url,
            "image_disk_format": image.format,
            "image_os_hash_algo": "sha256",
            "image_os_hash_value": image.sha256,
            "capabilities": {},
        },
        "configdrive": _config_drive(plate, instance),
    }


def _node(lab: LabFile, plate: Plate) -> dict[str, Any]:
    return {
        "name": f"default~{plate.name}",
        "driver": "redfish",
        "boot_interface": "redfish-virtual-media",
        "inspect_interface": "agent",
        "driver_info": {
            "redfish_address": f"https://{plate.host}:{plate.bmc_port}",
            "redfish_system_id": f"/redfish/v1/Systems/{plate.system_id}",
            "redfish_username": plate.username,
            "redfish_password": plate.password,
            "deploy_iso": lab.ramdisk_url,
        },
        "properties": {"capabilities": "boot_mode:uefi"},
        "automated_clean": True,
    }


def _config_drive(plate: Plate, instance: str) -> dict[str, Any]:
    named = dict.fromkeys(("metal3-name", "local-hostname", "local_hostname", "name"), plate.name)
    return {
        "meta_data": {"uuid": instance, "metal3-namespace": "default", **named},
        "user_data": USER_DATA.format(name=plate.name),
        "network_data": network_data(plate),
    }
