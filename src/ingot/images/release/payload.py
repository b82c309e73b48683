"""A release payload, opened for serving: where the ISO image of each architecture lies in the folder, with nothing unpacked.

Opening reads and verifies the documents, which are small, and finds the images in their layers; it takes milliseconds. Whether
a gigabyte of image is still what its hash says, `verify` tells by reading it: before it is served for the first time, and again
in the background (`checking`). The regions stay good when the folder gets another payload: see `layout`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ingot.formats import FormatError
from ingot.formats.coreos import LiveIso
from ingot.formats.oci import (
    Descriptor,
    Digest,
    ImageConfig,
    Index,
    LayerEntry,
    LayerKind,
    Manifest,
    MediaType,
    decode_config,
    digest_of,
    go_name,
    kernel_name,
    read_entries,
)
from ingot.images.region import Region
from ingot.images.release.errors import PayloadDamaged, PayloadError
from ingot.images.release.layout import CHUNK, MEND, Layout

FOLDER: Final = "coreos"
SHA256_LABEL: Final = "ingot.coreos.iso.sha256"
_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)

Pace = Callable[[int], None]
"""Told after each piece how many bytes were read; it may take its time, and may raise."""


@dataclass(frozen=True, slots=True)
class PayloadImage:
    """The live ISO image of an architecture."""

    architecture: str
    version: str
    """The volume id, such as fedora-coreos-44.20260707.3.1."""
    sha256: str
    iso: Region


@dataclass(frozen=True, slots=True)
class _Blob:
    """Bytes on disk, and the hash that they must have."""

    region: Region
    digest: Digest


@dataclass(frozen=True, slots=True)
class _Found:
    image: PayloadImage
    blobs: tuple[_Blob, ...]
    """All that the image consists of; the ISO image lies in one of them."""


class Payload:
    """A folder with a payload as it was when it was opened."""

    def __init__(self, folder: Path, digest: Digest, found: Iterable[_Found]) -> None:
        self.folder: Final = folder
        self.digest: Final[str] = digest
        """Changes exactly when the payload does."""
        self._found: Final = {one.image.architecture: one for one in found}
        self.images: Final[Mapping[str, PayloadImage]] = MappingProxyType(
            {architecture: self._found[architecture].image for architecture in sorted(self._found)}
        )
        if not self.images:
            raise PayloadError(f"{folder} holds no image for an architecture that is known here")

    @classmethod
    def open(cls, folder: Path) -> Payload:
        """A payload, or a folder of its files: coreos-ARCH.iso, each with its hash in coreos-ARCH.iso.sha256."""
        try:
            if not (folder / "index.json").exists() and any(folder.glob(iso_name("*"))):
                return _of_files(folder)
            layout = Layout(folder)
            root = layout.root()
            found = [_in_layout(layout, *each) for each in _manifests(layout, root)]
            return cls(folder, root.digest, found)
        except OSError as error:
            raise PayloadError(f"{error.filename or folder}: {error.strerror}") from error

    def image(self, architecture: str) -> PayloadImage:
        """The image of an architecture; an error that names those that are there, where there is none."""
        if architecture not in self.images:
            raise PayloadError(
                f"{self.folder} has no image for {architecture}; it has {', '.join(self.images)}"
            )
        return self.images[architecture]

    def verify(self, architecture: str, pace: Pace = lambda _: None) -> None:
        """Read all of an architecture's image and compare its hashes. Takes seconds, and the caller's thread."""
        image = self.image(architecture)
        for blob in self._found[architecture].blobs:
            inside = image.iso if image.iso.path == blob.region.path else None
            try:
                whole, iso = _hashes(blob.region, inside, pace)
            except OSError as error:
                raise PayloadDamaged(
                    f"{blob.region.path} cannot be read ({error.strerror}). {MEND}"
                ) from error
            if whole != blob.digest:
                raise PayloadDamaged(f"{blob.region.path} was changed: its hash is {whole}. {MEND}")
            if iso not in (None, image.sha256):
                raise PayloadDamaged(
                    f"the ISO image for {architecture} in {self.folder} has the hash {iso}, not {image.sha256}. Build the "
                    "payload again"
                )


def _of_files(folder: Path) -> Payload:
    found = []
    for path in sorted(folder.glob(iso_name("*"))):
        architecture = path.name.removeprefix("coreos-").removesuffix(".iso")
        try:
            go_name(architecture)
        except FormatError:
            continue
        noted = path.with_name(f"{path.name}.sha256")
        if not noted.exists():
            raise PayloadError(f"{noted} is missing: without its hash, an ISO image is not used")
        iso = Region.whole(path)
        image = _image(folder, architecture, iso, _noted(Region.whole(noted)))
        found.append(_Found(image, (_Blob(iso, Digest(f"sha256:{image.sha256}")),)))
    told = "".join(f"{one.image.architecture} {one.image.sha256}\n" for one in found)
    return Payload(folder, digest_of(told.encode()), found)


def _in_layout(layout: Layout, architecture: str, manifest: Manifest) -> _Found:
    path = f"{FOLDER}/{iso_name(architecture)}"
    files = _files(layout, manifest, {path, f"{path}.sha256"})
    iso, noted = files.get(path), files.get(f"{path}.sha256")
    if iso is None:
        raise PayloadError(_without_iso(layout, manifest, path, architecture))
    sha256 = _labels(_config(layout, manifest)).get(SHA256_LABEL) or (_noted(noted) if noted else "")
    image = _image(layout.folder, architecture, iso, sha256)
    parts = (manifest.config, *manifest.layers)
    return _Found(image, tuple(_Blob(layout.region(part), part.digest) for part in parts))


def _image(folder: Path, architecture: str, iso: Region, sha256: str) -> PayloadImage:
    if not _SHA256.fullmatch(sha256):
        raise PayloadError(f"{folder} does not say what the hash of its ISO image for {architecture} is")
    try:
        with iso.open() as file:
            version = LiveIso(file).iso.label
    except FormatError as error:
        raise PayloadError(f"{iso_name(architecture)} in {folder}: {error}") from error
    return PayloadImage(architecture, version, sha256, iso)


def iso_name(architecture: str) -> str:
    return f"coreos-{architecture}.iso"


def _manifests(layout: Layout, root: Descriptor) -> Iterator[tuple[str, Manifest]]:
    match layout.document(root):
        case Index(manifests=children):
            for child in children:
                if child.media_type in MediaType.MANIFESTS:
                    yield from _manifests(layout, child)
        case Manifest() as manifest:
            config = _config(layout, manifest)
            try:
                architecture = kernel_name(config.architecture)
            except FormatError:
                return  # signatures and the like are kept beside images as if they were for a machine of their own
            yield architecture, manifest


def _files(layout: Layout, manifest: Manifest, wanted: Set[str]) -> dict[str, Region]:
    """Where files lie, in layers that can be looked into. From the top, so that most layers need not be looked into at all."""
    found: dict[str, Region] = {}
    for layer in reversed(manifest.layers):
        if layer.media_type in MediaType.PLAIN_LAYERS and wanted - found.keys():
            region = layout.region(layer)
            missing = wanted - found.keys()
            for entry in _entries(region):
                if entry.kind is LayerKind.FILE and entry.path in missing:
                    found[entry.path] = region.part(entry.offset, entry.size)
    return found


def _entries(region: Region) -> Iterator[LayerEntry]:
    try:
        with region.open() as file:
            yield from read_entries(file)
    except FormatError as error:
        raise PayloadDamaged(f"{region.path}: {error}. {MEND}") from error


def _without_iso(layout: Layout, manifest: Manifest, path: str, architecture: str) -> str:
    text = f"the image for {architecture} in {layout.folder} has no {path}"
    if all(layer.media_type in MediaType.PLAIN_LAYERS for layer in manifest.layers):
        return text
    return (
        f"{text} in a layer that is not compressed. Somebody built or copied it with compressed layers, from which no file can "
        "be served; build it with `ingot release build`, and copy it with `ingot release mirror`"
    )


def _config(layout: Layout, manifest: Manifest) -> ImageConfig:
    try:
        return decode_config(layout.read(manifest.config))
    except FormatError as error:
        raise PayloadError(f"{layout.path(manifest.config.digest)}: {error}") from error


def _labels(config: ImageConfig) -> Mapping[str, str]:
    return (config.config and config.config.labels) or {}


def _noted(region: Region) -> str:
    with region.open() as file:
        words = file.read(4096).decode("ascii", "replace").split()
    return words[0].lower() if words else ""


def _hashes(region: Region, iso: Region | None, pace: Pace) -> tuple[Digest, str | None]:
    """The digest of a blob, and the hash of the part of it that is an ISO image, in one go."""
    whole, inside = hashlib.sha256(), hashlib.sha256()
    begin, end = (iso.offset, iso.offset + iso.length) if iso else (0, 0)
    at = 0
    with region.open() as file:
        while chunk := memoryview(file.read(CHUNK)):
            whole.update(chunk)
            inside.update(chunk[max(0, begin - at) : max(0, end - at)])
            at += len(chunk)
            pace(len(chunk))
    return Digest(f"sha256:{whole.hexdigest()}"), inside.hexdigest() if iso else None
