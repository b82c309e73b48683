"""Documents that users write as YAML or JSON.

The parser in C is quick, and dies together with the process on a document that is nested deep enough: depth is counted from its
events, which it makes without recursion, before any value is made.
"""

from __future__ import annotations

from typing import Final

import yaml

DEEPEST: Final = 100


class TooDeep(yaml.YAMLError):
    """The document is nested more deeply than anybody could have meant."""


def load(text: str) -> object:
    """The values of a document. Raises `yaml.YAMLError`, and `ValueError` for a date that does not exist.

    Aliases are values that are there once; whoever writes them out has to count first.
    """
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise TooDeep(f"nested more than {DEEPEST} deep")
    return yaml.load(text, Loader=yaml.CSafeLoader)
