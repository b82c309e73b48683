"""The system: power, boot source, processors, network interfaces, secure boot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import msgspec

from ingot.lab import hardware
from ingot.lab.machine import ResetType
from ingot.lab.record import Override
from ingot.lab.redfish import events, indicator
from ingot.lab.redfish.answers import GENERAL, Answer, Document, Refusal, collection, link, missing
from ingot.lab.redfish.dispatch import Call, Table
from ingot.lab.redfish.server import BASE, Server

SYSTEM: Final = f"{BASE}/Systems/{{system}}"
HEALTHY: Final = {"State": "Enabled", "Health": "OK"}
RESETS: Final[tuple[str, ...]] = (*get_args(ResetType), "Nmi")
_TARGETS: Final = ("None", "Pxe", "Cd", "Usb", "Hdd", "UefiHttp", "BiosSetup")
_OVERRIDE: Final = {
    "target": "BootSourceOverrideTarget",
    "enabled": "BootSourceOverrideEnabled",
    "mode": "BootSourceOverrideMode",
    "http_boot_uri": "HttpBootUri",
}


def add(table: Table) -> None:
    table.show(f"{BASE}/Systems", lambda call: collection(f"{BASE}/Systems", "Systems", [call.server.system]))
    table.show(SYSTEM, system, tag=lambda call: boot(call.server))
    table.act("GET", SYSTEM, _look)
    table.act("PATCH", SYSTEM, _patch)
    table.act("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", _reset)
    table.show(f"{SYSTEM}/Processors", _processors)
    table.show(f"{SYSTEM}/Processors/{{processor}}", _processor)
    table.show(f"{SYSTEM}/EthernetInterfaces", _interfaces)
    table.show(f"{SYSTEM}/EthernetInterfaces/{{interface}}", _interface)
    table.show(f"{SYSTEM}/SecureBoot", _secure_boot)
    table.act("PATCH", f"{SYSTEM}/SecureBoot", _patch_secure_boot)
    table.act("POST", f"{SYSTEM}/SecureBoot/Actions/SecureBoot.ResetKeys", _reset_keys)


def system(call: Call) -> Document:
    server = call.server
    here, profile, record = server.system, server.profile, server.record
    made = hardware.hardware_of(server.plate)
    document: Document = {
        "@odata.id": here,
        "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
        "Id": server.plate.system_id,
        "UUID": server.plate.system_id,
        "Name": server.plate.name,
        "SystemType": "Physical",
        "Manufacturer": profile.manufacturer,
        "Model": profile.model,
        "SerialNumber": hardware.serial_number(server.plate),
        "SKU": hardware.serial_number(server.plate) if profile.dell else "practice",
        "BiosVersion": record.components.versions.get("bios", profile.bios_version),
        "PowerState": server.power(),
        indicator.PROPERTY: indicator.shown(server, "system"),
        "Status": HEALTHY | dict.fromkeys(("Health", "HealthRollup"), server.health()),
        "MemorySummary": {"TotalSystemMemoryGiB": made.memory_mib // 1024, "Status": HEALTHY},
        "ProcessorSummary": {"Count": made.sockets, "Model": made.cpu_model, "Status": HEALTHY},
        "BootProgress": {"LastState": _progress(server)},
        "Boot": boot(server),
        "Links": {"ManagedBy": [link(server.manager)], "Chassis": [link(server.enclosure)]},
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": f"{here}/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": list(RESETS),
            }
        },
    }
    for name in ("Processors", "EthernetInterfaces", "Storage", "Bios", "SecureBoot"):
        document[name] = link(f"{here}/{name}")
    if profile.media_of_system:
        document["VirtualMedia"] = link(f"{here}/VirtualMedia")
    if profile.dell:
        document["Links"]["Oem"] = {"Dell": {"DellRaidService": link(f"{here}/Oem/Dell/DellRaidService")}}
    return document


def _progress(server: Server) -> str:
    """Ironic waits with BIOS settings until a boot is over, whatever it booted, also when there was nothing to boot."""
    if server.record.power == "Off":
        return "None"
    return "SystemHardwareInitializationComplete" if server.record.booting != "None" else "OSRunning"


def boot(server: Server) -> Document:
    """What a PATCH can change, and with that what the system's ETag covers: a power change must not spoil a PATCH."""
    override = server.record.override
    target: str = override.target
    targets = list(_TARGETS)
    if server.profile.usb_cd:
        targets.append("UsbCd")
        target = "UsbCd" if target == "Cd" else target
    return {
        "BootSourceOverrideEnabled": override.enabled,
        "BootSourceOverrideTarget": target,
        "BootSourceOverrideTarget@Redfish.AllowableValues": targets,
        "BootSourceOverrideMode": override.mode,
        "BootSourceOverrideMode@Redfish.AllowableValues": ["UEFI", "Legacy"],
        "HttpBootUri": override.http_boot_uri or None,
    }


async def _look(call: Call) -> Answer:
    document = system(call)
    if document["PowerState"] == "On":
        call.server.machine.looked_at()
    return Answer(status=200, document=document)


async def _patch(call: Call) -> Answer:
    server, light = call.server, indicator.PROPERTY in call.body
    override = _patched_override(server, call.body) if "Boot" in call.body or not light else None
    if light:
        indicator.switch(server, "system", call.body)
    if override is not None:
        server.record.override = override
        server.chassis.note(f"boot override: {override.target}, {override.enabled}, {override.mode}")
    await server.save()
    return Answer()


def _patched_override(server: Server, body: Mapping[str, Any]) -> Override:
    if server.chassis.acts("fail_boot_device"):
        raise Refusal(500, GENERAL, "The boot source override cannot be set.")
    wanted = body.get("Boot")
    if not isinstance(wanted, dict):
        raise Refusal(
            400,
            "PropertyMissing",
            "A PATCH of the system changes Boot, and that is not given.",
            args=["Boot"],
        )
    _check_vendor(server, wanted)
    try:
        return wanted_override(server.record.override, wanted)
    except msgspec.ValidationError as error:
        raise Refusal(
            400, "PropertyValueNotInList", f"The boot source override is not valid: {error}."
        ) from None


def _check_vendor(server: Server, wanted: Mapping[str, Any]) -> None:
    if server.profile.busy_in_post and server.record.power == "On" and server.record.booting != "None":
        raise Refusal(
            400,
            "iLO.2.30.UnableToModifyDuringSystemPOST",
            "UnableToModifyDuringSystemPOST: the boot source cannot be changed while the server starts.",
        )
    target, enabled, mode = (_OVERRIDE[name] in wanted for name in ("target", "enabled", "mode"))
    if server.profile.whole_override and target and not (enabled and mode):
        raise Refusal(
            400,
            "PropertyMissing",
            "BootSourceOverrideTarget, BootSourceOverrideEnabled and BootSourceOverrideMode must be given together.",
        )
    if server.profile.enabled_with_target and target and not enabled:
        raise Refusal(400, "PropertyMissing", "BootSourceOverrideEnabled must be given with the target.")


def wanted_override(now: Override, wanted: Mapping[str, Any]) -> Override:
    """The override after a PATCH; a `ValidationError` for values that there are not."""
    values = {ours: wanted.get(theirs, getattr(now, ours)) for ours, theirs in _OVERRIDE.items()}
    if values["target"] == "UsbCd":
        values["target"] = "Cd"
    values["http_boot_uri"] = values["http_boot_uri"] or ""
    override = msgspec.convert(values, Override)
    if override.http_boot_uri and not override.http_boot_uri.startswith(("https://", "http://")):
        raise msgspec.ValidationError("HttpBootUri must be an http or https URL")
    return override


async def _reset(call: Call) -> Answer:
    server = call.server
    try:
        kind = msgspec.convert(call.body, _Reset).kind
    except msgspec.ValidationError as error:
        raise Refusal(400, "ActionParameterNotSupported", f"The reset type is not valid: {error}.") from None
    if server.chassis.acts("fail_power"):
        raise Refusal(500, GENERAL, "The power controller does not respond.")
    if kind == "Nmi":
        server.chassis.note("a non-maskable interrupt; what runs on the server does not mind")
        await server.save()
        return Answer()
    if server.chassis.acts("power_stuck"):
        server.chassis.note(f"power: {kind} is taken, and nothing happens")
        return Answer()
    await server.reset(kind)
    events.alert(
        server, "PowerStateChanged", f"The server was told {kind}; its power is {server.record.power}."
    )
    return Answer()


class _Reset(msgspec.Struct, rename={"kind": "ResetType"}):
    kind: ResetType | Literal["Nmi"]


def _processors(call: Call) -> Document:
    path = f"{call.server.system}/Processors"
    sockets = hardware.hardware_of(call.server.plate).sockets
    return collection(path, "Processors", [f"{path}/{number + 1}" for number in range(sockets)])


def _processor(call: Call) -> Document:
    made, number = hardware.hardware_of(call.server.plate), call.ids["processor"]
    if number not in [str(socket + 1) for socket in range(made.sockets)]:
        raise missing(call.path)
    arm = made.architecture == "aarch64"
    return {
        "@odata.id": f"{call.server.system}/Processors/{number}",
        "Id": number,
        "Name": f"Processor {number}",
        "ProcessorType": "CPU",
        "ProcessorArchitecture": "ARM" if arm else "x86",
        "InstructionSet": "ARM-A64" if arm else "x86-64",
        "Model": made.cpu_model,
        "MaxSpeedMHz": made.cpu_mhz,
        "TotalCores": made.cpus // made.sockets,
        "TotalThreads": made.cpus // made.sockets,
        "Status": HEALTHY,
    }


def interface_ids(server: Server) -> list[str]:
    numbers = range(len(server.plate.macs))
    return [f"NIC.Integrated.1-{number + 1}-1" if server.profile.dell else str(number) for number in numbers]


def _interfaces(call: Call) -> Document:
    path = f"{call.server.system}/EthernetInterfaces"
    return collection(path, "Ethernet Interfaces", [f"{path}/{one}" for one in interface_ids(call.server)])


def _interface(call: Call) -> Document:
    ids, wanted = interface_ids(call.server), call.ids["interface"]
    if wanted not in ids:
        raise missing(call.path)
    number = ids.index(wanted)
    return {
        "@odata.id": f"{call.server.system}/EthernetInterfaces/{wanted}",
        "Id": wanted,
        "Name": f"Network interface {number}",
        "MACAddress": call.server.plate.macs[number],
        "PermanentMACAddress": call.server.plate.macs[number],
        "SpeedMbps": hardware.NIC_MBPS,
        "LinkStatus": "LinkUp" if number == 0 else "LinkDown",
        "Status": HEALTHY,
    }


def _secure_boot(call: Call) -> Document:
    server = call.server
    here = f"{server.system}/SecureBoot"
    return {
        "@odata.id": here,
        "Id": "SecureBoot",
        "Name": "Secure Boot",
        "SecureBootEnable": server.record.secure_boot,
        "SecureBootCurrentBoot": "Enabled" if server.parts.secure_boot_now else "Disabled",
        "SecureBootMode": "UserMode" if server.parts.secure_boot_keys else "SetupMode",
        "Actions": {
            "#SecureBoot.ResetKeys": {
                "target": f"{here}/Actions/SecureBoot.ResetKeys",
                "ResetKeysType@Redfish.AllowableValues": list(_KEYS),
            }
        },
    }


_KEYS: Final = {"ResetAllKeysToDefault": True, "DeleteAllKeys": False, "DeletePK": False}
"""What each reset leaves: whether there are keys."""


async def _patch_secure_boot(call: Call) -> Answer:
    wanted = call.body.get("SecureBootEnable")
    if not isinstance(wanted, bool):
        raise Refusal(400, "PropertyValueTypeError", "SecureBootEnable must be true or false.")
    if wanted and call.server.record.override.mode == "Legacy":
        raise Refusal(400, "PropertyValueConflict", "There is no secure boot in the boot mode Legacy.")
    call.server.record.secure_boot = wanted
    await call.server.save()
    return Answer()


async def _reset_keys(call: Call) -> Answer:
    wanted = call.body.get("ResetKeysType")
    if not isinstance(wanted, str) or wanted not in _KEYS:
        raise Refusal(
            400, "ActionParameterValueNotInList", f"ResetKeysType must be one of {', '.join(_KEYS)}."
        )
    call.server.parts.secure_boot_keys = _KEYS[wanted]
    call.server.chassis.note(f"secure boot keys: {wanted}")
    await call.server.save()
    return Answer()
