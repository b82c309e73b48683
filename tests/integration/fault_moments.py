"""The moments of a host's life in which a server misbehaves, and the rows of tables that are made of a fault and a moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest
from ironic_room import Host, Room

from ingot.api.baremetalhost import Annotation
from ingot.api.hostupdatepolicy import HOST_UPDATE_POLICIES
from ingot.lab.faults import Faults


class When(NamedTuple):
    """A moment of a host's life: how it comes to it, what is asked of it then, and where it has arrived when that is done."""

    before: Callable[[Host], Awaitable[object]]
    ask: Callable[[Host], Awaitable[object]]
    error_type: str
    after: Callable[[Host], Awaitable[object]]


async def nothing(_: Host) -> None:
    """A server that no object describes."""


async def runs(host: Host) -> None:
    """Somebody else's system, switched on."""
    await host.create(externallyProvisioned=True)
    await host.reaches("externally provisioned")
    await host.until_power(on=True)


async def is_off(host: Host) -> None:
    """Somebody else's system, switched off."""
    await host.create(externallyProvisioned=True, online=False)
    await host.reaches("externally provisioned")


async def is_available(host: Host) -> None:
    await host.create(inspectionMode="disabled")
    await host.reaches("available")


async def holds_an_image(host: Host) -> None:
    await host.create(inspectionMode="disabled", image=host.image())
    await host.reaches("provisioned")
    await host.until_running()


async def waits_for_service(host: Host) -> None:
    """A system in use whose firmware is to be changed when somebody reboots it."""
    await host.room.create(HOST_UPDATE_POLICIES, host.name, spec={"firmwareUpdates": "onReboot"})
    await holds_an_image(host)
    await host.wants_firmware("bios", "4.0.0")


async def is_serviced(host: Host) -> None:
    await host.until_seen(lambda seen: seen.components.versions.get("bios") == "4.0.0", "serviced")
    await host.until(
        lambda found: found.status.operational_status == "OK" and found.status.powered_on, "well and on"
    )
    await host.until_running()


async def has_a_volume(host: Host) -> None:
    await host.until_well("available")
    await host.until_seen(lambda seen: len(seen.components.volumes) == 1, "with its volume")


async def has_an_array(host: Host) -> None:
    await host.until_well("available")
    await host.until_seen(lambda seen: len(seen.arrays) == 1, "with its array")


HARDWARE_VOLUME = {"level": "1", "sizeGibibytes": 50, "name": "data", "numberOfPhysicalDisks": 2}
SOFTWARE_VOLUME = {"level": "1", "physicalDisks": [{"rotational": True}, {"rotational": True}]}


def updating(component: str) -> When:
    return When(
        is_available,
        lambda host: host.wants_firmware(component, "4.0.0"),
        "preparation error",
        lambda host: host.until_seen(
            lambda seen: seen.components.versions.get(component) == "4.0.0", "updated"
        ),
    )


REGISTERING = When(
    nothing,
    lambda host: host.create(inspectionMode="disabled"),
    "registration error",
    lambda host: host.until_well("available"),
)
INSPECTING = When(
    nothing, lambda host: host.create(), "inspection error", lambda host: host.until_well("available")
)
PROVISIONING = When(
    nothing,
    lambda host: host.create(inspectionMode="disabled", image=host.image()),
    "provisioning error",
    lambda host: host.until_well("provisioned"),
)
CLEANING = When(
    nothing,
    lambda host: host.create(inspectionMode="disabled", image=host.image(), automatedCleaningMode="metadata"),
    "provisioning error",
    lambda host: host.until_well("provisioned"),
)
SWITCHING = When(
    runs,
    lambda host: host.change(online=False),
    "power management error",
    lambda host: host.until_power(on=False),
)
SWITCHING_HARD = When(
    runs,
    lambda host: host.annotate(f"{Annotation.REBOOT}/hold", '{"mode": "hard"}'),
    "power management error",
    lambda host: host.until_power(on=False),
)
SWITCHING_ON = When(
    is_off,
    lambda host: host.change(online=True),
    "power management error",
    lambda host: host.until_power(on=True),
)
UPDATING = updating("bios")
UPDATING_THE_BMC = updating("bmc")
MAKING_VOLUMES = When(
    nothing,
    lambda host: host.create(inspectionMode="disabled", raid={"hardwareRAIDVolumes": [HARDWARE_VOLUME]}),
    "preparation error",
    has_a_volume,
)
MAKING_ARRAYS = When(
    nothing,
    lambda host: host.create(inspectionMode="disabled", raid={"softwareRAIDVolumes": [SOFTWARE_VOLUME]}),
    "preparation error",
    has_an_array,
)
SERVICING = When(
    waits_for_service, lambda host: host.annotate(Annotation.REBOOT), "servicing error", is_serviced
)
SETTING = When(
    is_available,
    lambda host: host.wants_settings(ProcTurboMode="Disabled"),
    "preparation error",
    lambda host: host.until_seen(
        lambda seen: seen.components.bios.get("ProcTurboMode") == "Disabled", "settings"
    ),
)
LETTING_GO = When(
    holds_an_image,
    lambda host: host.change(image=None, automatedCleaningMode="metadata"),
    "provisioning error",
    lambda host: host.until_well("available"),
)


class Row(NamedTuple):
    fault: Faults
    when: When
    reads: str
    vendor: str

    def server(self, room: Room) -> Host:
        return room.server_of(self.vendor) if self.vendor else room.server()


def row(name: str, fault: Faults, when: When, reads: str = "", vendor: str = "") -> object:
    return pytest.param(Row(fault, when, reads, vendor), id=name)
