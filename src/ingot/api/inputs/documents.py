"""Documents that users write as YAML or JSON.

The parser in C is quick, and dies together with the process on a document that is nested deep enough: depth is counted from its
events, which it makes without recursion, before any value is made.
"""

from __future__ import annotations

from typing import Final

import yaml

DEEPEST: Final = 100


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
