"""How the rules of a kind are asked: the object is read, every rule is put to it, and all that is found is told at once.

Most rules are about one object, or about two versions of it. Those that are about other objects too get `Others` to look at them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Generic, TypeVar

import msgspec

from ingot.api.admission.errors import FieldError, invalid
from ingot.api.admission.others import NOTHING, Document, Others
from ingot.api.meta import Object

__all__ = ["Document", "Rules"]

K = TypeVar("K", bound=Object)


class Rules(Generic[K]):
    """The rules of one kind: those for creating hold for every later version too, those for changing compare two versions.

    `among` are rules that see other objects: those for every version, which also get the one before (None at first), and
    `deletion`, those for letting the object go.
    """

    def __init__(
        self,
        type_: type[K],
        create: Sequence[Callable[[K], Iterator[FieldError]]],
        change: Sequence[Callable[[K, K], Iterator[FieldError]]] = (),
        *,
        among: Sequence[Callable[[K, K | None, Others], Iterator[FieldError]]] = (),
        deletion: Sequence[Callable[[K, Others], Iterator[FieldError]]] = (),
        decode: Callable[[Document], K] | None = None,
    ) -> None:
        self._type = type_
        self._create = create
        self._change = change
        self._among = among
        self._deletion = deletion
        self._decode = decode or self._converted

    @property
    def guards_deletion(self) -> bool:
        return bool(self._deletion)

    def check(self, new: Document, old: Document | None, others: Others = NOTHING) -> list[FieldError]:
        """What is wrong with creating `new`, or with making `old` into `new`."""
        try:
            after = self._decode(new)
        except msgspec.ValidationError as error:
            return [invalid("", None, f"this is not a {self._type.__name__}: {error}.")]
        found = list(chain.from_iterable(rule(after) for rule in self._create))
        before = self._readable(old)
        if before is not None:
            found += chain.from_iterable(rule(after, before) for rule in self._change)
        return found + list(chain.from_iterable(rule(after, before, others) for rule in self._among))

    def check_deletion(self, old: Document, others: Others = NOTHING) -> list[FieldError]:
        """What is wrong with deleting `old`. What cannot be read can always be deleted."""
        before = self._readable(old) if self._deletion else None
        if before is None:
            return []
        return list(chain.from_iterable(rule(before, others) for rule in self._deletion))

    def _readable(self, old: Document | None) -> K | None:
        """None where there is nothing, or nothing that can be read: then a valid new version is the way to mend it."""
        try:
            return None if old is None else self._decode(old)
        except msgspec.ValidationError:
            return None

    def _converted(self, document: Document) -> K:
        return msgspec.convert(document, self._type)
