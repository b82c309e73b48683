"""The moments of a host's life in which a server misbehaves, and the rows of tables that are made of a fault and a moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest
from ironic_room import Host

from ingot.api.baremetalhost import Annotation
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
UPDATING = When(
    is_available,
    lambda host: host.wants_firmware("bios", "4.0.0"),
    "preparation error",
    lambda host: host.until_seen(lambda seen: seen.components.versions.get("bios") == "4.0.0", "updated"),
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


def row(name: str, fault: Faults, when: When, reads: str = "") -> object:
    return pytest.param(Row(fault, when, reads), id=name)
