"""Servers of every vendor on real Ironic: each BMC has its own way with media, boot sources and volumes."""

from __future__ import annotations

from typing import Any

import pytest
from ironic_room import VENDORS, Room
from stories import story

BY_TASK_OR_AT_A_BOOT = "dell", "hpe"
"""Those whose volumes are not there at once."""
VOLUME = {"level": "1", "sizeGibibytes": 50, "name": "data", "numberOfPhysicalDisks": 2}


@pytest.mark.parametrize("vendor", VENDORS)
@story
async def test_a_server_of_every_vendor_is_provisioned_and_given_back(room: Room, vendor: str) -> None:
    host = room.server_of(vendor)
    volumes: dict[str, Any] = {}
    if vendor in BY_TASK_OR_AT_A_BOOT:
        volumes = {"raid": {"hardwareRAIDVolumes": [VOLUME]}}
    await host.create(inspectionMode="disabled", image=host.image(), **volumes)
    await host.reaches("provisioned")
    seen = await host.until_running()
    assert (seen.profile, seen.deployments, seen.media) == (vendor, 1, {})
    assert len(seen.components.volumes) == len(volumes)
    node = await host.node()
    assert node is not None
    assert node.driver == ("idrac" if vendor == "dell" else "redfish")
    await host.change(image=None)
    await host.reaches("available")
    assert not await host.troubles()
