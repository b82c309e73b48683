"""Making a built-in kind from its message.

The kind's schema is the message's. Every document is taken in as the message says before the kind's own `prepare`
sees it, so that rules and defaults find values of the right type or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ingot.embedded.server.documents import Document
from ingot.embedded.server.errors import Cause, Unreadable
from ingot.embedded.server.kinds.builtins.tables import Message, find_message, message, schema_of, take_in
from ingot.embedded.server.kinds.builtins.tables.intake import Undecodable
from ingot.embedded.server.kinds.columns import AGE, NAME, Column
from ingot.embedded.server.kinds.kind import ALL_VERBS, FieldReader, Kind, field_at
from ingot.embedded.server.kinds.names import subdomain_problem
from ingot.embedded.server.kinds.scale import Scale

Prepare = Callable[[Document, Document | None], None]
Check = Callable[[Document, Document | None], list[Cause]]
Warn = Callable[[Document, Document | None], list[str]]

# Kubernetes' name for the package of each API group's types.
_PACKAGES: Final = {
    "": "io.k8s.api.core.v1",
    "admissionregistration.k8s.io": "io.k8s.api.admissionregistration.v1",
    "apps": "io.k8s.api.apps.v1",
    "authentication.k8s.io": "io.k8s.api.authentication.v1",
    "authorization.k8s.io": "io.k8s.api.authorization.v1",
    "batch": "io.k8s.api.batch.v1",
    "coordination.k8s.io": "io.k8s.api.coordination.v1",
    "events.k8s.io": "io.k8s.api.events.v1",
    "networking.k8s.io": "io.k8s.api.networking.v1",
    "rbac.authorization.k8s.io": "io.k8s.api.rbac.v1",
    "storage.k8s.io": "io.k8s.api.storage.v1",
}


def message_of(group: str, kind: str) -> Message | None:
    """The message of a kind of Kubernetes itself; None where no table has it."""
    return find_message(f"{_PACKAGES[group]}.{kind}") if group in _PACKAGES else None


def _nothing_more(new: Document, old: Document | None) -> None:
    """Most kinds need nothing beyond what their message says."""


def _complete_already(new: Document) -> None:
    """Most kinds are what their creator says."""


def _nothing_wrong(new: Document, old: Document | None) -> list[Cause]:
    return []


def _nothing_to_say(new: Document, old: Document | None) -> list[str]:
    return []


def built_in(
    group: str,
    kind: str,
    plural: str,
    *,
    short_names: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    namespaced: bool = True,
    verbs: tuple[str, ...] = ALL_VERBS,
    status: bool = False,
    born_with_status: bool = False,
    generation: bool = False,
    columns: tuple[Column, ...] = (NAME, AGE),
    fields: Mapping[str, FieldReader] | tuple[str, ...] = (),
    prepare: Prepare = _nothing_more,
    complete: Callable[[Document], None] = _complete_already,
    check: Check = _nothing_wrong,
    warn: Warn = _nothing_to_say,
    scale: Scale | None = None,
    shows_removed: bool = False,
    name_problem: Callable[[str], str] = subdomain_problem,
) -> Kind:
    made = message(f"{_PACKAGES[group]}.{kind}")

    def taken_in(new: Document, old: Document | None) -> None:
        try:
            take_in(new, made)
        except Undecodable as error:
            raise Unreadable(kind, "v1", str(error)) from None
        prepare(new, old)

    return Kind(
        group=group,
        version="v1",
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        short_names=short_names,
        categories=categories,
        namespaced=namespaced,
        verbs=verbs,
        has_status=status,
        born_with_status=born_with_status,
        counts_generations=generation,
        built_in=True,
        schema=schema_of(made),
        columns=columns,
        fields=fields if isinstance(fields, Mapping) else {path: field_at(f".{path}") for path in fields},
        prepare=taken_in,
        complete=complete,
        check=check,
        warn=warn,
        scale=scale,
        shows_removed=shows_removed,
        name_problem=name_problem,
    )
