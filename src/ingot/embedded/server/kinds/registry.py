"""The kinds of one server, found by where they are in the URL or by what an owner reference calls them.

Built-in kinds are there from the start and stay; families come and go with the definitions of clients. `revision`
counts the changes, so that whoever derives something from all kinds knows when to do it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ingot.embedded.server.errors import StateError
from ingot.embedded.server.kinds.kind import Kind


@dataclass(frozen=True, slots=True)
class Family:
    """The versions of one kind: the one its objects are kept in, and those that are served."""

    home: Kind
    served: tuple[Kind, ...]


class Registry:
    """All kinds of one server."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self.revision = 0
        self._built_in: tuple[Kind, ...] = tuple(kinds)
        self._families: dict[str, Family] = {}
        self._renew()

    def define(self, name: str, family: Family) -> None:
        """Serve this family under the name of its definition, in place of the one that was there.

        Raises ValueError, with nothing changed, for a schema that cannot be used.
        """
        for kind in (family.home, *family.served):
            # Compiling a large schema takes a while; better now than during somebody's request. The built-in kinds have small
            # ones, of which most servers need a few: those are compiled when they are.
            _ = kind.shape
        self._families[name] = family
        self._renew()

    def undefine(self, name: str) -> None:
        if self._families.pop(name, None) is not None:
            self._renew()

    def built_in(self) -> Sequence[Kind]:
        return self._built_in

    def family(self, name: str) -> Family | None:
        return self._families.get(name)

    def at(self, group: str, version: str, plural: str) -> Kind | None:
        return self._by_place.get((group, version, plural))

    def named(self, api_version: str, kind: str) -> Kind | None:
        """The kind that an owner reference names, in whatever version; as it is kept."""
        group = api_version.rpartition("/")[0]
        return self._by_name.get((group, kind))

    def homes(self) -> Sequence[Kind]:
        """The kinds in whose form objects are kept, one for each collection."""
        return self._homes

    def home(self, resource: str) -> Kind | None:
        return self._by_resource.get(resource)

    def groups(self) -> Mapping[str, Mapping[str, Sequence[Kind]]]:
        """Group → version → kinds; groups in the order they came, versions as Kubernetes prefers them."""
        found: dict[str, dict[str, list[Kind]]] = {}
        for kind in self.kinds:
            found.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
        return {
            group: {version: versions[version] for version in sorted(versions, key=version_priority)}
            for group, versions in found.items()
        }

    def _renew(self) -> None:
        families = self._families.values()
        self.kinds: Sequence[Kind] = (
            *self._built_in,
            *(kind for family in families for kind in family.served),
        )
        self._by_place = {(kind.group, kind.version, kind.plural): kind for kind in self.kinds}
        if len(self._by_place) != len(self.kinds):
            raise StateError(
                "two definitions claim the same group, version and plural name; each kind needs its own"
            )
        homes = {kind.home.resource: kind.home for kind in self._built_in}
        homes |= {family.home.resource: family.home for family in families}
        self._by_resource = homes
        self._homes = tuple(homes.values())
        self._by_name = {(kind.group, kind.kind): kind.home for kind in self.kinds}
        self._by_name |= {(kind.group, kind.kind): kind for kind in self._homes}
        self.revision += 1


_VERSION: Final = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")
_STAGES: Final = {None: 0, "beta": 1, "alpha": 2}


def version_priority(version: str) -> tuple[int, int, int, int, str]:
    """A sorting key: stable versions first, then betas, then alphas, the highest first; other names after them all."""
    if found := _VERSION.fullmatch(version):
        major, stage, minor = found.groups()
        return 0, _STAGES[stage], -int(major), -int(minor or 0), version
    return 1, 0, 0, 0, version
