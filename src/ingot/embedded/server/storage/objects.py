"""An object as it is kept: its bytes, and the little that is needed without decoding them."""

from __future__ import annotations

from dataclasses import dataclass

from ingot.api.meta import Key
from ingot.embedded.server.documents import Document, decode, dig, encode
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.selectors import Selectable


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """An object as it was written: its bytes, and the little that is needed without decoding them.

    The bytes are in the form of `kind`; every other kind of the same objects can read them.
    """

    kind: Kind
    key: Key
    uid: str
    version: int
    at: float
    body: bytes
    selectable: Selectable
    owners: tuple[str, ...]

    def document(self, kind: Kind | None = None) -> Document:
        """A copy of the object, as this kind shows it; without one, as it is kept."""
        document = decode(self.body)
        return document if kind is None or kind is self.kind else kind.read_from(document, self.kind)

    def body_for(self, kind: Kind) -> bytes:
        """The bytes of the object as this kind shows it."""
        return self.body if kind is self.kind else encode(self.document(kind))


def stored(kind: Kind, document: Document, *, version: int, at: float, body: bytes = b"") -> Stored:
    metadata = document["metadata"]
    owners = tuple(str(owner.get("uid", "")) for owner in metadata.get("ownerReferences", ()))
    return Stored(
        kind=kind,
        key=Key(metadata.get("namespace", ""), metadata["name"]),
        uid=metadata.get("uid", ""),
        version=version,
        at=at,
        body=body or encode(document),
        selectable=kind.selectable(document),
        owners=owners,
    )


def is_terminating(document: Document) -> bool:
    return bool(dig(document, "metadata", "deletionTimestamp"))
