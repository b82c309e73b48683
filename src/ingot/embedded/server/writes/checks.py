"""Whether a write fits: what it says it is, where it goes, which state it was decided on, which part it may touch.

Functions that refuse, or that say what a rule needs to know; none of them stores anything.
"""

from __future__ import annotations

import copy

from ingot.embedded.server.documents import Document, dig, encode
from ingot.embedded.server.errors import (
    Cause,
    Unreadable,
    bad_request,
    cause,
    conflict,
    forbidden,
    invalid,
    modified_meanwhile,
    not_found,
)
from ingot.embedded.server.kinds.builtins import NAMESPACES
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.storage.objects import Stored, is_terminating
from ingot.embedded.server.writes import metadata as meta


def count_generation(kind: Kind, new: Document, old: Document) -> None:
    """The generation moves when what is wanted changes; the status says what is, where it is written apart."""
    apart = kind.has_status
    if "generation" in new["metadata"] and meta.content(new, with_status=not apart) != meta.content(
        old, with_status=not apart
    ):
        new["metadata"]["generation"] += 1


def check_type(kind: Kind, document: Document) -> None:
    """What is sent says what it is. A built-in kind may leave that out."""
    version, name = document.get("apiVersion") or "", document.get("kind") or ""
    if kind.built_in:
        version, name = version or kind.api_version, name or kind.kind
    if (version, name) == (kind.api_version, kind.kind):
        return
    if kind.built_in:
        raise bad_request(f'{name} in version "{version}" cannot be handled as a {kind.kind}')
    if version != kind.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
        )
    raise invalid(kind, dig(document, "metadata", "name") or "", _wrong_type(kind, document))


def check_patched_type(kind: Kind, document: Document, subresource: str) -> None:
    """A patch leaves an object of its kind; one of the status does not reach the type of a kind that somebody defined."""
    name = document.get("kind")
    if not isinstance(name, str | None) or (not name and not kind.built_in):
        raise Unreadable(kind.kind, kind.version, "it does not say its kind")
    if kind.built_in:
        version = document.get("apiVersion") or kind.api_version
        if (version, name or kind.kind) != (kind.api_version, kind.kind):
            raise Unreadable(kind.kind, kind.version, f"it is a {name} of {version} now")
    elif subresource != "status" and (problems := _wrong_type(kind, document)):
        raise invalid(kind, dig(document, "metadata", "name") or "", problems)


def _wrong_type(kind: Kind, document: Document) -> list[Cause]:
    wanted = {"kind": kind.kind, "apiVersion": kind.api_version}
    return [
        cause("Invalid", name, f"must be {word}", shown=encode(document.get(name) or "").decode())
        for name, word in wanted.items()
        if document.get(name) != word
    ]


def check_place(kind: Kind, metadata: Document, namespace: str, *, name: str = "") -> None:
    """The document may leave out where it is, but it may not say something else than the URL."""
    if kind.namespaced:
        if metadata.setdefault("namespace", namespace) != namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request "
                f"({metadata['namespace']} is not {namespace})"
            )
    else:
        metadata.pop("namespace", None)
    if name and metadata.setdefault("name", name) != name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        )


def check_namespace(kind: Kind, name: str, there: Stored | None) -> None:
    """Something new can be made in a namespace that is there and is to stay."""
    if there is None:
        raise not_found(NAMESPACES, name)
    if is_terminating(there.document()):
        words = f"unable to create new content in namespace {name} because it is being terminated"
        terminating = Cause(
            "metadata.namespace", "NamespaceTerminating", f"namespace {name} is being terminated"
        )
        raise forbidden(f"{kind.resource} is forbidden: {words}", causes=[terminating])


def check_preconditions(
    kind: Kind, name: str, metadata: Document, current: Stored, *, patching: bool, subresource: str
) -> None:
    """The state that a write was decided on is the one that is there. A custom kind insists on being told which."""
    version = metadata.pop("resourceVersion", "")
    if version in ("", "0") and not kind.built_in:
        words = "must be specified for an update"
        raise invalid(kind, name, [cause("Invalid", "metadata.resourceVersion", words, shown="0")])
    # A patch does not bring a condition, it changes; and what it says in a status about the rest is not heard.
    if (uid := metadata.get("uid")) and not (patching and subresource in ("", "status")):
        _check_uid(kind, name, uid, current)
    if version not in ("", "0", str(current.version)):
        raise modified_meanwhile(kind, name)


def check_immutable(kind: Kind, metadata: Document, old: Document) -> None:
    """What the server owns may be left out or repeated. What else a client says about it is ignored or, of these, refused."""
    wrong = [
        cause("Invalid", f"metadata.{name}", "field is immutable", shown=encode(metadata[name]).decode())
        for name in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")
        if name in metadata and metadata[name] != old.get(name)
        # When it ends, an object that is ending says itself.
        if name != "deletionTimestamp" or name not in old
    ]
    if wrong:
        raise invalid(kind, metadata.get("name", ""), wrong)


def check_deletion(kind: Kind, name: str, current: Stored, *, uid: str, version: str) -> None:
    if uid:
        _check_uid(kind, name, uid, current)
    if version and version != str(current.version):
        raise conflict(
            kind,
            name,
            f"Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {current.version}",
        )


def _check_uid(kind: Kind, name: str, uid: str, current: Stored) -> None:
    if uid != current.uid:
        raise conflict(
            kind, name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current.uid}"
        )


def own_part_only(kind: Kind, new: Document, old: Document, subresource: str) -> Document:
    """A write to the main resource leaves the status alone, and a write to the status leaves everything else alone. An
    action is the server's own deed and may touch both."""
    if subresource == "status":
        kept = {**old, "metadata": dict(old["metadata"])}
        kept.pop("status", None)
        return {**kept, "status": new["status"]} if new.get("status") is not None else kept
    if kind.has_status and subresource not in kind.actions:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    return new


def unknown_unheard(kind: Kind, new: Document, old: Document, subresource: str = "") -> list[str]:
    """The fields that nobody knows in the part that `own_part_only` will not let through. They are told all the same."""
    if subresource == "status":
        part = {name: value for name, value in new.items() if name not in ("metadata", "status")}
    elif kind.has_status and not subresource and "status" in new:
        part = {"status": new["status"]}
    else:
        return []
    changed = {name: value for name, value in part.items() if value != old.get(name)}
    return kind.shape.conform(copy.deepcopy(changed), defaults=False) if changed else []


def was_so_before(found: Cause, new: Document, old: Document | None) -> bool:
    """Whether a part that is wrong is untouched by this change: a rule that got stricter must not hold finalizers."""
    part = found.field.partition(".")[0].partition("[")[0]
    return old is not None and part in old and new.get(part) == old[part]
