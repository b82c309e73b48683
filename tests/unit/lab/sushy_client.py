"""sushy, the Redfish library that Ironic has, at work on the farm: run by the interpreter of Ironic's environment.

It is the oracle: what it reads and does not choke on is right, whatever our own reading of Redfish is. Reads a list of orders
(`{"url", "username", "password", "ca", "system", "story", "with"}`) from its standard input, tells each story, and prints
what it saw. It imports nothing of ours.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

sushy = importlib.import_module("sushy")
Told = dict[str, Any]


def look(client: Any, system: Any, _: Told) -> Told:
    """Everything that can be read."""
    bios, chassis, manager = system.bios, system.chassis[0], system.managers[0]
    registry = bios.get_attribute_registry()
    service, update = client.get_task_service(), client.get_update_service()
    return {
        "vendor": client.vendor if hasattr(client, "vendor") else None,
        "uuid": system.uuid,
        "manufacturer": system.manufacturer,
        "model": system.model,
        "serial": system.serial_number,
        "power": system.power_state.value,
        "health": system.status.health.value,
        "memory_gib": system.memory_summary.size_gib,
        "boot": {"target": system.boot.target.value, "mode": system.boot.mode.value},
        "resets": sorted(value.value for value in system.get_allowed_reset_system_values()),
        "cpus": sum(one.total_threads for one in system.processors.get_members()),
        "architecture": system.processors.get_members()[0].instruction_set.value,
        "macs": sorted(system.ethernet_interfaces.summary),
        "drives": sorted(system.storage.drives_sizes_bytes),
        "free_drives": [
            drive.identity
            for storage in system.storage.get_members()
            for drive in storage.drives
            if is_free(drive)
        ],
        "raid_types": [
            kind.value for kind in system.storage.get_members()[0].storage_controllers[0].raid_types or []
        ],
        "bios": bios.attributes,
        "pending": bios.pending_attributes,
        "apply_times": [time.value for time in bios.supported_apply_times],
        "registry": {entry.name: entry.attribute_type for entry in registry.registry_entries.attributes},
        "secure_boot": system.secure_boot.enabled,
        "bmc": {"model": manager.model, "version": manager.firmware_version},
        "media": sorted(
            [slot.identity, [kind.value for kind in slot.media_types]] for slot in media_of(system)
        ),
        "nic_firmware": [
            controller.firmware_package_version
            for adapter in chassis.network_adapters.get_members()
            for controller in adapter.controllers
        ],
        "temperatures": [one.reading_celsius for one in chassis.thermal.temperatures],
        "watts": chassis.power.power_supplies[0].last_power_output_watts,
        "expanded_storage": len(system.storage_expanded.get_members()),
        "expanded_chassis": [one.identity for one in system.chassis_expanded],
        "firmware": {one.identity: one.version for one in update.firmware_inventory.get_members()},
        "tasks": len(service.tasks.get_members()),
        "subscriptions": len(client.get_event_service().subscriptions.get_members()),
    }


def is_free(drive: Any) -> bool:
    """sushy takes an empty list of links for a missing one."""
    try:
        return not drive.volumes
    except sushy.exceptions.MissingAttributeError:
        return True


def media_of(system: Any) -> list[Any]:
    """Where Ironic looks: at the system first, then at its manager."""
    try:
        return list(system.virtual_media.get_members())
    except sushy.exceptions.MissingAttributeError:
        return list(system.managers[0].virtual_media.get_members())


def cd_of(system: Any) -> Any:
    return next(slot for slot in media_of(system) if sushy.VIRTUAL_MEDIA_CD in slot.media_types)


def boot(_: Any, system: Any, given: Told) -> Told:
    """A medium goes in, the server is told to boot from it, and the medium comes out."""
    slot = cd_of(system)
    slot.insert_media(given["image"], write_protected=True)
    slot.refresh()
    inserted = [slot.inserted, slot.image]
    target = (
        sushy.BOOT_SOURCE_TARGET_USB_CD
        if sushy.BOOT_SOURCE_TARGET_USB_CD in system.get_allowed_system_boot_source_values()
        else sushy.BOOT_SOURCE_TARGET_CD
    )
    system.set_system_boot_options(
        target, enabled=sushy.BOOT_SOURCE_ENABLED_ONCE, mode=sushy.BOOT_SOURCE_MODE_UEFI
    )
    system.refresh(force=True)
    armed = [system.boot.target.value, system.boot.enabled.value]
    slot.eject_media()
    slot.refresh(force=True)
    return {"inserted": inserted, "armed": armed, "ejected": [slot.inserted, slot.image]}


def http_boot(_: Any, system: Any, given: Told) -> Told:
    system.set_system_boot_options(
        sushy.BOOT_SOURCE_TARGET_UEFI_HTTP,
        enabled=sushy.BOOT_SOURCE_ENABLED_ONCE,
        http_boot_uri=given["image"],
    )
    system.refresh(force=True)
    return {"target": system.boot.target.value, "url": system.boot.http_boot_uri}


def configure(client: Any, system: Any, given: Told) -> Told:
    """BIOS settings and secure boot wait for a boot; a reset of the keys does not."""
    system.bios.set_attributes(given["bios"], apply_time=sushy.APPLY_TIME_ON_RESET)
    system.secure_boot.set_enabled(True)
    system.secure_boot.reset_keys(sushy.SECURE_BOOT_RESET_KEYS_TO_DEFAULT)
    system.refresh(force=True)
    before = [system.bios.attributes, system.bios.pending_attributes]
    system.reset_system(sushy.RESET_ON)
    system = client.get_system(system.path)
    return {
        "before": before,
        "after": [system.bios.attributes, system.bios.pending_attributes],
        "secure": [system.secure_boot.enabled, system.secure_boot.current_boot.value],
    }


def volumes(client: Any, system: Any, given: Told) -> Told:
    """A volume is made of two drives and removed; a controller that wants a boot for it gets one."""
    storage = system.storage.get_members()[0]
    times = storage.volumes.operation_apply_time_support.mapped_supported_values
    at_once = sushy.APPLY_TIME_IMMEDIATE in times
    when = sushy.APPLY_TIME_IMMEDIATE if at_once else sushy.APPLY_TIME_ON_RESET
    drives = [{"@odata.id": f"{storage.path}/Drives/{drive}"} for drive in given["drives"]]
    made = storage.volumes.create(
        {"RAIDType": "RAID1", "Name": "root", "Links": {"Drives": drives}}, apply_time=when
    )
    told: Told = {"answer": type(made).__name__}
    if not at_once:
        told["waits"] = made.check_is_processing
        system.reset_system(sushy.RESET_FORCE_RESTART)
        told["task"] = made.get_task().task_state.value
    storage = client.get_system(system.path).storage.get_members()[0]
    told["volumes"] = [
        [one.name, one.raid_type.value, one.capacity_bytes] for one in storage.volumes.get_members()
    ]
    told["free"] = [drive.identity for drive in storage.drives if is_free(drive)]
    storage.volumes.get_members()[0].delete(apply_time=when)
    if not at_once:
        system.reset_system(sushy.RESET_FORCE_RESTART)
    storage = client.get_system(system.path).storage.get_members()[0]
    told["left"] = len(storage.volumes.get_members())
    return told


def update(client: Any, system: Any, given: Told) -> Told:
    """BIOS firmware: the task waits for a boot, and then it is done."""
    monitor = client.get_update_service().simple_update(given["image"])
    states: list[str] = []
    while not states or states[-1] == "New":
        states.append(monitor.get_task().task_state.value)
    waits = client.get_task_monitor(monitor.task_monitor_uri).is_processing
    system.reset_system(sushy.RESET_FORCE_RESTART)
    task = client.get_task_monitor(monitor.task_monitor_uri).get_task()
    return {
        "waiting": [states[-1], waits],
        "ended": [task.task_state.value, task.percent_complete],
        "version": client.get_system(system.path).bios_version,
    }


def subscribe(client: Any, _: Any, given: Told) -> Told:
    service = client.get_event_service()
    made = service.subscriptions.create(
        {
            "Destination": given["destination"],
            "Protocol": "Redfish",
            "Context": "told",
            "EventTypes": ["Alert"],
            "HttpHeaders": [{"X-Ticket": "7"}],
        }
    )
    service.submit_test_event("1", "2026-01-01T00:00:00Z", "Alert", "A word", [], "Ingot.1.0.Word", "/", "OK")
    return {"destination": made.destination, "context": made.context, "id": made.identity}


def unsubscribe(client: Any, _: Any, __: Told) -> Told:
    service = client.get_event_service()
    for one in service.subscriptions.get_members():
        one.delete()
    service = client.get_event_service()
    return {"left": len(service.subscriptions.get_members())}


def idrac(client: Any, system: Any, _: Told) -> Told:
    """What Ironic's idrac driver asks of an iDRAC."""
    manager = system.managers[0].get_oem_extension("Dell")
    manager.set_virtual_boot_device(sushy.VIRTUAL_MEDIA_CD, persistent=False, system=system)
    armed = client.get_system(system.path).boot
    macs = {one.identity: one.mac_address for one in system.ethernet_interfaces.get_members()}
    told = {
        "armed": [armed.target.value, armed.enabled.value],
        "pxe_macs": manager.get_pxe_port_macs_bios(macs),
        "ready": manager.lifecycle_service.is_realtime_ready(),
        "jobs": [job.job_type for job in manager.job_collection.get_jobs()],
        "unfinished": manager.job_collection.get_unfinished_jobs(),
    }
    manager.job_service.delete_jobs(["JID_CLEARALL"])
    told["cleared"] = len(manager.job_collection.get_jobs())
    told["foreign"] = len(system.get_oem_extension("Dell").clear_foreign_config())
    return told


def small_things(client: Any, system: Any, given: Told) -> Told:
    """Lights, the clock, an interrupt."""
    chassis, manager = system.chassis[0], system.managers[0]
    drive = system.storage.get_members()[0].drives[0]
    for light in (system, chassis, drive):
        light.set_indicator_led(sushy.INDICATOR_LED_BLINKING)
    manager.set_datetime(given["time"], "+00:00")
    system.reset_system(sushy.RESET_NMI)
    system = client.get_system(system.path)
    lights = (system, system.chassis[0], system.storage.get_members()[0].drives[0])
    return {
        "lights": [light.indicator_led.value for light in lights],
        "time": str(system.managers[0].datetime),
        "power": system.power_state.value,
    }


STORIES = (look, boot, http_boot, configure, volumes, update, subscribe, unsubscribe, idrac, small_things)


def main() -> None:
    stories = {story.__name__: story for story in STORIES}
    told = []
    for order in json.load(sys.stdin):
        client = sushy.Sushy(
            order["url"], username=order["username"], password=order["password"], verify=order["ca"]
        )
        system = client.get_system(f"/redfish/v1/Systems/{order['system']}")
        told.append(stories[order["story"]](client, system, order["with"]))
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
