"""The floor: a bare client that knows what to write, decides nothing, and waits as long as the machines do.

For every host it sees it issues as many writes of the same kinds and sizes as Ingot does until the host is available, in an order
that a controller could choose, with the same waits in between. It reads nothing, checks nothing, and survives nothing.
`python bench/floor_of_hosts.py KUBECONFIG NAMESPACE COUNT` runs it as a process of its own until all hosts are done.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import EVENTS, SECRETS
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.hostfirmwaresettings import HOST_FIRMWARE_SETTINGS
from ingot.api.meta import Key, now
from ingot.api.wire import wire
from ingot.kube import Client, Informer

REGISTER, INSPECT = 5.0, 2.0
AT_ONCE = 32


class Floor:
    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def one(self, host: BareMetalHost) -> None:
        key = host.key
        owner = {
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": key.name, "uid": host.metadata.uid,
        }  # fmt: skip
        async with self._turn:
            await self._patch(
                BARE_METAL_HOSTS, key, {"metadata": {"finalizers": ["baremetalhost.metal3.io"]}}
            )
            secret = {
                "labels": {"environment.metal3.io": "baremetal"},
                "ownerReferences": [owner],
                "finalizers": ["baremetalhost.metal3.io/secret"],
            }
            await self._patch(SECRETS, Key(key.namespace, f"{key.name}-bmc"), {"metadata": secret})
            await self._status(key, "registering", {})
        await asyncio.sleep(REGISTER)
        async with self._turn:
            made = {"metadata": {"name": key.name, "ownerReferences": [owner]}, "spec": {"settings": {}}}
            await self._client.create(HOST_FIRMWARE_SETTINGS, made, namespace=key.namespace)
            settings = {f"Setting{number}": "Enabled" for number in range(12)}
            conditions = [_condition(kind, "False") for kind in ("ChangeDetected", "Valid")]
            body = {"status": {"settings": settings, "conditions": conditions, "lastUpdated": wire(now())}}
            await self._patch(HOST_FIRMWARE_SETTINGS, key, body, "status")
            await self._status(key, "inspecting", {})
            for reason in ("Registered", "BMCAccessValidated", "InspectionStarted"):
                await self._event(host, reason)
        await asyncio.sleep(INSPECT)
        async with self._turn:
            hardware = inventory(key.name)
            made = {
                "metadata": {"name": key.name, "ownerReferences": [owner]},
                "spec": {"hardware": hardware},
            }
            await self._client.create(HARDWARE_DATA, made, namespace=key.namespace)
            await self._patch(BARE_METAL_HOSTS, key, {"spec": {"architecture": "x86_64"}})
            await self._status(key, "available", {"hardware": hardware})
            await self._event(host, "InspectionComplete")

    async def _patch(self, kind: Any, key: Key, body: Any, part: str = "") -> None:
        await self._client.patch(kind, key, body, subresource=part)

    async def _status(self, key: Key, state: str, more: dict[str, Any]) -> None:
        kinds = ("Manageable", "AvailableForProvisioning", "Provisioned", "Ready", "Progressing", "Healthy")
        status = {
            "conditions": [_condition(kind, "True") for kind in kinds],
            "errorCount": 0, "errorMessage": "", "provisioningFailCount": 0, "operationalStatus": "OK",
            "poweredOn": True, "hardwareProfile": "unknown", "lastUpdated": wire(now()),
            "provisioning": {"ID": "1be26c0b-03f2-4d2e-ae87-c02d7f33c781", "state": state, "image": {"url": ""}},
        }  # fmt: skip
        await self._patch(BARE_METAL_HOSTS, key, {"status": status | more}, "status")

    async def _event(self, host: BareMetalHost, reason: str) -> None:
        body = {
            "metadata": {"name": f"{host.metadata.name}.{reason.lower()}"}, "reason": reason, "type": "Normal", "count": 1,
            "message": "a sentence of the usual length", "firstTimestamp": wire(now()), "lastTimestamp": wire(now()),
            "source": {"component": "floor"},
            "involvedObject": {"kind": "BareMetalHost", "apiVersion": "metal3.io/v1alpha1", "name": host.metadata.name,
                               "namespace": self._namespace, "uid": host.metadata.uid},
        }  # fmt: skip
        await self._client.create(EVENTS, body, namespace=self._namespace)


def _condition(kind: str, status: str) -> dict[str, Any]:
    return {
        "type": kind, "status": status, "reason": "Because", "message": "a sentence of the usual length",
        "lastTransitionTime": wire(now()), "observedGeneration": 1,
    }  # fmt: skip


def inventory(name: str) -> dict[str, Any]:
    """As much as the demo's small machines report."""
    return {
        "hostname": name, "ramMebibytes": 262144,
        "cpu": {"arch": "x86_64", "model": "a model", "count": 96, "clockMegahertz": 3400},
        "nics": [{"name": f"eno{at}", "mac": f"52:54:00:00:00:{at:02x}", "ip": f"192.0.2.{at}"} for at in (1, 2)],
        "storage": [{"name": f"/dev/disk/by-path/pci-0000:65:00.{at}-nvme-1", "sizeBytes": 960197124096} for at in (0, 1)],
        "systemVendor": {"manufacturer": "a maker", "productName": "a server", "serialNumber": "1234567"},
        "firmware": {"bios": {"date": "03/14/2026", "vendor": "a maker", "version": "2.18.1"}},
    }  # fmt: skip


async def main(kubeconfig: str, namespace: str, count: int) -> None:
    async with Client.from_kubeconfig(kubeconfig) as client:
        floor, hosts = Floor(client, namespace), Informer(client, BARE_METAL_HOSTS, namespace=namespace)
        seen: set[Key] = set()
        async with asyncio.TaskGroup() as tasks:

            def changed(change: Any) -> None:
                if change.new is not None and change.key not in seen:
                    seen.add(change.key)
                    tasks.create_task(floor.one(change.new))
                    if len(seen) == count:
                        watching.cancel()

            hosts.subscribe(changed)
            watching = asyncio.create_task(hosts.run())
            print("floor ready", flush=True)
            await asyncio.gather(watching, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
