"""Hosts as load: a manifest as people write it, and the status that an inspection leaves. `@N@` is the number of the host.

The finished object is about 7 KB, which is what real hosts with two dozen disks and ports have.
"""

from __future__ import annotations

import json
from typing import Any, Final

PATH: Final = "/apis/metal3.io/v1alpha1/namespaces/default/baremetalhosts"
MERGE_PATCH: Final = "application/merge-patch+json"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def manifest(name: str = "h-@N@") -> str:
    return json.dumps(
        {
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "BareMetalHost",
            "metadata": {
                "name": name,
                "labels": {"rack": "rack-17", "role": "worker", "site": "north"},
                "annotations": {"example.com/asset": "asset-@N@", "example.com/owner": "platform team"},
            },
            "spec": {
                "online": True,
                "architecture": "x86_64",
                "bmc": {
                    "address": "redfish-virtualmedia://10.0.0.1/redfish/v1/Systems/@N@",
                    "credentialsName": "bmc-secret-@N@",
                    "disableCertificateVerification": True,
                },
                "bootMACAddress": "00:11:22:33:44:55",
                "automatedCleaningMode": "metadata",
                "rootDeviceHints": {"minSizeGigabytes": 100, "rotational": False},
                "image": {
                    "url": "https://images.example.com/worker.qcow2",
                    "checksum": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                    "checksumType": "sha256",
                    "format": "qcow2",
                },
                "userData": {"name": "user-data", "namespace": "default"},
            },
        }
    )


def status() -> str:
    hardware: dict[str, Any] = {
        "hostname": "h-@N@.example.com",
        "cpu": {"arch": "x86_64", "count": 64, "model": "EPYC 7543", "clockMegahertz": 2800},
        "ramMebibytes": 262144,
        "firmware": {"bios": {"vendor": "Example", "version": "2.1", "date": "01/02/2026"}},
        "systemVendor": {
            "manufacturer": "Example",
            "productName": "R1 (SKU=none)",
            "serialNumber": "serial-@N@",
        },
        "nics": [_port(number) for number in range(24)],
        "storage": [_disk(number) for number in range(20)],
    }
    return json.dumps(
        {
            "status": {
                "operationalStatus": "OK",
                "errorMessage": "",
                "errorCount": 0,
                "poweredOn": True,
                "lastUpdated": "2026-11-16T00:00:00Z",
                "provisioning": {"ID": "node-@N@", "state": "available", "image": {"url": ""}},
                "hardware": hardware,
            }
        }
    )


def change() -> str:
    """What a watcher is told of: one word of the manifest."""
    return json.dumps({"spec": {"description": "change @N@"}})


def _port(number: int) -> dict[str, Any]:
    return {
        "name": f"eth{number}",
        "mac": f"00:00:00:00:00:{number:02x}",
        "model": "0x15b3 0x1017",
        "ip": f"10.1.0.{number}",
        "speedGbps": 25,
        "vlanId": 0,
        "pxe": number == 0,
    }


def _disk(number: int) -> dict[str, Any]:
    return {
        "name": f"/dev/sd{chr(97 + number)}",
        "sizeBytes": 960197124096,
        "serialNumber": f"S5{number:04d}",
        "model": "MZ7LH960HAJR",
        "vendor": "ATA",
        "rotational": False,
        "type": "SSD",
        "wwn": f"0x5002538e0000{number:04d}",
    }
