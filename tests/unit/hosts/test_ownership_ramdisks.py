"""Where the release says where it serves its ramdisks, a host boots none from elsewhere, whoever named it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from rack import Rack

from ingot.api.meta import Key
from ingot.api.preprovisioningimage import PREPROVISIONING_IMAGES, PreprovisioningImageStatus
from ingot.hosts import HostSettings
from ingot.hosts.beside.ramdisk_source import leads_elsewhere

SOURCE = "https://release.example:8084"
OWN = pytest.mark.parametrize(
    "settings", [HostSettings(own_ramdisks=True, ramdisk_source=SOURCE)], ids=["own ramdisks"]
)


@pytest.mark.parametrize(
    ("made", "elsewhere"),
    [
        ({"imageUrl": f"{SOURCE}/images/a/coreos.iso"}, None),
        ({"imageUrl": ""}, None),
        (
            {
                "imageUrl": f"{SOURCE}/images/a/initrd.img",
                "kernelUrl": f"{SOURCE}/images/k",
                "extraKernelParams": f"coreos.live.rootfs_url={SOURCE}/images/r ignition.firstboot ip=dhcp",
            },
            None,
        ),
        ({"imageUrl": "https://evil.example/a.iso"}, "https://evil.example/a.iso"),
        ({"imageUrl": "http://release.example:8084/a.iso"}, "http://release.example:8084/a.iso"),
        ({"imageUrl": f"{SOURCE}.evil.example/a.iso"}, f"{SOURCE}.evil.example/a.iso"),
        ({"imageUrl": f"{SOURCE}@evil.example/a.iso"}, "https://******@evil.example/a.iso"),
        ({"imageUrl": f"{SOURCE}0/a.iso"}, f"{SOURCE}0/a.iso"),
        ({"imageUrl": SOURCE}, SOURCE),
        ({"imageUrl": f"{SOURCE}/a", "kernelUrl": "https://evil.example/k"}, "https://evil.example/k"),
        (
            {"imageUrl": f"{SOURCE}/a", "extraKernelParams": "a b=http://evil.example/r c"},
            "http://evil.example/r",
        ),
        (
            {"imageUrl": f"{SOURCE}/a", "extraKernelParams": f'x="{SOURCE}/r" y=tftp://evil.example/r'},
            "tftp://evil.example/r",
        ),
    ],
)
def test_what_leads_elsewhere_is_found(made: dict[str, str], elsewhere: str | None) -> None:
    status = msgspec.convert(made, PreprovisioningImageStatus)
    assert leads_elsewhere(status, SOURCE) == elsewhere
    assert leads_elsewhere(status, f"{SOURCE}/") == elsewhere
    assert leads_elsewhere(status, "") is None


async def build(rack: Rack, key: Key, url: str) -> None:
    asked = await rack.client.get(PREPROVISIONING_IMAGES, key)
    ready: dict[str, Any] = {
        "type": "Ready",
        "status": "True",
        "reason": "ImageSuccess",
        "message": "",
        "observedGeneration": asked.metadata.generation,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {
        "imageUrl": url,
        "format": "iso",
        "architecture": asked.spec.architecture,
        "conditions": [ready],
    }
    await rack.client.patch(PREPROVISIONING_IMAGES, key, {"status": status}, subresource="status")


@OWN
async def test_a_ramdisk_of_somebody_elses_is_waited_out_and_said(rack: Rack) -> None:
    rack.backend.own_ramdisk_formats = ("iso",)
    key = await rack.host()
    await rack.until(key, lambda host: "waiting for the ramdisk" in str(host.status.conditions))
    await build(rack, key, "https://evil.example/a.iso")
    await rack.until(
        key, lambda host: "it leads to https://evil.example/a.iso" in str(host.status.conditions)
    )
    assert rack.backend.machines[key].inspections == []
    await build(rack, key, f"{SOURCE}/images/a/coreos.iso")
    await rack.until_well(key, "available")


@OWN
async def test_a_host_that_is_available_is_not_told_of_it_either(rack: Rack) -> None:
    rack.backend.own_ramdisk_formats = ("iso",)
    key = await rack.host()
    await rack.until(key, lambda host: "waiting for the ramdisk" in str(host.status.conditions))
    await build(rack, key, f"{SOURCE}/images/a/coreos.iso")
    await rack.until(key, lambda host: host.state == "available" and host.status.powered_on)
    await build(rack, key, "https://evil.example/a.iso")
    rack.backend.tell(key)
    await rack.settle()
    access = rack.backend.machines[key].access
    assert access is not None
    assert access.ramdisk is None or access.ramdisk.url.startswith(f"{SOURCE}/")
