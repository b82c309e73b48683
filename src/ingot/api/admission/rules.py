"""How the rules of a kind are asked: the object is read, every rule is put to it, and all that is found is told at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

import msgspec

from ingot.api.admission.errors import FieldError, invalid
from ingot.api.meta import Object

Document = Mapping[str, Any]
K = TypeVar("K", bound=Object)


class Rules(Generic[K]):
    """The rules of one kind: those for creating hold for every later version too, those for changing compare two versions."""

    def __init__(
        self,
        type_: type[K],
        create: Sequence[Callable[[K], Iterator[FieldError]]],
        change: Sequence[Callable[[K, K], Iterator[FieldError]]] = (),
        *,
        decode: Callable[[Document], K] | None = None,
    ) -> None:
        self._type = type_
        self._create = create
        self._change = change
        self._decode = decode or self._converted

    def check(self, new: Document, old: Document | None) -> list[FieldError]:
        """What is wrong with creating `new`, or with making `old` into `new`."""
        try:
            after = self._decode(new)
        except msgspec.ValidationError as error:
            return [invalid("", None, f"this is not a {self._type.__name__}: {error}.")]
        found = list(chain.from_iterable(rule(after) for rule in self._create))
        if old is None or not self._change:
            return found
        try:
            before = self._decode(old)
        except msgspec.ValidationError:
            # What is stored cannot be read; a valid new version is the way to mend it.
            return found
        return found + list(chain.from_iterable(rule(after, before) for rule in self._change))

    def _converted(self, document: Document) -> K:
        return msgspec.convert(document, self._type)
