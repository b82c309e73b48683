"""Which hosts there are, for a back end that looks for records that nobody owns.

From memory, and only once that is complete. Before a record is dropped the API is read afresh: a host that has its name, or is
registered as it, keeps it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.meta import Key
from ingot.hosts import guard
from ingot.kube import Client, Informer, KubeError, NotFound
from ingot.provisioner import Act, KnownHost, Permit, Refusal, Sight


class HostCensus:
    def __init__(self, client: Client, hosts: Informer[BareMetalHost], *, namespace: str = "") -> None:
        self._client, self._hosts, self._namespace = client, hosts, namespace

    def hosts(self) -> Sequence[KnownHost] | None:
        if not self._hosts.version:
            return None
        return [_known(host) for host in self._hosts.items()]

    def covers(self, namespace: str) -> bool:
        return self._namespace in ("", namespace)

    def permit(self, key: Key) -> Permit:
        async def permit(act: Act, sight: Sight) -> Refusal | None:
            owner = next(
                (host for host in self._hosts.items() if host.status.provisioning.id == sight.backend_id),
                None,
            )
            try:
                with contextlib.suppress(NotFound):
                    owner = await self._client.get(BARE_METAL_HOSTS, key)
                self._client.check_leave()
            except KubeError as error:
                # Whoever looks for records has all the time in the world, and must not end by this.
                return Refusal(f"not doing {act.value}: the API cannot be asked: {error}")
            if owner is not None:
                return Refusal(f"not doing {act.value}: the record is that of {owner.key}")
            return guard.refusal_for_leftover([], uid="", act=act, sight=sight)

        return permit


def _known(host: BareMetalHost) -> KnownHost:
    return KnownHost(
        key=host.key,
        uid=host.metadata.uid,
        backend_id=host.status.provisioning.id,
        boot_mac=host.spec.boot_mac_address,
        address=host.spec.bmc.address,
    )
