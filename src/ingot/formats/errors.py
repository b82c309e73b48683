"""What can be wrong with bytes; the tree is drawn in the package's docstring."""

from __future__ import annotations


class FormatError(ValueError):
    """The bytes are not what the format says."""


class UnsupportedFormat(FormatError):
    """Well formed, but with a part of the format that is refused on purpose."""
