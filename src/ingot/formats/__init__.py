"""Bytes: reading and writing the file formats of this field. Pure; no I/O beyond a file that is handed in.

Errors:

    FormatError             the bytes are not what the format says; nothing here can mend them
    └── UnsupportedFormat   well formed, but it uses a part of the format that is refused on purpose
"""

from ingot.formats.errors import FormatError, UnsupportedFormat

__all__ = ["FormatError", "UnsupportedFormat"]
