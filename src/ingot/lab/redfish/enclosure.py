"""The chassis: what it is, its network adapters, and its sensors. A server that is off is cool and draws little."""

from __future__ import annotations

from typing import Final

from ingot.lab import hardware
from ingot.lab.redfish import indicator
from ingot.lab.redfish.answers import Answer, Document, collection, link, links, missing
from ingot.lab.redfish.dispatch import Call, Table
from ingot.lab.redfish.server import BASE, Server
from ingot.lab.redfish.system import HEALTHY

CHASSIS: Final = f"{BASE}/Chassis/{{chassis}}"
_ADAPTER: Final = "1"


def add(table: Table) -> None:
    table.show(
        f"{BASE}/Chassis", lambda call: collection(f"{BASE}/Chassis", "Chassis", [call.server.enclosure])
    )
    table.show(CHASSIS, _chassis)
    table.act("PATCH", CHASSIS, _patch)
    table.show(f"{CHASSIS}/Thermal", _thermal)
    table.show(f"{CHASSIS}/Power", _power)
    table.show(f"{CHASSIS}/NetworkAdapters", _adapters)
    table.show(f"{CHASSIS}/NetworkAdapters/{{adapter}}", _adapter)
    table.show(f"{CHASSIS}/NetworkAdapters/{{adapter}}/Ports", _ports)
    table.show(f"{CHASSIS}/NetworkAdapters/{{adapter}}/Ports/{{port}}", _port)


def _chassis(call: Call) -> Document:
    server = call.server
    here = server.enclosure
    return {
        "@odata.id": here,
        "@odata.type": "#Chassis.v1_25_0.Chassis",
        "Id": server.profile.chassis,
        "Name": "Chassis",
        "ChassisType": "RackMount",
        "Manufacturer": server.profile.manufacturer,
        "Model": server.profile.model,
        "SerialNumber": hardware.serial_number(server.plate),
        "UUID": server.plate.system_id,
        "PowerState": server.record.power,
        indicator.PROPERTY: indicator.shown(server, "chassis"),
        "NetworkAdapters": link(f"{here}/NetworkAdapters"),
        "Thermal": link(f"{here}/Thermal"),
        "Power": link(f"{here}/Power"),
        "Links": {"ComputerSystems": [link(server.system)], "ManagedBy": [link(server.manager)]},
        "Status": HEALTHY,
    }


async def _patch(call: Call) -> Answer:
    indicator.switch(call.server, "chassis", call.body)
    await call.server.save()
    return Answer()


def _thermal(call: Call) -> Document:
    here, on = f"{call.server.enclosure}/Thermal", call.server.record.power == "On"
    temperatures = [("Inlet", "Intake", 22.0, 22.0, 42.0), ("CPU 1", "CPU", 24.0, 51.0, 95.0)]
    return {
        "@odata.id": here,
        "@odata.type": "#Thermal.v1_7_1.Thermal",
        "Id": "Thermal",
        "Name": "Thermal",
        "Temperatures": [
            {
                "@odata.id": f"{here}#/Temperatures/{number}",
                "MemberId": str(number),
                "Name": name,
                "SensorNumber": number + 1,
                "PhysicalContext": context,
                "ReadingCelsius": warm if on else cold,
                "UpperThresholdCritical": critical,
                "Status": HEALTHY,
            }
            for number, (name, context, cold, warm, critical) in enumerate(temperatures)
        ],
        "Fans": [
            {
                "@odata.id": f"{here}#/Fans/{number}",
                "MemberId": str(number),
                "Name": f"Fan {number + 1}",
                "PhysicalContext": "SystemBoard",
                "Reading": 4200 if on else 0,
                "ReadingUnits": "RPM",
                "Status": HEALTHY,
            }
            for number in range(2)
        ],
    }


def _power(call: Call) -> Document:
    here, on = f"{call.server.enclosure}/Power", call.server.record.power == "On"
    watts = 180.0 if on else 12.0
    return {
        "@odata.id": here,
        "@odata.type": "#Power.v1_7_1.Power",
        "Id": "Power",
        "Name": "Power",
        "PowerControl": [
            {
                "@odata.id": f"{here}#/PowerControl/0",
                "MemberId": "0",
                "Name": "System Power",
                "PowerConsumedWatts": watts,
                "PowerCapacityWatts": 800.0,
                "Status": HEALTHY,
            }
        ],
        "PowerSupplies": [
            {
                "@odata.id": f"{here}#/PowerSupplies/{number}",
                "MemberId": str(number),
                "Name": f"Power supply {number + 1}",
                "PowerSupplyType": "AC",
                "LineInputVoltage": 230.0,
                "LastPowerOutputWatts": watts / 2,
                "PowerCapacityWatts": 800.0,
                "Manufacturer": call.server.profile.manufacturer,
                "Model": "800W",
                "SerialNumber": f"{hardware.serial_number(call.server.plate)}P{number + 1}",
                "Status": HEALTHY,
            }
            for number in range(2)
        ],
    }


def _adapters(call: Call) -> Document:
    path = f"{call.server.enclosure}/NetworkAdapters"
    return collection(path, "Network Adapters", [f"{path}/{_ADAPTER}"])


def _adapter_path(server: Server) -> str:
    return f"{server.enclosure}/NetworkAdapters/{_ADAPTER}"


def _check(call: Call) -> None:
    if call.ids["adapter"] != _ADAPTER:
        raise missing(call.path)


def _adapter(call: Call) -> Document:
    _check(call)
    server, here = call.server, _adapter_path(call.server)
    ports = [f"{here}/Ports/{number + 1}" for number in range(len(server.plate.macs))]
    return {
        "@odata.id": here,
        "@odata.type": "#NetworkAdapter.v1_11_0.NetworkAdapter",
        "Id": _ADAPTER,
        "Name": "Network Adapter",
        "Manufacturer": server.profile.manufacturer,
        "Model": "Simulated network adapter",
        "SerialNumber": f"{hardware.serial_number(server.plate)}N1",
        "Controllers": [
            {
                "FirmwarePackageVersion": server.parts.versions.get("nic", server.profile.nic_version),
                "Links": {"Ports": links(ports)},
            }
        ],
        "Ports": link(f"{here}/Ports"),
        "Status": HEALTHY,
    }


def _ports(call: Call) -> Document:
    _check(call)
    path = f"{_adapter_path(call.server)}/Ports"
    numbers = range(1, len(call.server.plate.macs) + 1)
    return collection(path, "Ports", [f"{path}/{number}" for number in numbers])


def _port(call: Call) -> Document:
    _check(call)
    macs, port = call.server.plate.macs, call.ids["port"]
    if port not in [str(number + 1) for number in range(len(macs))]:
        raise missing(call.path)
    number = int(port) - 1
    return {
        "@odata.id": f"{_adapter_path(call.server)}/Ports/{port}",
        "@odata.type": "#Port.v1_12_0.Port",
        "Id": port,
        "Name": f"Port {port}",
        "PortId": port,
        "LinkStatus": "LinkUp" if number == 0 else "LinkDown",
        "CurrentSpeedGbps": hardware.NIC_MBPS / 1000,
        "Ethernet": {"AssociatedMACAddresses": [macs[number]]},
        "Status": HEALTHY,
    }
