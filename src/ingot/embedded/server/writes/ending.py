"""The end of an object that needs time to end: a pod that runs somewhere.

Deletion sets when it must be over; whoever runs the object deletes it once more with a grace of nought when it is.
Until then a deletion can only be hurried.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ingot.embedded.server.documents import Document
from ingot.embedded.server.kinds.kind import Kind


def seconds_left(kind: Kind, document: Document, wished: int | None) -> int | None:
    """The time a deletion gives the object; None where it changes nothing about one that goes on already."""
    metadata = document["metadata"]
    if wished is not None and wished < 0:
        wished = 1
    if "deletionTimestamp" not in metadata:
        return kind.grace(document, wished) if kind.grace else 0
    running = int(metadata.get("deletionGracePeriodSeconds", 0))
    if running == 0:
        return 0
    return None if wished is None or wished >= running else wished


def mark(document: Document, seconds: int) -> None:
    """Say until when the object has time, in place."""
    metadata = document["metadata"]
    if "deletionTimestamp" in metadata:
        begun = datetime.fromisoformat(metadata["deletionTimestamp"])
        begun -= timedelta(seconds=metadata.get("deletionGracePeriodSeconds", 0))
    else:
        begun = datetime.now(UTC)
        if "generation" in metadata:
            # Like Kubernetes: who watches generations should notice that the object is going.
            metadata["generation"] += 1
    until = begun + timedelta(seconds=seconds)
    metadata["deletionTimestamp"] = until.strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata["deletionGracePeriodSeconds"] = seconds


def is_over(document: Document) -> bool:
    """Whether an object that is being deleted has no time left that it waits for."""
    return not document["metadata"].get("deletionGracePeriodSeconds")
