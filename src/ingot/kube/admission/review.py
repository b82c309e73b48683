"""What the API asks and what it is answered: AdmissionReview v1, from bytes to bytes.

Owns the words of a refusal: those that the API itself uses for an object that breaks a rule (422, `Invalid`, a cause for every
field), so that kubectl and every client show and decode both alike. A question that is none is refused by `Malformed`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from ingot.api.meta import Key, Model
from ingot.kube.errors import UNDECODABLE

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"

Document = dict[str, Any]
Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class Malformed(ValueError):
    """What was sent is not a question about an object. The message is for whoever sent it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """May this be done? `new` is the object as it would be stored, `old` as it is; None where there is none."""

    operation: Operation
    group: str
    version: str
    kind: str
    key: Key
    subresource: str = ""
    dry_run: bool = False
    new: Document | None = None
    old: Document | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """One field that is wrong. `reason` is Kubernetes' word for how (`FieldValueInvalid`, …), the sentence ours."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


@dataclass(frozen=True, slots=True)
class Verdict:
    """No problems: it may be done. Warnings are shown to the user either way."""

    problems: Sequence[Problem] = ()
    warnings: Sequence[str] = ()


Judge = Callable[[Question], Awaitable[Verdict]]


class _Kind(Model):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Request(Model):
    uid: str
    kind: _Kind
    operation: Operation
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    dry_run: bool | None = None
    object: Document | None = None
    old_object: Document | None = None


class _Review(Model):
    api_version: str = ""
    kind: str = ""
    request: _Request | None = None


def read(body: bytes) -> tuple[str, Question]:
    """The uid under which to answer, and what is asked."""
    try:
        review = msgspec.json.decode(body, type=_Review)
    except UNDECODABLE as error:
        raise Malformed(f"this is not an {KIND} of {API_VERSION}: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise Malformed(
            f"expected {KIND} of {API_VERSION}, found {review.kind or 'no kind'} of {review.api_version or 'no version'}"
        )
    if review.request is None or not review.request.uid:
        raise Malformed(f"an {KIND} asks nothing without a request that has a uid")
    return review.request.uid, _question(review.request)


def _question(request: _Request) -> Question:
    needed = {"CREATE": ("object",), "UPDATE": ("object", "oldObject"), "DELETE": ("oldObject",)}
    given = {"object": request.object, "oldObject": request.old_object}
    for name in needed.get(request.operation, ()):
        if given[name] is None:
            raise Malformed(f"{request.operation} without {name}")
    return Question(
        operation=request.operation,
        group=request.kind.group,
        version=request.kind.version,
        kind=request.kind.kind,
        key=Key(request.namespace, request.name or _name_in(request.object)),
        subresource=request.sub_resource,
        dry_run=bool(request.dry_run),
        new=request.object,
        old=request.old_object,
    )


def _name_in(new: Document | None) -> str:
    """An object that gets its name from `generateName` has none yet."""
    metadata = (new or {}).get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def answer(uid: str, question: Question, verdict: Verdict) -> bytes:
    response: Document = {"uid": uid, "allowed": not verdict.problems}
    if verdict.problems:
        response["status"] = _refusal(question, verdict.problems)
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _refusal(question: Question, problems: Sequence[Problem]) -> Document:
    """As the API says it of an object that its own rules refuse."""
    said = list(dict.fromkeys(str(problem) for problem in problems))
    listed = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    kind = f"{question.kind}.{question.group}" if question.group else question.kind
    return {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": f'{kind} "{question.key.name}" is invalid: {listed}',
        "details": {
            "name": question.key.name,
            "group": question.group,
            "kind": question.kind,
            "causes": [
                {"reason": problem.reason, "message": problem.message, "field": problem.field}
                for problem in problems
            ],
        },
    }
