"""What changed between two documents, as sets of fields.

Only parts that differ are walked, so a small change to a large object costs little. Something that appears is added with
all that it holds; something that is in both and differs is modified at the smallest part that has an owner of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from ingot.embedded.server.documents import Document
from ingot.embedded.server.writes.apply.fieldset import SELF, FieldSet, named, node, union
from ingot.embedded.server.writes.apply.structure import Structure


@dataclass(frozen=True, slots=True)
class Delta:
    """The fields that came, that have another value, and that went. No field is in two of them."""

    added: FieldSet = field(default_factory=dict)
    modified: FieldSet = field(default_factory=dict)
    removed: FieldSet = field(default_factory=dict)

    @property
    def written(self) -> FieldSet:
        """What the new document brought: this is what its writer owns now."""
        return union(self.added, self.modified)

    def __bool__(self) -> bool:
        return bool(self.added or self.modified or self.removed)


class _Absent:
    """Not there; null is something else."""


_ABSENT: Final = _Absent()


def compare(old: Document, new: Document, structure: Structure) -> Delta:
    delta = Delta()
    _compare_maps(old, new, structure, delta)
    return delta


def everything(value: object, structure: Structure) -> FieldSet:
    """What stands for a value that appears or goes as a whole: it, and each of its parts."""
    below: FieldSet = {}
    match structure.form(value):
        case "map" if isinstance(value, dict) and not structure.atomic:
            below = {named(name): everything(part, structure.field(name)) for name, part in value.items()}
        case "list" if isinstance(value, list) and structure.lists != "atomic" and structure.items:
            for step, item in structure.steps(value):
                # Of several elements that cannot be told apart only the fact is known that they are there.
                below[step] = {} if step in below else everything(item, structure.items)
        case _:
            pass
    return {SELF: {}, **below} if below else {}


def _compare(step: str, old: Any, new: Any, structure: Structure, delta: Delta) -> None:
    """Compare the place one step away; what is found goes into the delta of the place we are at."""
    if old is _ABSENT:
        delta.added[step] = everything(new, structure)
        return
    if new is _ABSENT:
        delta.removed[step] = everything(old, structure)
        return
    forms = {structure.form(old), structure.form(new)}
    inner = Delta()
    modified = False
    for form in forms:
        if form == "map" and not structure.atomic and (_is_full(old, dict) or _is_full(new, dict)):
            _compare_maps(_map(old), _map(new), structure, inner)
        elif form == "list" and structure.lists != "atomic" and (_is_full(old, list) or _is_full(new, list)):
            _compare_lists(old, new, structure, inner)
        else:
            modified = True
    for found, below in ((delta.added, inner.added), (delta.removed, inner.removed)):
        if below:
            found[step] = below
    if (changed := node(inner.modified, member=modified)) is not None:
        delta.modified[step] = changed


def _compare_maps(old: Document, new: Document, structure: Structure, delta: Delta) -> None:
    for name, value in new.items():
        before = old.get(name, _ABSENT)
        if not _same(before, value):
            _compare(named(name), before, value, structure.field(name), delta)
    for name, value in old.items():
        if name not in new:
            _compare(named(name), value, _ABSENT, structure.field(name), delta)


def _compare_lists(old: object, new: object, structure: Structure, delta: Delta) -> None:
    items = structure.items
    assert items is not None
    before, now = _gathered(old, structure), _gathered(new, structure)
    for step in {**before, **now}:
        olds, news = before.get(step, []), now.get(step, [])
        if len(olds) <= 1 and len(news) <= 1:
            one, other = (olds[0] if olds else _ABSENT), (news[0] if news else _ABSENT)
            if not _same(one, other):
                _compare(step, one, other, items, delta)
        elif len(olds) > 1 and len(news) > 1:
            if olds != news:
                delta.modified[step] = {}
        elif len(olds) > 1:
            # What could not be told apart is gone; what is left of it is as good as new.
            if news:
                delta.added[step] = everything(news[0], items)
            delta.removed[step] = {}
        else:
            if olds:
                delta.removed[step] = everything(olds[0], items)
            delta.added[step] = {}


def _gathered(value: object, structure: Structure) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for step, item in structure.steps(value):
        found.setdefault(step, []).append(item)
    return found


def _same(old: object, new: object) -> bool:
    # In Python True equals 1; in JSON it does not.
    return old == new and (
        type(old) is type(new) or (not isinstance(old, bool) and not isinstance(new, bool))
    )


def _map(value: object) -> Document:
    return value if isinstance(value, dict) else {}


def _is_full(value: object, type_: type[Any]) -> bool:
    return isinstance(value, type_) and bool(value)
