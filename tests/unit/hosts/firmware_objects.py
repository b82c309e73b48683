"""Reading and asking for firmware in tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from rack import Rack

from ingot.api.firmwareschema import FIRMWARE_SCHEMAS, FirmwareSchema
from ingot.api.hostfirmwarecomponents import HOST_FIRMWARE_COMPONENTS, HostFirmwareComponents
from ingot.api.hostfirmwaresettings import HOST_FIRMWARE_SETTINGS, HostFirmwareSettings
from ingot.api.meta import Condition, Key, Object, Resource
from ingot.kube.watching import Put

T = TypeVar("T", bound=Object)


async def settings_of(rack: Rack, key: Key) -> HostFirmwareSettings:
    return await rack.client.get(HOST_FIRMWARE_SETTINGS, key)


async def components_of(rack: Rack, key: Key) -> HostFirmwareComponents:
    return await rack.client.get(HOST_FIRMWARE_COMPONENTS, key)


async def schemas(rack: Rack) -> list[FirmwareSchema]:
    return list((await rack.client.list(FIRMWARE_SCHEMAS, namespace=rack.namespace)).items)


async def want(rack: Rack, key: Key, settings: Mapping[str, Any]) -> None:
    await rack.client.patch(HOST_FIRMWARE_SETTINGS, key, {"spec": {"settings": settings}})


async def want_updates(rack: Rack, key: Key, *updates: tuple[str, str]) -> None:
    asked = [{"component": component, "url": url} for component, url in updates]
    await rack.client.patch(HOST_FIRMWARE_COMPONENTS, key, {"spec": {"updates": asked}})


def verdict(conditions: list[Condition], kind: str) -> Condition:
    return next(found for found in conditions if found.type == kind)


async def until_settings(
    rack: Rack, key: Key, condition: Callable[[HostFirmwareSettings], bool]
) -> HostFirmwareSettings:
    return await rack.until_object(HOST_FIRMWARE_SETTINGS, key, condition)


async def until_components(
    rack: Rack, key: Key, condition: Callable[[HostFirmwareComponents], bool]
) -> HostFirmwareComponents:
    return await rack.until_object(HOST_FIRMWARE_COMPONENTS, key, condition)


async def writes(rack: Rack, kind: Resource[T], since: str) -> list[T]:
    """Every version of objects of this kind that was written after that version of the API, up to those that are there."""
    there = (await rack.client.list(kind, namespace=rack.namespace)).items
    missing = {item.metadata.resource_version for item in there} - {since}
    news = rack.client.watch(kind, resource_version=since, seconds=30, namespace=rack.namespace)
    written: list[T] = []
    async with aclosing(news) as told:
        while missing:
            item = await anext(told)
            if isinstance(item, Put):
                written.append(item.object)
                missing.discard(item.object.metadata.resource_version)
    return written
