"""Bytes: reading and writing the file formats of this field. Pure; no I/O beyond a file that is handed in.

Errors:

    FormatError             the bytes are not what the format says; nothing here can mend them
    ├── UnsupportedFormat   well formed, but it uses a part of the format that is refused on purpose, or lacks one that is needed
    └── DoesNotFit          what is to be put in is longer than the room that the image has for it
"""

from ingot.formats.errors import DoesNotFit, FormatError, UnsupportedFormat

__all__ = ["DoesNotFit", "FormatError", "UnsupportedFormat"]
