"""Checksums of images: hexadecimal digits, as many as the algorithm has. (A URL in their place is a matter of `urls`.)"""

from __future__ import annotations

import re
from typing import Final

DIGITS: Final = {"md5": 32, "sha256": 64, "sha512": 128}
_HEXADECIMAL: Final = re.compile(r"[0-9a-fA-F]+")


def is_url(checksum: str) -> bool:
    return "://" in checksum


def algorithm(checksum: str, algorithm: str | None) -> str:
    """The algorithm of a checksum; "" where neither its name nor its length says."""
    if algorithm not in (None, "", "auto"):
        return algorithm
    return next((name for name, digits in DIGITS.items() if digits == len(checksum)), "")


def problem_with(checksum: str, named: str | None) -> str | None:
    """`named`: the algorithm, if the user says which."""
    if not _HEXADECIMAL.fullmatch(checksum):
        return "a checksum is written in hexadecimal digits."
    found = algorithm(checksum, named)
    if not found:
        lengths = ", ".join(f"{name} {digits}" for name, digits in DIGITS.items())
        return f"it has {len(checksum)} digits, and checksums have so many: {lengths}."
    if found not in DIGITS:
        return f"the algorithm {found!r} is not one of {', '.join(DIGITS)}."
    if len(checksum) != DIGITS[found]:
        return f"it has {len(checksum)} digits, and a {found} checksum has {DIGITS[found]}."
    return None
