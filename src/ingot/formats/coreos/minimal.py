"""The minimal ISO image: a live image without its root file system, which the live system then fetches over the network.

Owns the recipe that a live image carries for it (coreos/miniso.dat): which stretches of the full image it repeats, what lies
between them, and the digest of the whole. What comes out is checked against that digest, so an image that was changed gives an
error, not a wrong minimal image. `make_recipe` is what builders of images do.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import msgspec

from ingot.formats.coreos.areas import ARGUMENTS_INFO, arguments_info
from ingot.formats.coreos.bincode import Reader, number, sized
from ingot.formats.coreos.kernel_arguments import ArgumentChanges
from ingot.formats.coreos.live import LiveIso, Patch
from ingot.formats.errors import DoesNotFit, FormatError, UnsupportedFormat
from ingot.formats.iso9660 import Iso
from ingot.formats.iso9660.layout import SECTOR

RECIPE: Final = "COREOS/MINISO.DAT"
ROOTFS: Final = "IMAGES/PXEBOOT/ROOTFS.IMG"
_MAGIC: Final = b"MINISO\0\0"
_VERSION: Final = 1
_LARGEST: Final = 1 << 20
_CHUNK: Final = 1 << 20
_FILLER_MEMORY: Final = 192 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch that both images have; offsets in bytes."""

    minimal: int
    full: int
    length: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the minimal image is made of the full one."""

    pieces: tuple[Piece, ...]
    """In the order of the minimal image; none overlaps another."""
    digest: bytes
    filler: bytes
    """What lies between the pieces, compressed with xz."""

    def chunks(self, full: Iso) -> Iterator[bytes]:
        """The minimal image; the last thing it does is to raise a `FormatError` if it did not come out right."""
        digest = hashlib.sha256()
        for chunk in self._unchecked(full):
            digest.update(chunk)
            yield chunk
        if digest.digest() != self.digest:
            raise FormatError(
                f"wrong final digest: expected {self.digest.hex()}, found {digest.hexdigest()}; the ISO image was changed"
            )

    def _unchecked(self, full: Iso) -> Iterator[bytes]:
        end = self.pieces[-1].minimal + self.pieces[-1].length
        if end > full.size:
            raise FormatError(
                f"the recipe makes the minimal ISO larger than the full one: {end} and {full.size} bytes"
            )
        filler = _Filler(self.filler, limit=full.size)
        at = 0
        for piece in self.pieces:
            yield from filler.take(piece.minimal - at)
            for offset in range(piece.full, piece.full + piece.length, _CHUNK):
                yield full.bytes_at(offset, min(_CHUNK, piece.full + piece.length - offset))
            at = piece.minimal + piece.length
        yield from filler.rest()


def recipe_of(live: LiveIso) -> Recipe:
    """The recipe that an untouched live image carries."""
    if live.embedded or live.arguments != live.default_arguments:
        raise UnsupportedFormat(
            "Cannot operate on ISO with embedded customizations.\nReset it with `iso reset` and try again."
        )
    if RECIPE not in live.iso:
        raise UnsupportedFormat("This ISO image does not support extracting a minimal ISO.")
    return parse_recipe(live.iso.read(RECIPE, limit=_LARGEST))


def parse_recipe(data: bytes) -> Recipe:
    if data[:8] != _MAGIC:
        raise FormatError(
            f"{RECIPE} of the ISO image is no recipe for a minimal ISO: it does not begin with MINISO"
        )
    reader = Reader(data[8:])
    version, maker = reader.number(), reader.sized()
    if version != _VERSION:
        raise UnsupportedFormat(
            f"the recipe for a minimal ISO has version {version} (made by {maker.decode(errors='replace')}); {_VERSION} is read"
        )
    count = reader.number()
    if not 0 < count <= len(data):
        raise FormatError(f"the recipe for a minimal ISO names {count} files")
    pieces = tuple(
        Piece(reader.number() * SECTOR, reader.number() * SECTOR, reader.number()) for _ in range(count)
    )
    recipe = Recipe(pieces, reader.take(32), reader.sized())
    _check(recipe.pieces)
    return recipe


def make_recipe(full: Iso, minimal: Iso, *, maker: str) -> bytes:
    """The recipe for a minimal image, of which every file is in the full one too."""
    places = {entry.path: entry for entry in full.entries()}
    pieces = set()
    for entry in minimal.entries():
        if entry.directory or not entry.size:
            continue
        same = places.get(entry.path)
        if same is None or same.size != entry.size:
            raise FormatError(f"{entry.path} of the minimal ISO image is not the same in the full one")
        pieces.add(Piece(entry.offset, same.offset, entry.size))
    ordered = tuple(sorted(pieces, key=lambda piece: piece.minimal))
    _check(ordered)
    whole = minimal.bytes_at(0, minimal.size)
    at, filler = 0, b""
    for piece in ordered:
        filler += whole[at : piece.minimal]
        at = piece.minimal + piece.length
    packed = lzma.compress(filler + whole[at:], preset=9)
    table = b"".join(
        number(part) for p in ordered for part in (p.minimal // SECTOR, p.full // SECTOR, p.length)
    )
    head = _MAGIC + number(_VERSION) + sized(maker.encode()) + number(len(ordered))
    return head + table + hashlib.sha256(whole).digest() + sized(packed)


def minimal_changes(minimal: LiveIso, rootfs_url: str | None, append: Sequence[str] = ()) -> list[Patch]:
    """What has to change in a minimal image so that it looks for its root file system elsewhere, also after a reset.

    `append` are arguments of the kernel that are added besides; a reset takes them away.
    """
    if rootfs_url is not None and (rootfs_url.split() != [rootfs_url] or not rootfs_url.isprintable()):
        raise FormatError(f"forbidden whitespace found in '{rootfs_url}'")
    places = [word for word in minimal.arguments.split() if word.startswith("coreos.liveiso=")]
    if not places:
        raise FormatError("minimal ISO does not have coreos.liveiso= karg")
    default = ArgumentChanges(delete=places[:1]).applied_to(minimal.arguments)
    url = [f"coreos.live.rootfs_url={rootfs_url}"] if rootfs_url is not None else []
    arguments = ArgumentChanges(append=[*url, *append]).applied_to(default)
    return [*minimal.arguing(arguments), _new_default(minimal.iso, default)]


def _new_default(iso: Iso, default: str) -> Patch:
    if ARGUMENTS_INFO not in iso:
        raise UnsupportedFormat(
            "the minimal ISO does not have kargs.json, so a reset would undo what is changed in it"
        )
    entry = iso.entry(ARGUMENTS_INFO)
    info = arguments_info(iso)
    info.default = default
    text = json.dumps(msgspec.to_builtins(info), indent=2, ensure_ascii=False).encode()
    if len(text) > entry.size:
        raise DoesNotFit(
            f"the new kargs.json has {len(text)} bytes; the minimal ISO has room for {entry.size}"
        )
    return Patch(entry.offset, text.ljust(entry.size, b" "))


def _check(pieces: tuple[Piece, ...]) -> None:
    if not pieces:
        raise FormatError("the minimal ISO has no file in common with the full one")
    for first, second in pairwise(pieces):
        if first.minimal + first.length > second.minimal:
            raise FormatError(
                f"the files at bytes {first.minimal} and {second.minimal} of the minimal ISO overlap"
            )


class _Filler:
    """What lies between the pieces, decompressed as far as it is asked for."""

    def __init__(self, packed: bytes, *, limit: int) -> None:
        self._decompressor = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_FILLER_MEMORY)
        self._packed = packed
        self._left = limit

    def take(self, count: int) -> Iterator[bytes]:
        while count:
            chunk = self._next(min(count, _CHUNK))
            if not chunk:
                raise FormatError("the recipe for a minimal ISO ends too early")
            count -= len(chunk)
            yield chunk

    def rest(self) -> Iterator[bytes]:
        while chunk := self._next(_CHUNK):
            yield chunk

    def _next(self, count: int) -> bytes:
        while not self._decompressor.eof:
            given, self._packed = self._packed, b""
            try:
                chunk = self._decompressor.decompress(given, count)
            except lzma.LZMAError as error:
                raise FormatError(f"the recipe for a minimal ISO is damaged: {error}") from error
            self._left -= len(chunk)
            if self._left < 0:
                raise FormatError("the recipe makes the minimal ISO larger than the full one")
            if chunk:
                return chunk
            if self._decompressor.needs_input:
                raise FormatError("the recipe for a minimal ISO is cut short")
        return b""
