"""Container images as the Open Container Initiative has them: documents, digests, references, layers' tar archives.

Pure. `documents` is what the JSON says, `layers` the archive of a layer, `references` how a person names an image,
`architectures` the two families of names that architectures have. Where the bytes lie and how they travel is for others.
"""

from ingot.formats.oci.architectures import go_name, kernel_name
from ingot.formats.oci.digests import Digest, digest_of, parse_digest
from ingot.formats.oci.documents import (
    ContainerConfig,
    Descriptor,
    History,
    ImageConfig,
    Index,
    Manifest,
    MediaType,
    Platform,
    RootFs,
    decode_config,
    decode_document,
    decode_index,
    encode,
)
from ingot.formats.oci.layers import END, LayerEntry, LayerKind, filling, head, read_entries
from ingot.formats.oci.references import Reference, parse_reference

__all__ = [
    "END",
    "ContainerConfig",
    "Descriptor",
    "Digest",
    "History",
    "ImageConfig",
    "Index",
    "LayerEntry",
    "LayerKind",
    "Manifest",
    "MediaType",
    "Platform",
    "Reference",
    "RootFs",
    "decode_config",
    "decode_document",
    "decode_index",
    "digest_of",
    "encode",
    "filling",
    "go_name",
    "head",
    "kernel_name",
    "parse_digest",
    "parse_reference",
    "read_entries",
]
