"""ironic.conf: from settings to text, each option under its reason.

Pure. Values are quoted for oslo.config, where `$` would be a reference. The text holds a secret when the database URL does; who
writes it to disk keeps it private. Which options there are, and why, is in `ironic_options`.
"""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import Final

from ingot.services.ironic_options import Option, options
from ingot.services.settings import IronicSettings

_HEADER: Final = """\
# Written by `ingot service ironic` at each start; changes made here are lost.
# To change an option set OS_<GROUP>__<OPTION> in the environment: Ironic prefers that to this file.
"""
_WIDTH: Final = 120


def render(settings: IronicSettings) -> str:
    """The text of ironic.conf."""
    chosen = sorted(options(settings), key=lambda option: option.group != "DEFAULT")
    parts = [_HEADER]
    for group, members in groupby(chosen, key=lambda option: option.group):
        parts.append(f"\n[{group}]\n")
        parts.extend(_lines(option) for option in members)
    return "".join(parts)


def _lines(option: Option) -> str:
    comment = textwrap.fill(option.reason, _WIDTH, initial_indent="# ", subsequent_indent="# ")
    return f"{comment}\n{option.name} = {option.value.replace('$', '$$')}\n"
