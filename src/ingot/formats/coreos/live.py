"""A CoreOS live ISO image: what is embedded in it, and the patches that change it.

Owns the meaning of the areas that `areas` finds: an archive with the Ignition config and network settings of the live system,
and the kernel's arguments. Nothing here writes. A change is a list of patches, each the whole content of an area, so that
nothing of what was there before shines through; they can be written in place, laid over a copy, or served over the image.

Finding the areas does not depend on what is in them: `reset` mends an image whose areas were left half written.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO, Final

from ingot.formats.coreos.areas import ArgumentAreas, check_apart, find_argument_areas, find_ignition_area
from ingot.formats.coreos.features import Features, features_of
from ingot.formats.errors import DoesNotFit, FormatError, UnsupportedFormat
from ingot.formats.initrd import Members, pack, read_members
from ingot.formats.iso9660 import Iso

IGNITION: Final = "config.ign"
NETWORK: Final = "etc/coreos-firstboot-network"
_UNPACKED: Final = 256 << 20
"""What an Ignition area may unpack to: more than anybody embeds, less than a machine notices."""


@dataclass(frozen=True, slots=True)
class Patch:
    """Bytes to be laid over an image."""

    offset: int
    content: bytes


class LiveIso:
    """A live image in a seekable file, which stays the caller's to close."""

    def __init__(self, file: BinaryIO) -> None:
        self.iso: Final = Iso(file, plain_names=True)
        self.iso.check_complete()
        self.ignition_area: Final = find_ignition_area(self.iso)
        self.argument_areas: Final = find_argument_areas(self.iso)
        check_apart(self.iso, self.ignition_area, self.argument_areas)

    @cached_property
    def features(self) -> Features:
        return features_of(self.iso)

    @cached_property
    def embedded(self) -> Members:
        """What the Ignition area holds; empty in an image as it is published."""
        content = self._ignition_bytes()
        if not content.strip(b"\0"):
            return {}
        try:
            return read_members(io.BytesIO(content), lambda _: True, unpacked=_UNPACKED)
        except FormatError as error:
            raise FormatError(
                f"the Ignition area of the ISO image holds no archive that can be read ({error}); `iso reset` empties it"
            ) from error

    @property
    def ignition(self) -> bytes | None:
        return self.embedded.get(IGNITION)

    @property
    def network(self) -> Members:
        """The NetworkManager keyfiles, by path in the archive."""
        return network_of(self.embedded)

    @cached_property
    def arguments(self) -> str:
        """The kernel's arguments, which are the same in all places."""
        areas = self._areas_for_arguments()
        found = [area.text(self.iso.bytes_at(area.offset, area.length)) for area in areas.areas]
        for area, text in zip(areas.areas, found, strict=True):
            if text != found[0]:
                raise FormatError(
                    f"kargs don't match at all offsets! Byte {areas.areas[0].offset} has {found[0]!r}, byte {area.offset} has "
                    f"{text!r}; `iso reset` makes them the same again"
                )
        return found[0]

    @property
    def default_arguments(self) -> str:
        return self._areas_for_arguments().default

    @property
    def customized(self) -> bool:
        """Whether somebody embedded something or changed the arguments."""
        changed = self.argument_areas is not None and self.arguments != self.default_arguments
        return self.ignition is not None or bool(self.network) or changed

    def embedding(self, members: Mapping[str, bytes]) -> list[Patch]:
        """The change that leaves exactly these members in the Ignition area; no members leave zeros."""
        area = self.ignition_area
        if members and members == self.embedded:
            return []
        packed = pack(members, limit=area.length) if members else b""
        if len(packed) > area.length:
            raise DoesNotFit(
                f"Compressed initramfs is too large: {len(packed)} > {area.length}. Let a short config fetch the rest"
            )
        return self._changes(Patch(area.offset, packed.ljust(area.length, b"\0")))

    def arguing(self, arguments: str) -> list[Patch]:
        """The change that leaves these kernel arguments in all places."""
        areas = self._areas_for_arguments()
        text = arguments.strip()
        size = len(text.encode())
        if size >= areas.length:
            raise DoesNotFit(f"kargs too large for area: {size + 1} vs {areas.length} bytes")
        return self._changes(*(Patch(area.offset, area.content(text)) for area in areas.areas))

    def reset(self) -> list[Patch]:
        """The change that leaves the image as it was published."""
        area = self.ignition_area
        patches = self._changes(Patch(area.offset, bytes(area.length)))
        return patches + (self.arguing(self.default_arguments) if self.argument_areas else [])

    def _changes(self, *patches: Patch) -> list[Patch]:
        return [
            patch for patch in patches if self.iso.bytes_at(patch.offset, len(patch.content)) != patch.content
        ]

    def _ignition_bytes(self) -> bytes:
        return self.iso.bytes_at(self.ignition_area.offset, self.ignition_area.length)

    def _areas_for_arguments(self) -> ArgumentAreas:
        if self.argument_areas is None:
            raise UnsupportedFormat("No karg embed areas found; old or corrupted CoreOS ISO image.")
        return self.argument_areas


def network_of(members: Mapping[str, bytes]) -> Members:
    """The NetworkManager keyfiles among the members of an archive."""
    return {path: content for path, content in members.items() if path.startswith(f"{NETWORK}/")}
