"""The kinds of one server, found by where they are in the URL or by what an owner reference calls them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ingot.embedded.server.errors import StateError
from ingot.embedded.server.kinds.kind import Kind


class Registry:
    """All kinds of one server."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.kinds: Sequence[Kind] = tuple(kinds)
        self._by_place = {(kind.group, kind.version, kind.plural): kind for kind in self.kinds}
        self._by_name = {(kind.group, kind.kind): kind for kind in self.kinds}
        for kind in self.kinds:
            # Compiling a large schema takes a while; better now than during somebody's request.
            _ = kind.shape
        if len(self._by_place) != len(self.kinds):
            raise StateError(
                "two definitions claim the same group, version and plural name; each kind needs its own"
            )

    def at(self, group: str, version: str, plural: str) -> Kind | None:
        return self._by_place.get((group, version, plural))

    def named(self, api_version: str, kind: str) -> Kind | None:
        """The kind that an owner reference names, in whatever version."""
        group = api_version.rpartition("/")[0]
        return self._by_name.get((group, kind))

    def groups(self) -> dict[str, dict[str, list[Kind]]]:
        """Group → version → kinds, in the order of registration."""
        found: dict[str, dict[str, list[Kind]]] = {}
        for kind in self.kinds:
            found.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
        return found
