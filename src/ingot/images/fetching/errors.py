"""Why a file could not be had; the tree is drawn in the package's docstring."""

from __future__ import annotations


class FetchError(Exception):
    """A file could not be had."""


class Unreachable(FetchError):
    """The server could not be reached, or failed again and again. What was got is kept: another try goes on there."""


class Refused(FetchError):
    """The server says no, or what it answers is refused on purpose. The same question gets the same answer."""


class Absent(Refused):
    """The file is not there."""


class NotVerified(FetchError):
    """The bytes, or the signature, are not what was promised. Nothing of them is kept under the file's name."""


class Unwritable(FetchError):
    """This machine cannot keep the file: no room, no permission, no program to verify it with."""
