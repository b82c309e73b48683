"""The Lease object, and what stands in it about an election.

Written as client-go writes it, so that its contenders and ours exclude each other and `kubectl get lease` shows who leads. The
times in it are for people: they are written, never judged by, because no two machines agree on what time it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from ingot.api.meta import Model, Object, Resource

NOBODY: Final = ""


class LeaseSpec(Model):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Object):
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


LEASES: Final = Resource(group="coordination.k8s.io", version="v1", kind="Lease", plural="leases", type=Lease)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Who leads, for how many seconds after each renewal, since when, and how often that changed."""

    holder: str
    duration: int
    acquired: str
    renewed: str
    transitions: int = 0

    @classmethod
    def of(cls, lease: Lease) -> Record:
        spec = lease.spec
        return cls(
            holder=spec.holder_identity or NOBODY,
            duration=spec.lease_duration_seconds or 0,
            acquired=spec.acquire_time or "",
            renewed=spec.renew_time or "",
            transitions=spec.lease_transitions or 0,
        )

    def spec(self) -> dict[str, Any]:
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration,
            "acquireTime": self.acquired,
            "renewTime": self.renewed,
            "leaseTransitions": self.transitions,
        }


def micro_time() -> str:
    """Now, as the API reads such a time: always with six digits after the point, also when they are zero."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
