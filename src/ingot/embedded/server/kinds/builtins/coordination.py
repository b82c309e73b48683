"""Lease: a claim that somebody holds for a time."""

from __future__ import annotations

from typing import Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.builtins import rules
from ingot.embedded.server.kinds.builtins.making import built_in
from ingot.embedded.server.kinds.columns import AGE, NAME, Column


def _check(new: Document, old: Document | None) -> list[Cause]:
    spec = new.get("spec") or {}
    found = rules.not_negative(spec.get("leaseTransitions"), "spec.leaseTransitions")
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        found.append(
            cause("Invalid", "spec.leaseDurationSeconds", "must be greater than 0", shown=str(duration))
        )
    return found


LEASES: Final = built_in(
    "coordination.k8s.io",
    "Lease",
    "leases",
    columns=(
        NAME,
        Column("Holder", lambda d: dig(d, "spec", "holderIdentity"), description="Who holds it."),
        AGE,
    ),
    check=_check,
)
