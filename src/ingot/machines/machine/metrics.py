"""What is counted of Machines."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Histogram

CLAIMS: Final = Counter(
    "ingot_machine_claims",
    "Hosts that Machines asked for, by what came of it: claimed, conflict (somebody wrote the host first), refused (by a rule).",
    ["result"],
)
CLAIM_TIME: Final = Histogram(
    "ingot_machine_claim_seconds",
    "Time from the creation of a Machine until it has a host.",
    buckets=(1, 2, 5, 10, 30, 60, 300, 1800, 7200),
)
