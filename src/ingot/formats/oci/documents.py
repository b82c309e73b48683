"""The JSON documents of an image: index, manifest, configuration, and the descriptors that point from one to the next.

Reading takes OCI's media types and Docker's, because registries hold both; writing makes OCI's alone, the same bytes for the same
values. A document that is copied is copied as bytes: what is decoded here is for finding the way, never for writing back.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from ingot.formats.errors import FormatError, UnsupportedFormat
from ingot.formats.oci.digests import Digest, parse_digest


class MediaType:
    INDEX: Final = "application/vnd.oci.image.index.v1+json"
    MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
    CONFIG: Final = "application/vnd.oci.image.config.v1+json"
    LAYER: Final = "application/vnd.oci.image.layer.v1.tar"
    DOCKER_INDEX: Final = "application/vnd.docker.distribution.manifest.list.v2+json"
    DOCKER_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"

    INDEXES: Final = (INDEX, DOCKER_INDEX)
    MANIFESTS: Final = (MANIFEST, DOCKER_MANIFEST)
    PLAIN_LAYERS: Final = (LAYER, "application/vnd.docker.image.rootfs.diff.tar")


class _Document(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True): ...


_Kind = TypeVar("_Kind", bound=_Document)


class Platform(_Document, frozen=True, kw_only=True, omit_defaults=False):
    architecture: str
    os: str = "linux"
    variant: str | msgspec.UnsetType = msgspec.UNSET


class Descriptor(_Document, frozen=True, kw_only=True):
    """Points to a blob: what it is, and the hash and size it must have."""

    media_type: str
    digest: Digest
    size: int
    platform: Platform | None = None
    annotations: dict[str, str] = {}

    def __post_init__(self) -> None:
        parse_digest(self.digest)
        if self.size < 0:
            raise FormatError(f"the blob {self.digest} is said to have {self.size} bytes")


class Index(_Document, frozen=True, kw_only=True, omit_defaults=False):
    schema_version: int = 2
    media_type: str = MediaType.INDEX
    manifests: tuple[Descriptor, ...]
    annotations: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


class Manifest(_Document, frozen=True, kw_only=True, omit_defaults=False):
    schema_version: int = 2
    media_type: str = MediaType.MANIFEST
    config: Descriptor
    layers: tuple[Descriptor, ...]
    annotations: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


class ContainerConfig(_Document, frozen=True, kw_only=True, rename="pascal"):
    """What a container of the image runs, and the labels that say what it is."""

    user: str | None = None
    exposed_ports: dict[str, dict[str, str]] | None = None
    env: list[str] | None = None
    entrypoint: list[str] | None = None
    cmd: list[str] | None = None
    volumes: dict[str, dict[str, str]] | None = None
    working_dir: str | None = None
    labels: dict[str, str] | None = None
    stop_signal: str | None = None


class RootFs(_Document, frozen=True, kw_only=True, rename=None, omit_defaults=False):
    type: str = "layers"
    diff_ids: tuple[Digest, ...]
    """The hashes of the layers as they are when nothing is compressed, the lowest first."""


class History(_Document, frozen=True, kw_only=True, rename=None):
    created: str | None = None
    created_by: str = ""
    comment: str = ""
    empty_layer: bool = False


class ImageConfig(_Document, frozen=True, kw_only=True):
    created: str | None = None
    architecture: str
    os: str = msgspec.field(default_factory=lambda: "linux")  # a factory: the default is written all the same
    variant: str | msgspec.UnsetType = msgspec.UNSET
    config: ContainerConfig | None = None
    rootfs: RootFs
    history: tuple[History, ...] = ()


_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def encode(document: _Document) -> bytes:
    return _ENCODER.encode(document)


def decode_document(content: bytes, media_type: str) -> Index | Manifest:
    """An index or a manifest, by the media type that its descriptor or the registry tells."""
    if media_type in MediaType.INDEXES:
        return decode_index(content)
    if media_type in MediaType.MANIFESTS:
        manifest = _decoded(content, Manifest, "an image manifest")
        _check_schema(manifest.schema_version, "image manifest")
        return manifest
    raise UnsupportedFormat(f"a document of the type {media_type!r} is neither an image index nor a manifest")


def decode_index(content: bytes) -> Index:
    index = _decoded(content, Index, "an image index")
    _check_schema(index.schema_version, "image index")
    return index


def decode_config(content: bytes) -> ImageConfig:
    return _decoded(content, ImageConfig, "an image configuration")


def _check_schema(found: int, what: str) -> None:
    if found != 2:
        raise UnsupportedFormat(f"the {what} has schema version {found}; only 2 is supported")


def _decoded(content: bytes, kind: type[_Kind], what: str) -> _Kind:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, FormatError) as error:
        raise FormatError(f"this is not {what}: {error}") from error
