"""One line of ironic.conf, and why it is there."""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """The reason is a sentence for whoever opens ironic.conf on a broken machine; it stands above the option."""

    group: str
    name: str
    value: str
    reason: str


def switch(value: bool) -> str:
    return "true" if value else "false"
