"""Consoles as the kernel's console= argument names them, of the kinds that kernel and boot loader both understand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ingot.formats.errors import FormatError

_SERIAL: Final = re.compile(r"(ttyS|ttyAMA)([0-9]+)(?:,([0-9]+)(?:([noe])([5-8])?)?)?")
_GRAPHICAL: Final = ("tty0", "hvc0", "ttysclp0")
_ARGUMENT: Final = "console="


def normal_console(text: str) -> str:
    """The console with everything said that can be left out: speed, parity, bits."""
    for prefix in (_ARGUMENT, "/dev/"):
        if text.startswith(prefix):
            raise FormatError(f'the console {text!r} should not start with "{prefix}"')
    if text in _GRAPHICAL:
        return text
    serial = _SERIAL.fullmatch(text)
    if serial is None or int(serial[2]) > 255 or int(serial[3] or 0) >= 1 << 32:
        raise FormatError(
            f"invalid or unsupported console argument {text!r}; tty0, hvc0, ttysclp0, ttyS0,115200n8 and the like are understood"
        )
    kind, port, speed, parity, bits = serial.groups()
    return f"{kind}{int(port)},{int(speed or 9600)}{parity or 'n'}{bits or 8}"


def consoles_in(arguments: Sequence[str]) -> list[str]:
    """The consoles that kernel arguments name, if there are any and all of them are of these kinds."""
    named = [word.removeprefix(_ARGUMENT) for word in arguments if word.startswith(_ARGUMENT)]
    try:
        for console in named:
            normal_console(console)
    except FormatError:
        return []
    return named
