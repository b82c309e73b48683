"""What the API server itself says it was asked to write: the judge that knows nothing of who asks."""

from __future__ import annotations

import re
from collections import Counter

WRITES = {
    "POST",
    "PUT",
    "PATCH",
    "APPLY",
    "DELETE",
    "create",
    "update",
    "patch",
    "apply",
    "delete",
    "deletecollection",
}
Asked = tuple[str, str]
"""Resource with its part ("baremetalhosts/status"), HTTP status."""


def writes(metrics: str) -> Counter[Asked]:
    """Write requests so far, out of the server's metrics."""
    found: Counter[Asked] = Counter()
    for line in metrics.splitlines():
        if not line.startswith("apiserver_request_total{"):
            continue
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        if labels["verb"] in WRITES and labels["resource"] != "leases":
            part = f"/{labels['subresource']}" if labels.get("subresource") else ""
            found[(labels["resource"] + part, labels["code"])] += int(float(line.rpartition(" ")[2]))
    return found
