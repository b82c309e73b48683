"""Reading firmware: the settings and versions that Ironic has written down.

Ironic reads them from the BMC when the host is taken under management, and before and after everything that may change them;
here only its notes are read, so nothing is asked of the machine. A machine that tells nothing, or a driver that cannot ask,
has an empty report. Values of settings that are passwords are left out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, get_args

from ingot.api.firmwareschema import AttributeType, SettingSchema
from ingot.provisioner import Component, FirmwareReport, HostRef, NotRegistered, Ready
from ingot.provisioner.ironic.errors import BadRequest, NotFound
from ingot.provisioner.ironic.inventory import Vendor
from ingot.provisioner.ironic.model import BiosSetting, FirmwareComponent
from ingot.provisioner.ironic.nodes import Nodes

T = TypeVar("T")

_TYPES: dict[str, AttributeType] = {name: name for name in get_args(AttributeType)}


async def firmware_settings(nodes: Nodes, host: HostRef) -> Ready[FirmwareReport] | NotRegistered:
    found = await _told(nodes, host, nodes.client.bios_settings)
    if isinstance(found, NotRegistered):
        return found
    # Nobody asks for the maker of settings that are not there.
    node = await nodes.fresh(host) if found else None
    return Ready(report(found, await nodes.vendor(node) if node is not None else Vendor()))


async def firmware_components(nodes: Nodes, host: HostRef) -> Ready[tuple[Component, ...]] | NotRegistered:
    found = await _told(nodes, host, nodes.client.firmware)
    if isinstance(found, NotRegistered):
        return found
    return Ready(tuple(component(one) for one in found if one.component))


def report(settings: list[BiosSetting], vendor: Vendor) -> FirmwareReport:
    """Settings in the words of the API."""
    return FirmwareReport(
        settings={one.name: _value(one) for one in settings if one.name and one.attribute_type != "Password"},
        schema={one.name: _schema(one) for one in settings if one.name},
        vendor=vendor.manufacturer or "",
        model=vendor.product_name or "",
    )


def _value(setting: BiosSetting) -> str:
    """As a user writes it. Ironic's database makes numbers of what is true or false."""
    value = setting.value or ""
    if setting.attribute_type == "Boolean":
        return {"0": "false", "1": "true", "False": "false", "True": "true"}.get(value, value)
    return value


def _schema(setting: BiosSetting) -> SettingSchema:
    return SettingSchema(
        allowable_values=setting.allowable_values or [],
        attribute_type=_TYPES.get(setting.attribute_type or ""),
        lower_bound=setting.lower_bound,
        max_length=setting.max_length,
        min_length=setting.min_length,
        read_only=setting.read_only,
        unique=setting.unique,
        upper_bound=setting.upper_bound,
    )


def component(found: FirmwareComponent) -> Component:
    return Component(
        name=found.component,
        initial_version=found.initial_version or "",
        current_version=found.current_version or "",
        last_version_flashed=found.last_version_flashed or "",
    )


async def _told(
    nodes: Nodes, host: HostRef, read: Callable[[str], Awaitable[list[T]]]
) -> list[T] | NotRegistered:
    try:
        return await read(nodes.ident(host))
    except (NotFound, BadRequest):
        # Either the node is gone, or its driver has no such thing to tell.
        return [] if await nodes.fresh(host) is not None else NotRegistered(nodes.gone(host))
