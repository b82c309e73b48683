"""Seeing other objects: some rules are about more than the object that is written.

`Others` is how a rule looks at the rest. The embedded API answers from its store, a webhook from its caches; rules stay pure,
because they get what they look at as an argument. `NOTHING` is for those who cannot look: rules that need others then find
nothing wrong, and whoever acts later has to look again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from ingot.api.meta import Key, Resource

Document = Mapping[str, Any]


class Others(Protocol):
    """Other objects, as documents that have passed their schema."""

    def get(self, resource: Resource[Any], key: Key) -> Document | None:
        """One object; None where there is none."""
        ...

    def mentioning(self, resource: Resource[Any], text: str) -> Iterable[Document]:
        """Objects of all namespaces that have this text as a value somewhere. Answering with more of them does no harm."""
        ...


class _Nothing:
    def get(self, resource: Resource[Any], key: Key) -> Document | None:
        return None

    def mentioning(self, resource: Resource[Any], text: str) -> Iterable[Document]:
        return ()


NOTHING: Final[Others] = _Nothing()
