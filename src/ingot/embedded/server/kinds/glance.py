"""A glance at an object: from its bytes only the fields that its columns show, without reading all the others.

Rows of a table need a few words of objects that are mostly inventory. Where every column is one plain path, a decoder is made
that knows these paths and skips the rest; otherwise, or where an object is not shaped as the paths say, all of it is read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ingot.embedded.server.documents import Document, decode
from ingot.embedded.server.kinds.columns import Column

Glance = Callable[[bytes], Document]
# Field → what is wanted below it; nothing below means all of it.
_Tree = dict[str, "_Tree"]


@functools.lru_cache(maxsize=256)
def glance(columns: Sequence[Column]) -> Glance:
    """What reads as much of an object as these columns need."""
    tree: _Tree = {}
    for column in columns:
        if column.path is None:
            return decode
        _plant(tree, column.path)
    wanted: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_struct(tree))

    def read(body: bytes) -> Document:
        try:
            return dict(msgspec.to_builtins(wanted.decode(body)))
        except msgspec.ValidationError:
            return decode(body)

    return read


def _plant(tree: _Tree, path: Sequence[str]) -> None:
    first, *rest = path
    known = first in tree
    below = tree.setdefault(first, {})
    if not rest or (known and not below):
        # One of the columns shows all that is here.
        below.clear()
    else:
        _plant(below, rest)


def _struct(tree: _Tree) -> type[msgspec.Struct]:
    fields: list[tuple[str, Any, Any]] = []
    for name, below in tree.items():
        kind: Any = (_struct(below) | None | msgspec.UnsetType) if below else Any
        fields.append((f"f{len(fields)}", kind, msgspec.field(default=msgspec.UNSET, name=name)))
    return msgspec.defstruct("Glance", fields)
