"""The scale subresource: objects shown and changed as an `autoscaling/v1` Scale.

Reading shows the object through a view; writing is a change of the object like any other, made from a change of its
Scale: one write, decided on the newest state, with the preconditions that the Scale carries.
"""

from __future__ import annotations

from typing import Final

from ingot.embedded.server.documents import Document, dig, encode
from ingot.embedded.server.errors import Unreadable, bad_request, internal
from ingot.embedded.server.face.rendering import View
from ingot.embedded.server.kinds import scale
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.scale import API_VERSION, KIND, Scale
from ingot.embedded.server.storage.objects import Stored
from ingot.embedded.server.writes.writing import Edit

# What a Scale says about its object is compared with it; the object itself checks the first two.
_IDENTITY: Final = ("resourceVersion", "uid", "name", "namespace")


class ScaleView(View):
    """One object, as its Scale."""

    def one(self, item: Stored) -> bytes:
        return encode(_shown(_scale(self.kind), item.document(self.kind)))


def through_scale(kind: Kind, edit: Edit) -> Edit:
    """The change of an object that a change of its Scale stands for."""
    where = _scale(kind)

    def changed(document: Document) -> Document:
        wish = edit(scale.scale_of(where, document))
        _check(wish)
        metadata = document["metadata"]
        for name in _IDENTITY:
            if given := dig(wish, "metadata", name):
                metadata[name] = given
        return scale.scaled(where, document, wish)

    return changed


def _scale(kind: Kind) -> Scale:
    if kind.scale is None:
        raise internal(f"{kind.resource} cannot be scaled")
    return kind.scale


def _shown(where: Scale, document: Document) -> Document:
    if dig(document, *where.wanted) is None:
        raise internal(f'the spec replicas field ".{".".join(where.wanted)}" does not exist')
    return scale.scale_of(where, document)


def _check(wish: Document) -> None:
    if (given := (wish.get("apiVersion") or API_VERSION, wish.get("kind") or KIND)) != (API_VERSION, KIND):
        raise bad_request(f"a {KIND} of {API_VERSION} is expected here, not a {given[1]} of {given[0]}")
    if problem := scale.misshapen(wish):
        raise Unreadable(KIND, API_VERSION.partition("/")[2], problem)
