"""The lab's servers as Kubernetes objects: a Secret with the BMC's password and a BareMetalHost each. Pure."""

from __future__ import annotations

import base64
from typing import Any, Final

from ingot.lab.labfile import LabFile, Plate, SampleImage

Manifest = dict[str, Any]
USER_DATA: Final = "#cloud-config\nhostname: {name}\n"


def manifests(
    lab: LabFile, *, namespace: str = "default", provision: int = 0, image_format: str = "qcow2"
) -> list[Manifest]:
    """Secrets and hosts for all servers; the first `provision` of them get the sample image and user data."""
    made: list[Manifest] = []
    for number, plate in enumerate(lab.servers):
        image = lab.image(image_format) if number < provision else None
        made.append(
            _secret(f"{plate.name}-bmc", namespace, {"username": plate.username, "password": plate.password})
        )
        if image is not None:
            user_data = USER_DATA.format(name=plate.name)
            made.append(_secret(f"{plate.name}-user-data", namespace, {"userData": user_data}))
        made.append(_host(plate, namespace, image))
    return made


def _secret(name: str, namespace: str, values: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


def _host(plate: Plate, namespace: str, image: SampleImage | None) -> Manifest:
    spec: dict[str, Any] = {
        "online": True,
        "bootMACAddress": plate.macs[0],
        "bmc": {"address": plate.bmc_address, "credentialsName": f"{plate.name}-bmc"},
    }
    if image is not None:
        spec["image"] = {
            "url": image.url,
            "checksum": image.sha256,
            "checksumType": "sha256",
            "format": image.format,
        }
        spec["userData"] = {"name": f"{plate.name}-user-data", "namespace": namespace}
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {"name": plate.name, "namespace": namespace},
        "spec": spec,
    }
