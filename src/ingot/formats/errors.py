"""What can be wrong with bytes; the tree is drawn in the package's docstring."""

from __future__ import annotations


class FormatError(ValueError):
    """The bytes are not what the format says."""


class UnsupportedFormat(FormatError):
    """Well formed, but with a part of the format that is refused on purpose, or without one that is needed."""


class DoesNotFit(FormatError):
    """What is to be put in is longer than the room that the image has for it."""
