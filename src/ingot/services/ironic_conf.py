"""ironic.conf: from settings to text, each option under its reason.

Pure. Values are quoted for oslo.config, where `$` would be a reference. The text holds a secret when the database URL does; who
writes it to disk keeps it private. Which options there are, and why, is in `ironic_options`.
"""

from __future__ import annotations

import textwrap
from typing import Final

from ingot.services import hardware
from ingot.services.ironic_options import options
from ingot.services.option import Option
from ingot.services.settings import IronicSettings

_HEADER: Final = """\
# Written by `ingot service ironic` at each start; changes made here are lost.
# To change an option set OS_<GROUP>__<OPTION> in the environment: Ironic prefers that to this file.
"""
_WIDTH: Final = 120


def render(settings: IronicSettings, drives: tuple[str, ...] = hardware.ALL) -> str:
    """The text of ironic.conf, for a machine that has the programs for these hardware types."""
    by_group: dict[str, list[Option]] = {"DEFAULT": []}
    for option in options(settings, drives):
        by_group.setdefault(option.group, []).append(option)
    return _HEADER + "".join(
        f"\n[{group}]\n" + "".join(map(_lines, members)) for group, members in by_group.items()
    )


def _lines(option: Option) -> str:
    comment = textwrap.fill(option.reason, _WIDTH, initial_indent="# ", subsequent_indent="# ")
    return f"{comment}\n{option.name} = {option.value.replace('$', '$$')}\n"
