"""From `kubectl apply` to `kubectl apply --server-side` without a conflict.

Client-side apply leaves the configuration in an annotation and owns its fields as an updater. When kubectl then applies
on the server, those fields are its own: a conflict about one that still is as the annotation says is none. The
annotation is kept up to date as long as it is there, so that the way back is open too.
"""

from __future__ import annotations

from typing import Final

from ingot.embedded.server.documents import Document, decode, dig, encode
from ingot.embedded.server.writes.apply import fieldset
from ingot.embedded.server.writes.apply.comparing import compare
from ingot.embedded.server.writes.apply.fieldset import FieldSet, Path
from ingot.embedded.server.writes.apply.merging import problems
from ingot.embedded.server.writes.apply.ownership import fields_of
from ingot.embedded.server.writes.apply.structure import Structure

# The manager under which kubectl applies unless it is told otherwise.
KUBECTL: Final = "kubectl"
_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
_ANNOTATIONS_LIMIT: Final = 256 * 1024


def own_fields(live: Document, structure: Structure) -> FieldSet:
    """The fields that client-side apply set and that are still so."""
    text = dig(live, "metadata", "annotations", _ANNOTATION)
    if not text:
        return {}
    try:
        config = decode(str(text).encode())
    except (ValueError, RecursionError):
        return {}
    if config.get("apiVersion") != live.get("apiVersion") or problems(config, structure):
        return {}
    delta = compare(config, live, structure)
    return fieldset.difference(
        fieldset.difference(fields_of(config, structure), delta.written), delta.removed
    )


def is_in(path: Path, fields: FieldSet) -> bool:
    for step in path[:-1]:
        fields = fields.get(step) or {}
    return fieldset.has(fields, path[-1])


def follow(made: Document, config: Document) -> Document:
    """The object, with the annotation saying what was applied now, if it has one."""
    annotations = dig(made, "metadata", "annotations") or {}
    if not annotations.get(_ANNOTATION):
        return made
    metadata = {**config.get("metadata", {})}
    if "annotations" in metadata:
        own = {**(metadata["annotations"] or {})}
        own.pop(_ANNOTATION, None)
        metadata["annotations"] = own
        if not own:
            del metadata["annotations"]
    text = encode(dict(sorted({**config, "metadata": metadata}.items()))).decode() + "\n"
    annotations = {**annotations, _ANNOTATION: text}
    if sum(len(key) + len(value) for key, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        del annotations[_ANNOTATION]
    return {**made, "metadata": {**made["metadata"], "annotations": annotations}}
