"""The resources that a BMC shows: pure functions from plate and record to JSON. Ironic decides which fields they have."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from ingot.lab import hardware
from ingot.lab.labfile import Plate
from ingot.lab.record import Record

Document = dict[str, Any]

BASE: Final = "/redfish/v1"
MANAGER: Final = f"{BASE}/Managers/1"
CHASSIS: Final = f"{BASE}/Chassis/1"
DRIVES: Final = {"Cd": ["CD", "DVD"], "Usb": ["USBStick"]}
RESETS: Final = (
    "On",
    "ForceOn",
    "ForceOff",
    "GracefulShutdown",
    "ForceRestart",
    "GracefulRestart",
    "PowerCycle",
    "PushPowerButton",
)
HEALTHY: Final = {"State": "Enabled", "Health": "OK"}


def root(plate: Plate) -> Document:
    return {
        "@odata.id": f"{BASE}/",
        "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot",
        "Id": "RootService",
        "Name": "Root Service",
        "RedfishVersion": "1.15.0",
        "UUID": plate.system_id,
        "Vendor": hardware.MANUFACTURER,
        "Systems": _link(f"{BASE}/Systems"),
        "Managers": _link(f"{BASE}/Managers"),
        "Chassis": _link(f"{BASE}/Chassis"),
        "SessionService": _link(f"{BASE}/SessionService"),
        "Links": {"Sessions": _link(f"{BASE}/SessionService/Sessions")},
    }


def session_service() -> Document:
    return {
        "@odata.id": f"{BASE}/SessionService",
        "Id": "SessionService",
        "Name": "Session Service",
        "ServiceEnabled": True,
        "Sessions": _link(f"{BASE}/SessionService/Sessions"),
    }


def collection(path: str, name: str, members: list[str]) -> Document:
    return {
        "@odata.id": path,
        "Name": name,
        "Members@odata.count": len(members),
        "Members": [_link(member) for member in members],
    }


def system_path(plate: Plate) -> str:
    return f"{BASE}/Systems/{plate.system_id}"


def system(plate: Plate, record: Record) -> Document:
    here = system_path(plate)
    return {
        "@odata.id": here,
        "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
        "Id": plate.system_id,
        "UUID": plate.system_id,
        "Name": plate.name,
        "SystemType": "Physical",
        "Manufacturer": hardware.MANUFACTURER,
        "Model": hardware.MODEL,
        "SerialNumber": hardware.serial_number(plate),
        "SKU": "practice",
        "BiosVersion": hardware.BIOS_VERSION,
        "PowerState": record.power,
        "Status": HEALTHY | {"HealthRollup": "OK"},
        "MemorySummary": {"TotalSystemMemoryGiB": hardware.MEMORY_MIB // 1024, "Status": HEALTHY},
        "ProcessorSummary": {"Count": 1, "Model": hardware.CPU_MODEL, "Status": HEALTHY},
        "Boot": boot(record),
        "Processors": _link(f"{here}/Processors"),
        "EthernetInterfaces": _link(f"{here}/EthernetInterfaces"),
        "Storage": _link(f"{here}/Storage"),
        "SecureBoot": _link(f"{here}/SecureBoot"),
        "Links": {"ManagedBy": [_link(MANAGER)], "Chassis": [_link(CHASSIS)]},
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": f"{here}/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": list(RESETS),
            }
        },
    }


def boot(record: Record) -> Document:
    return {
        "BootSourceOverrideEnabled": record.override.enabled,
        "BootSourceOverrideTarget": record.override.target,
        "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Cd", "Hdd"],
        "BootSourceOverrideMode": record.override.mode,
        "BootSourceOverrideMode@Redfish.AllowableValues": ["UEFI", "Legacy"],
        "HttpBootUri": None,
    }


def etag(record: Record) -> str:
    """Changes with what a PATCH can change, and with nothing else: a power change must not spoil a PATCH under way."""
    return '"' + hashlib.sha256(json.dumps(boot(record)).encode()).hexdigest()[:16] + '"'


def secure_boot(plate: Plate, record: Record) -> Document:
    state = "Enabled" if record.secure_boot else "Disabled"
    return {
        "@odata.id": f"{system_path(plate)}/SecureBoot",
        "Id": "SecureBoot",
        "Name": "Secure Boot",
        "SecureBootEnable": record.secure_boot,
        "SecureBootCurrentBoot": state,
        "SecureBootMode": "UserMode",
    }


def processor(plate: Plate) -> Document:
    return {
        "@odata.id": f"{system_path(plate)}/Processors/1",
        "Id": "1",
        "Name": "Processor",
        "ProcessorType": "CPU",
        "ProcessorArchitecture": "x86",
        "InstructionSet": "x86-64",
        "Model": hardware.CPU_MODEL,
        "MaxSpeedMHz": hardware.CPU_MHZ,
        "TotalCores": hardware.CPUS,
        "TotalThreads": hardware.CPUS,
        "Status": HEALTHY,
    }


def ethernet_interface(plate: Plate, number: int) -> Document:
    return {
        "@odata.id": f"{system_path(plate)}/EthernetInterfaces/{number}",
        "Id": str(number),
        "Name": f"Network interface {number}",
        "MACAddress": plate.macs[number],
        "PermanentMACAddress": plate.macs[number],
        "SpeedMbps": hardware.NIC_MBPS,
        "LinkStatus": "LinkUp" if number == 0 else "LinkDown",
        "Status": HEALTHY,
    }


def storage(plate: Plate) -> Document:
    here = f"{system_path(plate)}/Storage/1"
    return {
        "@odata.id": here,
        "Id": "1",
        "Name": "Storage",
        "Drives": [_link(f"{here}/Drives/1")],
        "StorageControllers": [
            {
                "@odata.id": f"{here}#/StorageControllers/0",
                "MemberId": "0",
                "Name": "Controller",
                "Status": HEALTHY,
            }
        ],
        "Status": HEALTHY,
    }


def drive(plate: Plate) -> Document:
    return {
        "@odata.id": f"{system_path(plate)}/Storage/1/Drives/1",
        "Id": "1",
        "Name": "Simulated disk",
        "CapacityBytes": hardware.DISK_BYTES,
        "MediaType": "SSD",
        "Protocol": "SATA",
        "Manufacturer": hardware.MANUFACTURER,
        "Model": "Simulated disk",
        "SerialNumber": hardware.serial_number(plate),
        "Status": HEALTHY,
    }


def manager(plate: Plate) -> Document:
    return {
        "@odata.id": MANAGER,
        "Id": "1",
        "Name": "Manager",
        "ManagerType": "BMC",
        "FirmwareVersion": hardware.BMC_VERSION,
        "Model": "Practice BMC",
        "UUID": plate.system_id,
        "VirtualMedia": _link(f"{MANAGER}/VirtualMedia"),
        "Links": {"ManagerForServers": [_link(system_path(plate))]},
        "Status": HEALTHY,
    }


def chassis(plate: Plate) -> Document:
    return {
        "@odata.id": CHASSIS,
        "Id": "1",
        "Name": "Chassis",
        "ChassisType": "RackMount",
        "UUID": plate.system_id,
        "Links": {"ComputerSystems": [_link(system_path(plate))], "ManagedBy": [_link(MANAGER)]},
        "Status": HEALTHY,
    }


def virtual_media(record: Record, slot: str) -> Document:
    here = f"{MANAGER}/VirtualMedia/{slot}"
    image = record.media.get(slot)
    return {
        "@odata.id": here,
        "Id": slot,
        "Name": f"Virtual {slot}",
        "MediaTypes": DRIVES[slot],
        "Inserted": image is not None,
        "Image": image,
        "WriteProtected": True,
        "ConnectedVia": "URI" if image else "NotConnected",
        "Actions": {
            "#VirtualMedia.InsertMedia": {"target": f"{here}/Actions/VirtualMedia.InsertMedia"},
            "#VirtualMedia.EjectMedia": {"target": f"{here}/Actions/VirtualMedia.EjectMedia"},
        },
    }


def error(code: str, message: str, *, resolution: str = "None") -> Document:
    """An error in Redfish's form. Ironic shows the message of the extended info to its user."""
    info = {"MessageId": code, "Message": message, "Severity": "Critical", "Resolution": resolution}
    return {"error": {"code": code, "message": message, "@Message.ExtendedInfo": [info]}}


def _link(path: str) -> Document:
    return {"@odata.id": path}
