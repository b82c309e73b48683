"""The floor: a bare client that knows which host is for whom, decides nothing, and only makes the writes of a claim.

For every Machine it sees, in the same order and with as many at once as Ingot has workers: the intention on the Machine, the host
with consumer, image and power in one patch, the provider ID and the state on the Machine; for every HostClaim the finalizer, the
intention in its status, the host, the status. It reads nothing else, checks nothing, and survives nothing.
`python bench/floor_of_claims.py KUBECONFIG machines|claims COUNT` runs it as a process of its own until all are done.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from hosts import fleet
from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.hostclaim import FINALIZER, HOST_CLAIMS, HostClaim
from ingot.api.machine import MACHINES, Annotation, Machine
from ingot.api.meta import Key, now
from ingot.api.wire import wire
from ingot.kube import Client, Informer
from machines.hall import CLAIMED_IMAGE, HOSTS, IMAGE, TENANT

AT_ONCE = 32
UID = "1be26c0b-03f2-4d2e-ae87-c02d7f33c781"


class Floor:
    def __init__(self, client: Client, count: int) -> None:
        self._client = client
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._hosts = iter(fleet.names(count))

    async def machine(self, machine: Machine) -> None:
        async with self._turn:
            host = next(self._hosts)
            named = {Annotation.HOST: f"{HOSTS}/{host}", "ingot.metal3.io/image-source": "provider spec"}
            finalizers = ["machine.machine.openshift.io"]
            meant = {"metadata": {"annotations": named, "finalizers": finalizers}}
            await self._client.patch(MACHINES, machine.key, meant)
            await self._take(
                host,
                "machine.openshift.io/v1beta1",
                "Machine",
                machine.key,
                {"image": IMAGE | {"format": None}},
            )
            linked = {
                "metadata": {"annotations": {Annotation.INSTANCE_STATE: "available"}},
                "spec": {"providerID": f"baremetalhost:///{HOSTS}/{host}/{UID}"},
            }
            await self._client.patch(MACHINES, machine.key, linked)

    async def claim(self, claim: HostClaim) -> None:
        async with self._turn:
            host = next(self._hosts)
            await self._client.patch(HOST_CLAIMS, claim.key, {"metadata": {"finalizers": [FINALIZER]}})
            place = {"namespace": HOSTS, "name": host}
            meant = {"status": {"bareMetalHost": place}}
            await self._client.patch(HOST_CLAIMS, claim.key, meant, subresource="status")
            await self._take(host, "metal3.io/v1alpha1", "HostClaim", claim.key, {"image": CLAIMED_IMAGE})
            kinds = ("Associated", "Synchronized", "Provisioned", "AvailableForProvisioning", "Ready")
            told = {"bareMetalHost": place, "conditions": [_condition(kind) for kind in kinds]}
            await self._client.patch(HOST_CLAIMS, claim.key, {"status": told}, subresource="status")

    async def _take(self, host: str, version: str, kind: str, claimant: Key, more: dict[str, Any]) -> None:
        consumer = {
            "apiVersion": version,
            "kind": kind,
            "name": claimant.name,
            "namespace": claimant.namespace,
        }
        spec = {"consumerRef": consumer, "online": True, **more}
        await self._client.patch(BARE_METAL_HOSTS, Key(HOSTS, host), {"spec": spec})


def _condition(kind: str) -> dict[str, Any]:
    return {
        "type": kind, "status": "True", "reason": "Because", "message": "a sentence of the usual length",
        "lastTransitionTime": wire(now()), "observedGeneration": 1,
    }  # fmt: skip


async def main(kubeconfig: str, kind: str, count: int) -> None:
    async with Client.from_kubeconfig(kubeconfig) as client:
        floor = Floor(client, count)
        claimants: Informer[Any] = (
            Informer(client, MACHINES, namespace=HOSTS)
            if kind == "machines"
            else Informer(client, HOST_CLAIMS, namespace=TENANT)
        )
        serve = floor.machine if kind == "machines" else floor.claim
        seen: set[Key] = set()
        async with asyncio.TaskGroup() as tasks:

            def changed(change: Any) -> None:
                if change.new is not None and change.key not in seen:
                    seen.add(change.key)
                    tasks.create_task(serve(change.new))
                    if len(seen) == count:
                        watching.cancel()

            claimants.subscribe(changed)
            watching = asyncio.create_task(claimants.run())
            print("floor ready", flush=True)
            await asyncio.gather(watching, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
