"""Patches: from an object and a description of a change to the changed object.

Two languages that need no schema: JSON merge patch (RFC 7386) and JSON patch (RFC 6902). `strategic` has the third.
Neither function changes what it is given.
"""

from __future__ import annotations

import copy
from typing import Any, Final

import jsonpatch
import jsonpointer

from ingot.embedded.server.documents import Document, encode
from ingot.embedded.server.errors import bad_request, too_large, unprocessable

_OPERATIONS_LIMIT: Final = 10_000
_COPIED_BYTES_LIMIT: Final = 3 * 1024 * 1024


def merged(target: object, patch: object) -> Any:
    """RFC 7386: objects are merged, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    made = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = merged(made.get(name), value)
    return made


def json_patched(target: Document, operations: object) -> Document:
    """RFC 6902. A failed `test`, or a path that is not there, is an answer for the client, not an accident."""
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise bad_request("a JSON patch is a list of operations, each an object with op and path")
    if len(operations) > _OPERATIONS_LIMIT:
        raise too_large(
            f"a JSON patch may hold {_OPERATIONS_LIMIT} operations, this one has {len(operations)}"
        )
    made: Any = copy.deepcopy(target)
    copied = 0
    try:
        for operation in operations:
            if operation.get("op") == "copy":
                # Copies of copies double each time: a small patch could fill the memory.
                copied += len(encode(jsonpointer.resolve_pointer(made, operation["from"])))
                if copied > _COPIED_BYTES_LIMIT:
                    raise too_large(
                        f"the copy operations of a JSON patch may copy {_COPIED_BYTES_LIMIT} bytes"
                    )
            if operation.get("op") == "replace" and _is_in_object(made, operation["path"]):
                # Like Kubernetes: to replace a field of an object that is not there is to add it.
                operation = {**operation, "op": "add"}
            made = jsonpatch.JsonPatch([operation]).apply(made, in_place=True)
    except jsonpatch.JsonPatchTestFailed:
        # What was found instead may be a secret, so it is not told.
        raise unprocessable(
            f"the JSON patch was not applied: its test of {operation.get('path')} failed"
        ) from None
    except jsonpatch.JsonPatchException as error:
        raise unprocessable(f"the JSON patch cannot be applied: {error}") from None
    except (jsonpointer.JsonPointerException, KeyError, TypeError, ValueError):
        # These errors quote the part of the object that was searched in vain.
        raise unprocessable(
            f"the JSON patch cannot be applied: there is no place in the object where the {operation.get('op')} "
            f"of {operation.get('path')} could be done"
        ) from None
    if not isinstance(made, dict):
        raise unprocessable("the JSON patch leaves something that is not an object")
    return made


def _is_in_object(document: object, path: str) -> bool:
    parent, part = jsonpointer.JsonPointer(path).to_last(document)
    return part is not None and isinstance(parent, dict)
