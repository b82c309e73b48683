"""Putting container images together out of files, without a container engine: the same files make the same digests.

All within `Layout.writing`: `add_layer` writes an archive of files, `add_image` puts layers (on top of a base image, if there
is one) and a configuration together, `add_index` puts the images of several architectures under one name, and `Layout.point_to`
publishes the result. Everything is root's, and carries the time that is given. Layers are not compressed: the bytes of a large
file lie in the blob as they are, from a round offset on, and can be served from there.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ingot.formats.oci import (
    END,
    ContainerConfig,
    Descriptor,
    Digest,
    History,
    ImageConfig,
    Index,
    LayerEntry,
    LayerKind,
    Manifest,
    MediaType,
    Platform,
    RootFs,
    decode_config,
    encode,
    filling,
    go_name,
    head,
)
from ingot.images.region import Region
from ingot.images.release.errors import PayloadDamaged, ReleaseError
from ingot.images.release.layout import CHUNK, Layout

BEGINNING: Final = datetime.fromtimestamp(0, UTC)
"""When an image was made, for those that do not say: the same for all, so that it makes no difference."""
_LARGE: Final = 1 << 20
_ROUND: Final = 4096
"""Files from a mebibyte on begin at a multiple of this: whole pages and whole blocks of the file system."""


@dataclass(frozen=True, slots=True)
class LayerFile:
    """A file, folder or link of a layer. A region is read when the layer is written."""

    path: str
    content: bytes | Region = b""
    mode: int = 0o644
    kind: LayerKind = LayerKind.FILE
    target: str = ""
    sha256: str | None = None
    """What the content must be, where that is known; the layer is not made of anything else."""

    @property
    def size(self) -> int:
        return self.content.length if isinstance(self.content, Region) else len(self.content)


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer that a layout holds."""

    descriptor: Descriptor
    diff_id: Digest
    made_by: str


@dataclass(frozen=True, slots=True)
class BaseImage:
    """An image of one architecture in a layout, for another one to build upon."""

    layout: Layout
    manifest: Manifest
    config: ImageConfig


def tree(folder: Path, under: str = "") -> Iterator[LayerFile]:
    """All that is in a folder, in the order of its names; devices and sockets are left out: what is at rest needs none."""
    seen: dict[tuple[int, int], str] = {}
    for path in _walk(folder):
        inside = path.relative_to(folder).as_posix()
        name = f"{under}/{inside}" if under else inside
        found = path.lstat()
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISLNK(found.st_mode):
            yield LayerFile(name, mode=0o777, kind=LayerKind.SYMLINK, target=str(path.readlink()))
        elif stat.S_ISDIR(found.st_mode):
            yield LayerFile(name, mode=mode, kind=LayerKind.DIRECTORY)
        elif stat.S_ISREG(found.st_mode):
            first = seen.setdefault((found.st_dev, found.st_ino), name)
            if first == name:
                yield LayerFile(name, Region(path, 0, found.st_size), mode)
            else:
                yield LayerFile(name, mode=mode, kind=LayerKind.HARD_LINK, target=first)


def _walk(folder: Path) -> Iterator[Path]:
    """Everything below a folder, sorted, a folder before what is in it; links are not followed."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = folder / entry.name
        yield path
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(path)


def add_layer(layout: Layout, files: Iterable[LayerFile], *, made_by: str, modified: int = 0) -> Layer:
    """Write a layer with these files, and the folders that lead to them."""
    chunks = _archive(_with_folders(files), modified)
    descriptor = layout.add_chunks(chunks, MediaType.LAYER)
    return Layer(descriptor, descriptor.digest, made_by)


def add_image(
    layout: Layout,
    layers: Sequence[Layer],
    *,
    architecture: str,
    config: ContainerConfig,
    created: datetime = BEGINNING,
    base: BaseImage | None = None,
) -> Descriptor:
    """An image of one architecture (x86_64, aarch64, …). What the config leaves open is as the base has it."""
    when = created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    below = base.manifest.layers if base else ()
    if base is not None:
        if base.config.architecture != go_name(architecture):
            raise ReleaseError(f"the base image is for {base.config.architecture}, not for {architecture}")
        for descriptor in below:
            _copy(base.layout, layout, descriptor)
    made = ImageConfig(
        created=when,
        architecture=go_name(architecture),
        config=_merged(base.config.config, config) if base and base.config.config else config,
        rootfs=RootFs(
            diff_ids=((*base.config.rootfs.diff_ids,) if base else ())
            + tuple(layer.diff_id for layer in layers)
        ),
        history=(base.config.history if base else ())
        + tuple(History(created=when, created_by=layer.made_by) for layer in layers),
    )
    manifest = Manifest(
        config=layout.add(encode(made), MediaType.CONFIG),
        layers=(*below, *(layer.descriptor for layer in layers)),
    )
    return layout.add(encode(manifest), MediaType.MANIFEST)


def add_index(
    layout: Layout, images: Mapping[str, Descriptor], annotations: Mapping[str, str] | None = None
) -> Descriptor:
    """An index over the images of several architectures."""
    manifests = tuple(
        _on(image, Platform(architecture=go_name(architecture)))
        for architecture, image in sorted(images.items())
    )
    index = Index(manifests=manifests, annotations=dict(annotations or {}))
    return layout.add(encode(index), MediaType.INDEX)


def base_image(layout: Layout, architecture: str) -> BaseImage:
    """The image of an architecture in a layout, which holds an index or this one image."""
    root = layout.root()
    match layout.document(root):
        case Index(manifests=manifests):
            wanted = go_name(architecture)
            found = [
                one
                for one in manifests
                if one.platform and (one.platform.os, one.platform.architecture) == ("linux", wanted)
            ]
            if not found:
                raise ReleaseError(f"the base image in {layout.folder} has nothing for {architecture}")
            root = found[0]
    manifest = layout.document(root)
    if not isinstance(manifest, Manifest):
        raise ReleaseError(f"the base image in {layout.folder} is an index of indexes; give one of them")
    return BaseImage(layout, manifest, decode_config(layout.read(manifest.config)))


def _with_folders(files: Iterable[LayerFile]) -> Iterator[LayerFile]:
    known: set[str] = set()
    for file in files:
        above = file.path.split("/")[:-1]
        for depth in range(1, len(above) + 1):
            folder = "/".join(above[:depth])
            if folder not in known:
                known.add(folder)
                yield LayerFile(folder, mode=0o755, kind=LayerKind.DIRECTORY)
        if file.kind is LayerKind.DIRECTORY:
            if file.path in known:
                continue
            known.add(file.path)
        yield file


def _archive(files: Iterable[LayerFile], modified: int) -> Iterator[bytes]:
    at = 0
    for file in files:
        entry = LayerEntry(
            file.path, file.kind, size=file.size, mode=file.mode, target=file.target, modified=modified
        )
        begin = head(entry, at=at, content_on=_ROUND if file.size >= _LARGE else 512)
        end = filling(file.size)
        yield begin
        yield from _content(file)
        yield end
        at += len(begin) + file.size + len(end)
    yield END


def _content(file: LayerFile) -> Iterator[bytes]:
    hasher = hashlib.sha256() if file.sha256 else None
    for chunk in [file.content] if isinstance(file.content, bytes) else _read(file.content):
        if hasher is not None:
            hasher.update(chunk)
        yield chunk
    if hasher is not None and (found := hasher.hexdigest()) != file.sha256:
        where = file.content.path if isinstance(file.content, Region) else file.path
        raise ReleaseError(
            f"{where} has the sha256 {found}, but must have {file.sha256}. Fetch it again (`ingot release fetch`), or name the "
            "stream that it is from"
        )


def _read(region: Region) -> Iterator[bytes]:
    left = region.length
    with region.open() as source:
        while left:
            chunk = source.read(min(CHUNK, left))
            if not chunk:
                raise PayloadDamaged(f"{region.path} became shorter while it was read")
            left -= len(chunk)
            yield chunk


def _copy(source: Layout, target: Layout, descriptor: Descriptor) -> None:
    if target.has_whole(descriptor):
        return
    region = source.region(descriptor)
    copied = target.add_chunks(_read(region), descriptor.media_type)
    if copied.digest != descriptor.digest:
        raise PayloadDamaged(f"{region.path} was changed: its hash is {copied.digest}")


def _on(image: Descriptor, platform: Platform) -> Descriptor:
    return Descriptor(media_type=image.media_type, digest=image.digest, size=image.size, platform=platform)


def _merged(below: ContainerConfig, above: ContainerConfig) -> ContainerConfig:
    """What is said above, else what is said below; variables and labels of both."""
    return ContainerConfig(
        user=above.user or below.user,
        exposed_ports={**(below.exposed_ports or {}), **(above.exposed_ports or {})} or None,
        env=_variables(below.env, above.env),
        entrypoint=above.entrypoint or below.entrypoint,
        # A command is what an entry point is given: one of the base means nothing to another entry point.
        cmd=above.cmd or (None if above.entrypoint else below.cmd),
        volumes={**(below.volumes or {}), **(above.volumes or {})} or None,
        working_dir=above.working_dir or below.working_dir,
        labels={**(below.labels or {}), **(above.labels or {})} or None,
        stop_signal=above.stop_signal or below.stop_signal,
    )


def _variables(below: list[str] | None, above: list[str] | None) -> list[str] | None:
    said = dict(variable.partition("=")[::2] for variable in [*(below or []), *(above or [])])
    return [f"{name}={value}" for name, value in said.items()] or None
