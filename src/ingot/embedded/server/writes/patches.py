"""Patches: from an object and a description of a change to the changed object.

Three languages: JSON merge patch (RFC 7386), JSON patch (RFC 6902), and strategic merge patch, which only built-in
kinds take and which merges some lists by a key. None of the functions changes what it is given.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jsonpatch
import jsonpointer

from ingot.embedded.server.documents import Document, encode
from ingot.embedded.server.errors import bad_request, too_large, unprocessable

_OPERATIONS_LIMIT: Final = 10_000
_COPIED_BYTES_LIMIT: Final = 3 * 1024 * 1024


def merged(target: object, patch: object) -> Any:
    """RFC 7386: objects are merged, null removes, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    made = dict(target) if isinstance(target, Mapping) else {}
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


# Lists that a strategic patch merges, by where they are. A key names the field that identifies an element; None means that the
# elements are plain values. All other lists are replaced.
_MERGED_LISTS: Final[Mapping[tuple[str, ...], str | None]] = {
    ("metadata", "finalizers"): None,
    ("metadata", "ownerReferences"): "uid",
    ("status", "conditions"): "type",
}


def strategically_merged(target: Document, patch: Document) -> Document:
    made = _strategic(target, patch, ())
    assert isinstance(made, dict)
    return made


def _strategic(target: object, patch: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    directive = patch.get("$patch")
    if directive == "replace":
        return _plain(patch)
    if directive == "delete":
        return {}
    made: Document = dict(target) if isinstance(target, Mapping) else {}
    if isinstance(kept := patch.get("$retainKeys"), list):
        made = {name: value for name, value in made.items() if name in kept}
    for name, value in patch.items():
        here = (*path, name)
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.partition("/")[2]
            if not isinstance(value, list):
                raise bad_request(f"{name} takes a list of the values to delete")
            made[field] = [item for item in made.get(field) or [] if item not in value]
        elif name.startswith("$"):
            continue
        elif value is None:
            made.pop(name, None)
        elif isinstance(value, Mapping):
            made[name] = _strategic(made.get(name), value, here)
        elif isinstance(value, list) and here in _MERGED_LISTS:
            made[name] = _merged_list(made.get(name) or [], value, _MERGED_LISTS[here])
        else:
            made[name] = value
    return made


def _merged_list(target: Sequence[Any], patch: Sequence[Any], key: str | None) -> list[Any]:
    if any(isinstance(item, Mapping) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, Mapping) and item.get("$patch") == "replace")]
    made = list(target)
    for item in patch:
        if key is None:
            if item not in made:
                made.append(item)
            continue
        if not isinstance(item, Mapping) or key not in item:
            raise bad_request(
                f"an element of this list is found by its {key}, and the patch has one without it"
            )
        place = next(
            (i for i, old in enumerate(made) if isinstance(old, Mapping) and old.get(key) == item[key]), None
        )
        if item.get("$patch") == "delete":
            made = [old for i, old in enumerate(made) if i != place]
        elif place is None:
            made.append(_plain(item))
        else:
            made[place] = _strategic(made[place], item, ())
    return made


def _plain(patch: Mapping[str, Any]) -> Document:
    """The values of a patch without its directives."""
    return {
        name: _plain(value) if isinstance(value, Mapping) else value
        for name, value in patch.items()
        if not name.startswith("$")
    }
