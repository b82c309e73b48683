"""The constants that reader and writer of ISO 9660 share (ECMA-119, and Joliet's escape sequences)."""

from __future__ import annotations

from typing import Final

SECTOR: Final = 2048
FIRST_DESCRIPTOR: Final = 16
MAGIC: Final = b"CD001"

BOOT: Final = 0
PRIMARY: Final = 1
SUPPLEMENTARY: Final = 2
TERMINATOR: Final = 255

DIRECTORY: Final = 0x02
MULTI_EXTENT: Final = 0x80

JOLIET_LEVEL_3: Final = b"%/E"
JOLIET_ESCAPES: Final = (b"%/@", b"%/C", JOLIET_LEVEL_3)
