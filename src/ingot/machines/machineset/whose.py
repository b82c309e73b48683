"""Whose MachineSets are: ours, unless the cluster's Machine API operator keeps them.

Two who keep the same set would each make what the other has not heard of yet. So where that operator is, told by its
ClusterOperator, we stay out of its way. Whether it is there can change while we run, and is asked again now and then.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Literal

from ingot.api.meta import Key, PartialObjectMetadata, Resource
from ingot.kube import Client, Forbidden, NotFound, TooManyRequests, Unavailable

log = logging.getLogger(__name__)

WhoseSets = Literal["auto", "on", "off"]

CLUSTER_OPERATORS: Final = Resource(
    group="config.openshift.io",
    version="v1",
    kind="ClusterOperator",
    plural="clusteroperators",
    type=PartialObjectMetadata,
    namespaced=False,
)
MACHINE_API: Final = Key("", "machine-api")
BELIEVED: Final = 60.0
"""Seconds that an answer counts."""


class Whose:
    def __init__(self, client: Client, mode: WhoseSets) -> None:
        self._client = client
        self._mode = mode
        self._ours: bool | None = None
        self._asked_at = 0.0

    async def ours(self) -> bool:
        """Whether MachineSets are ours to keep. Raises what the API says only if it never answered."""
        if self._mode != "auto":
            return self._mode == "on"
        time = asyncio.get_running_loop().time()
        if self._ours is None or time - self._asked_at >= BELIEVED:
            self._note(await self._ask())
            self._asked_at = time
        return bool(self._ours)

    async def _ask(self) -> bool:
        try:
            await self._client.get(CLUSTER_OPERATORS, MACHINE_API)
        except NotFound:
            # Also where the cluster does not know the kind.
            return True
        except Forbidden as error:
            if self._ours is None:
                log.warning(
                    "MachineSets are left alone, because it cannot be told whether the cluster's Machine API operator keeps "
                    "them: %s. Allow `get clusteroperators.config.openshift.io`, or say --machinesets on or off.",
                    error.message,
                )
            return False
        except (Unavailable, TooManyRequests):
            if self._ours is None:
                raise
            return self._ours
        return False

    def _note(self, ours: bool) -> None:
        if ours != self._ours:
            log.info("MachineSets are %s", "ours to keep" if ours else "left to others")
        self._ours = ours
