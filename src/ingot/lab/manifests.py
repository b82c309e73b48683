"""The lab's servers as Kubernetes objects: a Secret with the BMC's password and a BareMetalHost each. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from ingot.lab.labfile import LabFile, Plate

Manifest = dict[str, Any]
USER_DATA: Final = "#cloud-config\nhostname: {name}\n"
IGNITION: Final = '{"ignition": {"version": "3.4.0"}}'
"""The user data of a server with CoreOS, which names itself after its host."""


def manifests(
    lab: LabFile,
    *,
    names: Sequence[str] = ("*",),
    count: int | None = None,
    namespace: str = "default",
    provision: int = 0,
    image_format: str = "qcow2",
    image: Manifest | None = None,
    user_data: str = "",
    online: bool = True,
) -> list[Manifest]:
    """Secrets and hosts for the first `count` servers whose name matches one of the patterns.

    The first `provision` of them get an image, user data and network data. `image` is as a BareMetalHost has it; without one it
    is the lab's sample of that format, or CoreOS as the ramdisk brings it. {name} in the user data becomes the server's name.
    """
    text = user_data or (IGNITION if image_format == "coreos" else USER_DATA)
    chosen = [plate for plate in lab.servers if any(fnmatchcase(plate.name, pattern) for pattern in names)]
    made: list[Manifest] = []
    for number, plate in enumerate(chosen[:count]):
        host = _host(plate, namespace, online=online)
        credentials = {"username": plate.username, "password": plate.password}
        made.append(_secret(host["spec"]["bmc"]["credentialsName"], namespace, credentials))
        if number < provision:
            given = {
                "userData": text.replace("{name}", plate.name),
                "networkData": json.dumps(network_data(plate)),
            }
            host["spec"]["image"] = image or _sample(lab, image_format)
            for kind, content in given.items():
                name = f"{plate.name}-{'user' if kind == 'userData' else 'network'}-data"
                made.append(_secret(name, namespace, {kind: content}))
                host["spec"][kind] = {"name": name, "namespace": namespace}
        made.append(host)
    return made


def network_data(plate: Plate) -> Manifest:
    """The first card asks for its address, as OpenStack's network_data.json says it."""
    link, mac = "eth0", plate.macs[0]
    return {
        "links": [{"id": link, "type": "phy", "ethernet_mac_address": mac}],
        "networks": [{"id": "network0", "type": "ipv4_dhcp", "link": link}],
        "services": [],
    }


def _sample(lab: LabFile, image_format: str) -> Manifest:
    if image_format == "coreos":
        return {"url": "", "format": image_format}
    image = lab.image(image_format)
    return {
        "url": image.url,
        "checksum": image.sha256,
        "checksumType": "sha256",
        "format": image.format,
    }


def _secret(name: str, namespace: str, values: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


def _host(plate: Plate, namespace: str, *, online: bool) -> Manifest:
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {"name": plate.name, "namespace": namespace},
        "spec": {
            "online": online,
            "bootMACAddress": plate.macs[0],
            "bmc": {"address": plate.bmc_address, "credentialsName": f"{plate.name}-bmc"},
        },
    }
