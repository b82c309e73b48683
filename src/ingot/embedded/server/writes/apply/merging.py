"""An applied configuration laid over a live object.

What the configuration names wins, the rest stays. Lists with keys are merged element by element, in an order that keeps
both: the configuration's elements follow each other as it has them, and the others stay near their neighbours.
`problems` says where a configuration does not fit the schema of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ingot.embedded.server.documents import Document
from ingot.embedded.server.writes.apply.fieldset import shown
from ingot.embedded.server.writes.apply.structure import DEDUCED, Structure

_FITS: Final[dict[str, tuple[type, ...]]] = {
    "numeric": (int, float),
    "string": (str,),
    "boolean": (bool,),
    "untyped": (int, float, str, bool),
}
_WORDS: Final = {
    "numeric": "numeric (int or float)",
    "string": "string",
    "boolean": "boolean",
    "untyped": "any scalar",
}


def merge(live: Document, config: Document, structure: Structure) -> Document:
    return _merged_maps(live, config, structure)


def _merged(live: Any, config: Any, structure: Structure) -> Any:
    match structure.form(config):
        case "map" if not structure.atomic and (_full(live, dict) or _full(config, dict)):
            return _merged_maps(
                live if isinstance(live, dict) else {}, config if isinstance(config, dict) else {}, structure
            )
        case "list" if structure.lists != "atomic" and (_full(live, list) or _full(config, list)):
            return _merged_lists(
                live if isinstance(live, list) else [], config if isinstance(config, list) else [], structure
            )
        case _:
            return config


def _merged_maps(live: Document, config: Document, structure: Structure) -> Document:
    made = dict(live)
    for name, value in config.items():
        made[name] = _merged(live[name], value, structure.field(name)) if name in live else value
    return made


def _merged_lists(live: list[Any], config: list[Any], structure: Structure) -> list[Any]:
    items = structure.items or DEDUCED
    ours = list(structure.steps(live))
    theirs = list(structure.steps(config))
    counterpart: dict[str, Any] = {}
    for step, item in ours:
        # Elements that cannot be told apart have no counterpart: the configuration's one takes their place.
        counterpart[step] = None if step in counterpart else item
    wanted = dict(theirs)
    shared = iter([step for step, _ in theirs if step in counterpart])
    expected = next(shared, None)
    made: list[Any] = []
    placed: set[str] = set()

    def place(step: str) -> None:
        nonlocal expected
        other = counterpart.get(step)
        made.append(wanted[step] if other is None else _merged(other, wanted[step], items))
        placed.add(step)
        if step == expected:
            expected = next(shared, None)

    left, right = 0, 0
    while left < len(ours) or right < len(theirs):
        if left < len(ours):
            step, item = ours[left]
            if right < len(theirs):
                if step == theirs[right][0]:
                    place(step)
                    left, right = left + 1, right + 1
                    continue
                if step in wanted and expected is not None and step != expected:
                    # The configuration wants it elsewhere.
                    left += 1
                    continue
            if step not in wanted:
                made.append(item)
                left += 1
                continue
            if step in placed:
                left += 1
        if right < len(theirs):
            place(theirs[right][0])
            right += 1
    return made


def _full(value: object, type_: type[Any]) -> bool:
    return isinstance(value, type_) and bool(value)


# Whether a configuration fits


def problems(config: Document, structure: Structure) -> list[str]:
    """Where the configuration does not fit: `.spec.x: field not declared in schema`."""
    return [f"{shown(tuple(way))}: {words}" for way, words in _problems(config, structure, [])]


def _problems(value: Any, structure: Structure, way: list[str]) -> Iterator[tuple[list[str], str]]:
    match structure.form(value):
        case _ if value is None:
            return
        case "map":
            if not isinstance(value, dict):
                yield way, f"expected map, got {_shown(value)}"
                return
            yield from _problems_of_map(value, structure, way)
        case "list":
            if not isinstance(value, list):
                yield way, f"expected list, got {_shown(value)}"
                return
            yield from _problems_of_list(value, structure, way)
        case _:
            if type(value) not in _FITS[structure.scalar]:
                yield way, f"expected {_WORDS[structure.scalar]}, got {_shown(value)}"


def _problems_of_map(
    value: Document, structure: Structure, way: list[str]
) -> Iterator[tuple[list[str], str]]:
    for name, part in value.items():
        inner = structure.fields.get(name) or structure.element
        here = [*way, f"f:{name}"]
        if inner is None:
            yield here, "field not declared in schema"
        else:
            yield from _problems(part, inner, here)


def _problems_of_list(
    value: list[Any], structure: Structure, way: list[str]
) -> Iterator[tuple[list[str], str]]:
    seen: set[str] = set()
    for index, item in enumerate(value):
        step: str | None = f"i:{index}"
        if structure.lists != "atomic":
            step = structure.step(item)
            if step is None:
                yield way, f"element {index}: {_unknowable(item, structure)}"
                return
            if step in seen:
                yield way, f"duplicate entries for key {shown((step,))}"
            seen.add(step)
        assert step is not None
        yield from _problems(item, structure.items or DEDUCED, [*way, step])


def _unknowable(item: object, structure: Structure) -> str:
    if structure.lists == "set":
        return "associative list without keys has an element that's not a plain value"
    if not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    keys = " ".join(f'"{key}"' for key in structure.keys)
    return (
        f"associative list with keys has an element that omits all key fields [{keys}] "
        "(and doesn't have default values for any key fields)"
    )


def _shown(value: object) -> str:
    return type(value).__name__ if isinstance(value, dict | list) else repr(value)[:60]
