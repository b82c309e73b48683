"""Building a release payload: for each architecture an image with ISO image, stream metadata and our tool; an index over them.

What comes out depends on what goes in alone: the same files make the same digests, on any day and any machine. The ISO image has
a layer of its own, the topmost, so that a payload with a newer tool shares it with the one before. Its hash must be the one in
the stream metadata, or what else the caller knows; it is taken over the very bytes that go into the payload.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ingot.formats import FormatError
from ingot.formats.coreos import LiveIso
from ingot.formats.oci import ContainerConfig, Descriptor, go_name
from ingot.formats.streams import Stream, StreamArtifact, parse_stream
from ingot.images.region import Region
from ingot.images.release.assembling import (
    BEGINNING,
    BaseImage,
    Layer,
    LayerFile,
    add_image,
    add_index,
    add_layer,
)
from ingot.images.release.errors import ReleaseError
from ingot.images.release.layout import Layout
from ingot.images.release.payload import FOLDER, SHA256_LABEL, iso_name
from ingot.images.release.tool import OURS, tool_version

STREAM_FILE: Final = "coreos-stream.json"
_TITLE: Final = "CoreOS release payload"

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingredients:
    """What the image of one architecture is made of."""

    iso: Path
    sha256: str
    """What the ISO image must be."""
    tool: Sequence[LayerFile] = ()
    """Files of our tool and of the real coreos-installer; none: the image only carries the ISO image."""
    base: BaseImage | None = None

    @property
    def has_tool(self) -> bool:
        """Whether our own tool is among the files."""
        return any(file.path == OURS for file in self.tool)


@dataclass(frozen=True, slots=True)
class StreamFile:
    """The metadata of a stream, as it was published and as it is read."""

    content: bytes
    stream: Stream = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stream", parse_stream(self.content))

    def iso_sha256(self, architecture: str) -> str:
        return self.stream.artifact(architecture=architecture, format="iso").sha256

    def architecture_of(self, sha256: str) -> str | None:
        """The architecture whose ISO image has this hash."""
        return next((iso.architecture for iso in self.isos() if iso.sha256 == sha256), None)

    def isos(self) -> Iterator[StreamArtifact]:
        """The ISO images of all architectures that have one."""
        for architecture in self.stream.architectures:
            try:
                yield self.stream.artifact(architecture=architecture, format="iso")
            except FormatError:
                continue  # nothing for bare metal, or no hash


def build(
    layout: Layout,
    ingredients: Mapping[str, Ingredients],
    stream: StreamFile | None = None,
    tell: Tell = lambda _: None,
) -> Descriptor:
    """Put a payload together in a folder and publish it there."""
    if not ingredients:
        raise ReleaseError("a release payload needs at least one ISO image")
    for architecture in ingredients:
        go_name(architecture)  # before a gigabyte is copied
    versions = {architecture: _version(one.iso) for architecture, one in ingredients.items()}
    created = _created(stream)
    with layout.writing():
        described = _stream_layer(layout, stream)
        images = {}
        for architecture, one in sorted(ingredients.items()):
            tell(f"{architecture}: {versions[architecture]}")
            layers = [*_tool_layer(layout, one), *described, _iso_layer(layout, architecture, one)]
            config = ContainerConfig(
                entrypoint=[f"/{OURS}"] if one.has_tool else None,
                labels=_labels(architecture, versions[architecture], one.sha256, stream),
            )
            images[architecture] = add_image(
                layout, layers, architecture=architecture, config=config, created=created, base=one.base
            )
        root = add_index(layout, images, {"org.opencontainers.image.title": _TITLE})
        layout.point_to(root)
    return root


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version(iso: Path) -> str:
    try:
        with iso.open("rb") as file:
            return LiveIso(file).iso.label
    except FormatError as error:
        raise ReleaseError(f"{iso}: {error}") from error


def _created(stream: StreamFile | None) -> datetime:
    """When the stream was published: another day of building makes no other image."""
    if stream is None:
        return BEGINNING
    try:
        found = datetime.fromisoformat(stream.stream.last_modified)
    except ValueError:
        return BEGINNING
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _tool_layer(layout: Layout, one: Ingredients) -> list[Layer]:
    if not one.tool:
        return []
    return [add_layer(layout, one.tool, made_by=f"ingot release build: ingot {tool_version()}")]


def _stream_layer(layout: Layout, stream: StreamFile | None) -> list[Layer]:
    if stream is None:
        return []
    file = LayerFile(f"{FOLDER}/{STREAM_FILE}", stream.content)
    return [add_layer(layout, [file], made_by="ingot release build: stream metadata")]


def _iso_layer(layout: Layout, architecture: str, one: Ingredients) -> Layer:
    path = f"{FOLDER}/{iso_name(architecture)}"
    files = [
        LayerFile(f"{path}.sha256", one.sha256.encode()),
        LayerFile(path, Region.whole(one.iso), sha256=one.sha256),
    ]
    return add_layer(layout, files, made_by=f"ingot release build: {iso_name(architecture)}")


def _labels(architecture: str, version: str, sha256: str, stream: StreamFile | None) -> dict[str, str]:
    labels = {
        "org.opencontainers.image.title": _TITLE,
        "org.opencontainers.image.version": version,
        "ingot.coreos.architecture": architecture,
        SHA256_LABEL: sha256,
    }
    return labels | ({"ingot.coreos.stream": stream.stream.name} if stream else {})
