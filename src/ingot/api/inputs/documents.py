"""Documents that users write as YAML or JSON.

The parser in C is quick, and dies together with the process on a document that is nested deep enough: depth is counted from its
events, which it makes without recursion, before any value is made. YAML can also refer to what it said before, so a few lines can
mean a billion values: they are counted as they are written out, and there is an end to it.
"""

from __future__ import annotations

from typing import Final

import yaml

DEEPEST: Final = 100
LARGEST: Final = 1 << 20
"""No Secret is larger."""
MOST_VALUES: Final = 20_000


class TooMuch(yaml.YAMLError):
    """The document means more than anybody could have meant."""


def load(text: str) -> object:
    """The values of a document. Raises `yaml.YAMLError`, and `ValueError` for a date that does not exist.

    Aliases are values that are there once; whoever writes them out has to count first.
    """
    depth, merging, lists = 0, False, set[str]()
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise TooMuch(f"nested more than {DEEPEST} deep")
        if isinstance(event, yaml.SequenceStartEvent) and event.anchor:
            lists.add(event.anchor)
        # The loader writes the merged mappings out: a list of them at each of a few levels is more than fits in memory.
        if merging and (
            isinstance(event, yaml.SequenceStartEvent)
            or (isinstance(event, yaml.AliasEvent) and event.anchor in lists)
        ):
            raise TooMuch("made of lists that are merged (<<), whose values multiply")
        merging = isinstance(event, yaml.ScalarEvent) and event.value == "<<"
    return yaml.load(text, Loader=yaml.CSafeLoader)


def is_within_bounds(document: object) -> bool:
    """Whether a parsed document is small enough to be written out."""
    left = MOST_VALUES
    waiting: list[tuple[object, int]] = [(document, 0)]
    while waiting:
        value, depth = waiting.pop()
        left -= 1
        if left < 0 or depth > DEEPEST:
            return False
        if isinstance(value, dict):
            waiting += [(one, depth + 1) for one in value.values()]
        elif isinstance(value, list | tuple | set):
            waiting += [(one, depth + 1) for one in value]
    return True
