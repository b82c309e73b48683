"""Strategic merge patches: merge patches that know which lists are merged, and how.

Only built-in kinds take them. The structure of the kind says which lists merge: plain values by value, objects by a key.
Directives in a patch say what a value cannot: `$patch` replaces or deletes, `$retainKeys` drops what it does not name,
`$deleteFromPrimitiveList` removes values, `$setElementOrder` gives the order that a list shall have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ingot.embedded.server.documents import Document, encode
from ingot.embedded.server.errors import Refused, bad_request
from ingot.embedded.server.writes.apply import Structure

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE_VALUES: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"


def strategically_merged(target: Document, patch: Document, structure: Structure) -> Document:
    """The document with the patch applied. Neither is changed."""
    return _merged(target, patch, structure)


def _merged(target: object, patch: Mapping[str, Any], structure: Structure) -> Document:
    if (directive := patch.get(_PATCH)) is not None:
        return _replaced(directive, patch)
    made: Document = dict(target) if isinstance(target, dict) else {}
    if _RETAIN in patch:
        made = _retained(made, patch)
    for name, value in patch.items():
        if name.startswith(_DELETE_VALUES):
            field = name.removeprefix(_DELETE_VALUES)
            if field in made:
                gone = {_identity(item, None) for item in _list(name, value)}
                made[field] = [
                    item for item in _list(field, made[field]) if _identity(item, None) not in gone
                ]
        elif name.startswith("$"):
            continue
        elif value is None or (_is_directive(value) and not isinstance(made.get(name), dict)):
            # There is nothing that the directive could be about.
            made.pop(name, None)
        else:
            made[name] = _value(made.get(name), value, structure.field(name))
    for name, value in patch.items():
        if name.startswith(_ORDER):
            field = name.removeprefix(_ORDER)
            if field in made:
                _check_order(field, patch.get(field), _list(name, value), structure.field(field))
                before = target.get(field) if isinstance(target, dict) else None
                made[field] = _in_order(
                    _list(field, made[field]), value, before or [], structure.field(field).merged_by
                )
    return made


def _value(target: object, patch: Any, structure: Structure) -> Any:
    if isinstance(patch, dict):
        return _merged(target, patch, structure) if isinstance(target, dict) else _plain(patch)
    if isinstance(patch, list):
        if structure.merged_by is None or not isinstance(target, list):
            return _plain(patch)
        return _merged_list(target, patch, structure.merged_by, structure)
    return patch


def _replaced(directive: object, patch: Mapping[str, Any]) -> Document:
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _PATCH}
    if directive == "delete":
        return {}
    raise _unknown_directive(directive)


def _unknown_directive(directive: object) -> Refused:
    return Refused(500, "", f"unknown patch type: {directive!s:.40}: $patch is replace or delete")


def _retained(target: Document, patch: Mapping[str, Any]) -> Document:
    kept = _list(_RETAIN, patch[_RETAIN])
    for name, value in patch.items():
        if value is not None and not name.startswith("$") and name not in kept:
            raise bad_request(f"{_RETAIN} does not name {name}, which the patch sets")
    return {name: value for name, value in target.items() if name in kept}


def _merged_list(target: Sequence[Any], patch: Sequence[Any], key: str, structure: Structure) -> list[Any]:
    if not key:
        values = {_identity(value, key): value for value in (*target, *patch)}
        return _in_order(list(values.values()), patch, target, key)
    if any(isinstance(item, dict) and item.get(_PATCH) == "replace" for item in patch):
        return [item for item in patch if not _is_directive(item)]
    gone = {encode(_key_of(item, key)) for item in patch if _is_directive(item) and item[_PATCH] == "delete"}
    made = [item for item in target if _identity(item, key) not in gone]
    places: dict[bytes, int] = {}
    for index, old in enumerate(made):
        if isinstance(old, dict) and key in old:
            places.setdefault(_identity(old, key), index)
    for item in patch:
        known = encode(_key_of(item, key))
        if _is_directive(item):
            if item[_PATCH] != "delete":
                raise _unknown_directive(item[_PATCH])
        elif known not in places:
            places[known] = len(made)
            made.append(_plain(item))
        elif structure.items is not None:
            made[places[known]] = _merged(made[places[known]], item, structure.items)
    return _in_order(made, patch, target, key)


def _key_of(item: object, key: str) -> Any:
    if not isinstance(item, dict) or key not in item:
        raise Refused(500, "", f"an element of the patch has no {key}, by which this list is merged")
    return item[key]


# The order of a list


def _in_order(items: list[Any], wanted: Sequence[Any], before: Sequence[Any], key: str | None) -> list[Any]:
    """The items that the patch names, in its order; the others among them where they were before."""
    order = _positions(wanted, key)
    old = _positions(before, key)
    named = sorted(
        (item for item in items if _identity(item, key) in order),
        key=lambda item: order[_identity(item, key)],
    )
    rest = [item for item in items if _identity(item, key) not in order]
    made: list[Any] = []
    first, second = 0, 0
    while first < len(named) and second < len(rest):
        mine, other = old.get(_identity(rest[second], key)), old.get(_identity(named[first], key))
        if mine is not None and other is not None and mine < other:
            made.append(rest[second])
            second += 1
        else:
            made.append(named[first])
            first += 1
    return [*made, *named[first:], *rest[second:]]


def _positions(items: Sequence[Any], key: str | None) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for index, item in enumerate(items):
        found.setdefault(_identity(item, key), index)
    return found


def _identity(item: Any, key: str | None) -> bytes:
    """What tells an element from others: the value of its key, or all of it."""
    return encode(item.get(key) if key and isinstance(item, dict) else item)


def _check_order(field: str, patch: object, order: Sequence[Any], structure: Structure) -> None:
    """An order that does not have what the patch sets, in the same order, was made for another patch."""
    key = structure.merged_by
    known = iter([_identity(item, key) for item in order])
    set_ = (
        [_identity(item, key) for item in patch if not _is_directive(item)] if isinstance(patch, list) else []
    )
    if order and not all(item in known for item in set_):
        raise Refused(500, "", f"the patch sets elements of {field} in another order than the one it gives")


# Small parts


def _is_directive(value: object) -> bool:
    return isinstance(value, dict) and _PATCH in value


def _list(name: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise bad_request(f"{name} takes a list")
    return value


def _plain(value: Any) -> Any:
    """The values of a patch without its directives, and without the nulls that have nothing to remove."""
    if isinstance(value, list):
        return [_plain(item) for item in value if not _is_directive(item)]
    if isinstance(value, dict):
        return {
            name: _plain(inner)
            for name, inner in value.items()
            if not name.startswith("$") and inner is not None and not _is_directive(inner)
        }
    return value
