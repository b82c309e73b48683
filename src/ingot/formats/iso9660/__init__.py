"""ISO 9660: read any image whose names are plain, Joliet or Rock Ridge; write small ones with Joliet names."""

from ingot.formats.iso9660.reader import Entry, Iso
from ingot.formats.iso9660.writer import build_iso

__all__ = ["Entry", "Iso", "build_iso"]
