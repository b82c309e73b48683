"""The API server's own log of what it was asked to write: by whom, to what, and how it answered.

A claim on a host is a patch of the host, so what is asked of hosts is logged with its body: it says for whom it was.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from machines.identities import account

WRITES: Final = ["create", "update", "patch", "delete", "deletecollection"]
POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "resources": [{"group": "coordination.k8s.io"}]},
        {
            "level": "Request",
            "verbs": ["patch"],
            "resources": [{"group": "metal3.io", "resources": ["baremetalhosts"]}],
        },
        {"level": "Metadata", "verbs": WRITES},
        {"level": "None"},
    ],
}


class Log:
    """Where an API server writes it."""

    def __init__(self, folder: Path) -> None:
        self._policy, self._log = folder / "audit-policy.json", folder / "audit.log"
        self._policy.write_text(json.dumps(POLICY))

    @property
    def options(self) -> list[str]:
        """For the API server. It writes down what it did before it answers."""
        return [f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}"]

    @property
    def size(self) -> int:
        return self._log.stat().st_size if self._log.exists() else 0

    def since(self, size: int, who: str, *, hosts_too: bool = False) -> Asked:
        """What this account asked since the log had that size; where it looks after hosts too, only what a claim is made of."""
        found = Asked()
        with self._log.open("rb") as log:
            log.seek(size)
            for line in log:
                entry = json.loads(line)
                if account(entry["user"]["username"]) == who and (not hosts_too or _is_of_a_claim(entry)):
                    found.add(entry)
        return found


@dataclass
class Asked:
    """The writes of one account."""

    writes: Counter[str] = field(default_factory=Counter)
    """By resource with its part ("machines/status"), those that were refused too."""
    conflicts: Counter[str] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)
    """Other refusals, by code."""
    retries: Counter[str] = field(default_factory=Counter)
    """Conflicts by claimant."""

    def add(self, entry: dict[str, Any]) -> None:
        about, code = entry["objectRef"], entry["responseStatus"]["code"]
        what = "/".join(filter(None, (about["resource"], about.get("subresource"))))
        self.writes[what] += 1
        if code == 409:
            self.conflicts[what] += 1
            self.retries[_claimant(entry) or about["name"]] += 1
        elif code >= 400:
            self.refused[code] += 1

    @property
    def most_retries(self) -> int:
        return max(self.retries.values(), default=0)


def _is_of_a_claim(entry: dict[str, Any]) -> bool:
    """Events are not told apart: nobody's are counted."""
    resource = entry["objectRef"]["resource"]
    return resource in ("machines", "hostclaims") or (resource == "baremetalhosts" and bool(_claimant(entry)))


def _claimant(entry: dict[str, Any]) -> str:
    """For whom a host was patched; "" where that is not in it."""
    body = entry.get("requestObject")
    found = ((body or {}).get("spec") or {}).get("consumerRef") if isinstance(body, dict) else None
    return str(found["name"]) if found else ""
