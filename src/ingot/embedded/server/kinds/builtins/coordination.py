"""Lease: a claim that somebody holds for a time."""

from __future__ import annotations

from typing import Final

from ingot.embedded.server.documents import dig
from ingot.embedded.server.kinds.builtins.fields import fields_of, text
from ingot.embedded.server.kinds.columns import AGE, NAME, Column
from ingot.embedded.server.kinds.kind import Kind

LEASES: Final = Kind(
    group="coordination.k8s.io",
    version="v1",
    kind="Lease",
    plural="leases",
    singular="lease",
    built_in=True,
    schema=fields_of(
        "A claim that somebody holds for a time and has to renew: how one of many is elected.",
        spec=fields_of(
            "The claim.",
            holderIdentity=text("Who holds it."),
            leaseDurationSeconds={
                "type": "integer",
                "format": "int32",
                "description": "How long others have to wait after the last renewal.",
            },
            acquireTime=text("When it was taken.", format="date-time"),
            renewTime=text("When it was last renewed.", format="date-time"),
            leaseTransitions={
                "type": "integer",
                "format": "int32",
                "description": "How often it changed hands.",
            },
            strategy=text("How the holder is chosen where several offer themselves."),
            preferredHolder=text("Who should hold it next."),
        ),
    ),
    columns=(
        NAME,
        Column("Holder", lambda d: dig(d, "spec", "holderIdentity"), description="Who holds it."),
        AGE,
    ),
)
