"""The volume descriptors at the head of an ISO 9660 image, one sector each.

Owns what they say about the whole image: its names, its size, where its root is. Leaves directories to `reader`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.iso9660 import layout

_MAX_DESCRIPTORS: Final = 64


@dataclass(frozen=True, slots=True)
class Descriptor:
    """One volume descriptor; which fields mean something depends on its kind."""

    sector: bytes

    @property
    def kind(self) -> int:
        return self.sector[0]

    @property
    def version(self) -> int:
        return self.sector[6]

    @property
    def boot_system(self) -> str:
        return _text(self.sector[7:39])

    @property
    def boot_id(self) -> str:
        return _text(self.sector[39:71])

    @property
    def system(self) -> str:
        return _text(self.sector[8:40])

    @property
    def label(self) -> str:
        return _text(self.sector[40:72])

    @property
    def sectors(self) -> int:
        """How long the image says it is. The file may be longer: isohybrid pads it."""
        return int.from_bytes(self.sector[80:84], "little")

    @property
    def root(self) -> bytes:
        """The directory record of the root."""
        return self.sector[156:190]

    @property
    def joliet(self) -> bool:
        return self.kind == layout.SUPPLEMENTARY and self.sector[88:91] in layout.JOLIET_ESCAPES


def read_descriptors(read: Callable[[int, int], bytes]) -> list[Descriptor]:
    """All descriptors up to the terminator; `read` takes offset and length. There is a primary one among them."""
    found: list[Descriptor] = []
    for number in range(layout.FIRST_DESCRIPTOR, layout.FIRST_DESCRIPTOR + _MAX_DESCRIPTORS):
        descriptor = Descriptor(read(number * layout.SECTOR, layout.SECTOR))
        if descriptor.sector[1:6] != layout.MAGIC:
            raise FormatError("not an ISO 9660 image: no volume descriptor where one belongs")
        if descriptor.kind in (layout.BOOT, layout.PRIMARY) and descriptor.version != 1:
            raise FormatError(
                f"the ISO image has a volume descriptor of version {descriptor.version}; 1 is known"
            )
        if descriptor.kind == layout.TERMINATOR:
            break
        found.append(descriptor)
    if not any(descriptor.kind == layout.PRIMARY for descriptor in found):
        raise FormatError("not an ISO 9660 image: it has no primary volume descriptor")
    return found


def _text(field: bytes) -> str:
    return field.split(b"\0")[0].decode("ascii", "replace").rstrip(" ")
