"""AdmissionReviews: what a webhook is asked, and what its answer means.

Pure. An answer that cannot be understood is `Misbehaved`; what follows from that is up to the webhook's failure policy. A denial
is an answer like any other.
"""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ingot.embedded.server.documents import Document
from ingot.embedded.server.errors import Refused, ServerError
from ingot.embedded.server.kinds.builtins import NAMESPACES
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.writes.webhooks.attempt import Attempt, User
from ingot.embedded.server.writes.webhooks.hooks import Hook

_VERSION: Final = "admission.k8s.io/v1"


class Misbehaved(ServerError):
    """A webhook could not be asked, or its answer makes no sense; the sentence goes to the client."""


class _Response(msgspec.Struct, rename="camel"):
    allowed: bool = False
    uid: str = ""
    status: dict[str, Any] | None = None
    patch: str | None = None
    patch_type: str | None = None
    warnings: list[str] | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    response: _Response | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a webhook says. `patch` is a list of JSON Patch operations, None where it changes nothing."""

    allowed: bool
    status: Document
    patch: list[Any] | None
    warnings: Sequence[str]


def review(attempt: Attempt, kind: Kind, new: Document | None, old: Document | None) -> Document:
    """The question. `kind` is in the version that the webhook understands; the documents are turned into it."""
    # To Kubernetes, a namespace is in itself.
    namespace = attempt.key.name if attempt.kind is NAMESPACES else attempt.key.namespace
    request: Document = {
        "uid": str(uuid.uuid4()),
        "kind": _kind(kind),
        "resource": _resource(kind),
        **({"subResource": attempt.subresource} if attempt.subresource else {}),
        "requestKind": _kind(attempt.kind),
        "requestResource": _resource(attempt.kind),
        **({"requestSubResource": attempt.subresource} if attempt.subresource else {}),
        **({"name": attempt.key.name} if attempt.key.name else {}),
        **({"namespace": namespace} if namespace else {}),
        "operation": attempt.operation,
        "userInfo": _about(attempt.user),
        "object": _in_version(_versioned(new, old), kind),
        "oldObject": _in_version(old, kind),
        "dryRun": attempt.dry_run,
        "options": _options(attempt),
    }
    return {
        "kind": "AdmissionReview",
        "apiVersion": _VERSION,
        "request": request,
    }


def verdict(asked: Document, body: bytes, *, may_patch: bool) -> Verdict:
    """The answer, if it is one to this question. Raises `Misbehaved`."""
    try:
        answer = msgspec.json.decode(body, type=_Review)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Misbehaved(f"failed to call webhook: the answer is no AdmissionReview: {error}") from None
    response = answer.response
    if response is None:
        raise Misbehaved("received invalid webhook response: webhook response was absent")
    if (answer.api_version, answer.kind) != (asked["apiVersion"], asked["kind"]):
        raise Misbehaved(
            f"received invalid webhook response: expected webhook response of {asked['apiVersion']}, "
            f"Kind={asked['kind']}, got {answer.api_version}, Kind={answer.kind}"
        )
    wanted = asked["request"]["uid"]
    if response.uid != wanted:
        raise Misbehaved(
            f'received invalid webhook response: expected response.uid="{wanted}", got "{response.uid}"'
        )
    patch = _patch(response, may_patch=may_patch)
    return Verdict(response.allowed, response.status or {}, patch, response.warnings or ())


def denied(hook: Hook, found: Verdict) -> Refused:
    """A denial, as the client of the API gets it."""
    status = found.status
    code = status.get("code")
    reason = str(status.get("reason") or "")
    words = f'admission webhook "{hook.name}" denied the request'
    why = status.get("message") or reason
    details = status.get("details")
    return Refused(
        code if isinstance(code, int) and 400 <= code < 600 else 400,
        reason,
        f"{words}: {why}" if why else f"{words} without explanation",
        details=details if isinstance(details, dict) else None,
    )


def _patch(response: _Response, *, may_patch: bool) -> list[Any] | None:
    if not may_patch:
        if response.patch or response.patch_type:
            field = "patch" if response.patch else "patchType"
            raise Misbehaved(
                f"received invalid webhook response: validating webhook may not return response.{field}"
            )
        return None
    if bool(response.patch) != bool(response.patch_type):
        there, missing = ("patch", "patchType") if response.patch else ("patchType", "patch")
        raise Misbehaved(
            f"received invalid webhook response: webhook returned response.{there} but not response.{missing}"
        )
    if not response.patch:
        return None
    if response.patch_type != "JSONPatch":
        raise Misbehaved(
            f'received invalid webhook response: webhook returned invalid response.patchType of "{response.patch_type}"'
        )
    try:
        return msgspec.json.decode(base64.b64decode(response.patch, validate=True), type=list[Any])
    except (binascii.Error, ValueError, RecursionError) as error:
        raise Misbehaved(f"received undecodable patch in webhook response: {error}") from None


def _kind(kind: Kind) -> Document:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(kind: Kind) -> Document:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def _options(attempt: Attempt) -> Document:
    options: Document = {"kind": f"{attempt.operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
    if attempt.dry_run:
        options["dryRun"] = ["All"]
    if attempt.propagation:
        options["propagationPolicy"] = attempt.propagation
    return options


def _about(user: User) -> Document:
    known = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    return {name: value for name, value in known.items() if value}


def _versioned(new: Document | None, old: Document | None) -> Document | None:
    """A changed object says which version it was changed from."""
    if new is None or old is None:
        return new
    return {**new, "metadata": {**new["metadata"], "resourceVersion": old["metadata"]["resourceVersion"]}}


def _in_version(document: Document | None, kind: Kind) -> Document | None:
    return None if document is None else {**document, "apiVersion": kind.api_version, "kind": kind.kind}
