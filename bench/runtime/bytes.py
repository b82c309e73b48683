"""What the server sends, prepared before the first request: pages of a list, and the lines of a watch. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from api import hosts

PAGE: Final = 500


def template() -> bytes:
    """A host after its inspection, as an API server shows it, about 7 KB. `@N@` is its number, `@V@` its version."""
    manifest: dict[str, Any] = json.loads(hosts.manifest("h-@N@"))
    manifest["metadata"] |= {
        "namespace": "default",
        "uid": "7f2f6a52-0000-4000-8000-@N@",
        "resourceVersion": "@V@",
        "generation": 2,
        "creationTimestamp": "2026-11-16T00:00:00Z",
        "finalizers": ["baremetalhost.metal3.io"],
    }
    return json.dumps(manifest | json.loads(hosts.status()), separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A list of `count` hosts at version `count`, and `events` changes after it."""

    items: list[bytes]
    changes: list[bytes]

    @classmethod
    def of(cls, count: int, events: int) -> Prepared:
        host = template()

        def one(number: int, version: int) -> bytes:
            return host.replace(b"@N@", b"%06d" % number).replace(b"@V@", b"%d" % version)

        items = [one(number, number + 1) for number in range(count)]
        changes = [
            b'{"type":"MODIFIED","object":%s}\n' % one(number % count, count + 1 + number)
            for number in range(events)
        ]
        return cls(items, changes)

    def page(self, start: int, limit: int) -> bytes:
        """A page of the list, beginning with the item at `start`; without a limit, all of it."""
        end = start + limit if limit else len(self.items)
        metadata = {"resourceVersion": str(len(self.items))}
        if end < len(self.items):
            metadata["continue"] = str(end)
        head = b'{"kind":"BareMetalHostList","apiVersion":"metal3.io/v1alpha1","metadata":%s,"items":[%s]}'
        return head % (json.dumps(metadata).encode(), b",".join(self.items[start:end]))

    def everything(self) -> list[bytes]:
        """The list as the beginning of a watch, with the bookmark at its end."""
        metadata = {
            "resourceVersion": str(len(self.items)),
            "annotations": {"k8s.io/initial-events-end": "true"},
        }
        end = json.dumps({"type": "BOOKMARK", "object": {"metadata": metadata}}).encode() + b"\n"
        return [*(b'{"type":"ADDED","object":%s}\n' % item for item in self.items), end]
