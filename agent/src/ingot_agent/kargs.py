"""Kernel arguments: a list or a text becomes single arguments, each of them checked.

A space inside double quotes belongs to the argument, as it does for the kernel. What could end the line of the boot entry that
the arguments are written to is refused.
"""

from __future__ import annotations

import re
from typing import Final

from ingot_agent.errors import Refused

_WORD: Final = re.compile(r'(?:[^\s"]|"[^"]*")+')
_PRINTABLE: Final = re.compile(r"[\x20-\x7e]*")
# The kernel's own limit of a whole command line on most architectures.
LONGEST: Final = 2048


def arguments(given: object, where: str) -> tuple[str, ...]:
    """The arguments in a list of texts or in one text; `where` names it in messages."""
    if given is None:
        return ()
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list | tuple):
        raise Refused(f"{where} is neither a list of kernel arguments nor a text with them.")
    return tuple(word for text in texts for word in _words(text, where))


def _words(text: object, where: str) -> list[str]:
    if not isinstance(text, str):
        raise Refused(f"{where} holds something that is not a text; write each kernel argument as one.")
    if not _PRINTABLE.fullmatch(text):
        raise Refused(
            f"{where} holds a character that cannot stand in a kernel argument, such as the end of a line."
        )
    if text.count('"') % 2:
        raise Refused(f"{where} holds a quotation mark that is not closed.")
    words = _WORD.findall(text)
    if any(len(word) > LONGEST for word in words):
        raise Refused(f"{where} holds a kernel argument of more than {LONGEST} characters.")
    return words
