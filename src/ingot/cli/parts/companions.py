"""The objects that stand beside a host, as `ingot host show` tells them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ingot.api.bmceventsubscription import BMC_EVENT_SUBSCRIPTIONS, BMCEventSubscription
from ingot.api.dataimage import DATA_IMAGES, DataImage
from ingot.api.hardwaredata import HARDWARE_DATA, HardwareDetails
from ingot.api.hostfirmwarecomponents import HOST_FIRMWARE_COMPONENTS, HostFirmwareComponents
from ingot.api.hostfirmwaresettings import HOST_FIRMWARE_SETTINGS, HostFirmwareSettings
from ingot.api.hostupdatepolicy import HOST_UPDATE_POLICIES, HostUpdatePolicy
from ingot.api.meta import Condition, Object, Resource
from ingot.api.preprovisioningimage import PREPROVISIONING_IMAGES, PreprovisioningImage
from ingot.api.wire import wire
from ingot.kube import Client, NotFound

if TYPE_CHECKING:
    from ingot.api.baremetalhost import BareMetalHost

T = TypeVar("T", bound=Object)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What there is of them."""

    details: HardwareDetails | None = None
    settings: HostFirmwareSettings | None = None
    components: HostFirmwareComponents | None = None
    policy: HostUpdatePolicy | None = None
    data_image: DataImage | None = None
    ramdisk: PreprovisioningImage | None = None
    subscriptions: tuple[BMCEventSubscription, ...] = ()


async def read_companions(client: Client, host: BareMetalHost) -> Beside:
    async def read(kind: Resource[T]) -> T | None:
        try:
            return await client.get(kind, host.key)
        except NotFound:
            return None

    hardware = await read(HARDWARE_DATA)
    listed = await client.list(BMC_EVENT_SUBSCRIPTIONS, namespace=host.metadata.namespace)
    return Beside(
        details=hardware.spec.hardware if hardware is not None else None,
        settings=await read(HOST_FIRMWARE_SETTINGS),
        components=await read(HOST_FIRMWARE_COMPONENTS),
        policy=await read(HOST_UPDATE_POLICIES),
        data_image=await read(DATA_IMAGES),
        ramdisk=await read(PREPROVISIONING_IMAGES),
        subscriptions=tuple(one for one in listed.items if one.spec.host_name == host.metadata.name),
    )


def firmware_lines(beside: Beside) -> list[tuple[str, str]]:
    """Versions of its parts, and the settings that somebody asked for, with what they are now."""
    told = []
    if beside.components is not None:
        status = beside.components.status
        told += [(part.component, part.current_version or part.initial_version) for part in status.components]
        begun = {(update.component, update.url) for update in status.updates}
        told += [
            (
                "update",
                f"{update.component} from {update.url}: {_begun((update.component, update.url) in begun)}",
            )
            for update in beside.components.spec.updates
        ]
        told += _complaints(status.conditions)
    if beside.settings is not None:
        present = beside.settings.present()
        told.append(("settings", f"{len(present)} (kubectl get hfs {beside.settings.metadata.name} -o yaml)"))
        for name, wanted in beside.settings.spec.settings.items():
            now = present.get(name)
            told.append((name, f"{wanted}" if now == str(wanted) else f"{now or 'unknown'}, to be {wanted}"))
        told += _complaints(beside.settings.status.conditions)
    return told


def _begun(begun: bool) -> str:
    return "begun" if begun else "not begun yet"


def _complaints(conditions: list[Condition]) -> list[tuple[str, str]]:
    return [("refused", one.message) for one in conditions if one.type == "Valid" and one.status == "False"]


def companion_lines(beside: Beside) -> list[tuple[str, str]]:
    told = []
    if beside.policy is not None:
        spec = beside.policy.spec
        told.append(
            (
                "HostUpdatePolicy",
                f"settings {spec.firmware_settings or 'onPreparing'}, updates {spec.firmware_updates or 'onPreparing'}",
            )
        )
    if beside.data_image is not None:
        told.append(("DataImage", _data_image(beside.data_image)))
    if beside.ramdisk is not None:
        told.append(("PreprovisioningImage", beside.ramdisk.status.image_url or "is not built yet"))
    for one in beside.subscriptions:
        state = one.status.error or (
            f"subscribed as {one.status.subscription_id}" if one.status.subscription_id else "waits"
        )
        told.append(("BMCEventSubscription", f"{one.metadata.name} to {one.spec.destination}: {state}"))
    return told


def _data_image(image: DataImage) -> str:
    attached = image.status.attached_image.url if image.status.attached_image is not None else ""
    if attached == image.spec.url:
        return f"{attached}, attached"
    trouble = (
        f"; {image.status.error.message}"
        if image.status.error is not None and image.status.error.message
        else ""
    )
    return f"{image.spec.url}, to be attached at the next reboot{trouble}"


def companions_as_data(beside: Beside) -> dict[str, Any]:
    """For `-o json`: each as the API has it, null where there is none."""
    objects: dict[str, Object | None] = {
        "firmwareSettings": beside.settings,
        "firmwareComponents": beside.components,
        "updatePolicy": beside.policy,
        "dataImage": beside.data_image,
        "preprovisioningImage": beside.ramdisk,
    }
    parts: dict[str, Any] = {
        name: wire(found) if found is not None else None for name, found in objects.items()
    }
    return {**parts, "eventSubscriptions": [wire(one) for one in beside.subscriptions]}
