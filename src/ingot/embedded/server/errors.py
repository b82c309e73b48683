"""What the server refuses, and how it says so.

    ServerError
    ├── Refused       an answer for a client: becomes a Kubernetes `Status` with code, reason, message, details
    ├── Overtaken     a write that was decided on top of one that failed (`database`; becomes a 500 for its client)
    └── StateError    the server cannot start or go on with its state folder; the sentence is for the operator

`Refused` is built by the functions below, one for each way to refuse, so that the words and reasons that kubectl and
client-go look for are in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ingot.embedded.server.documents import Document

if TYPE_CHECKING:
    from ingot.embedded.server.kinds.kind import Kind


class ServerError(Exception):
    """Anything this package raises on purpose."""


class StateError(ServerError):
    """The state folder cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One field that is wrong: where, what sort of wrong (`FieldValueInvalid`, …), and the sentence."""

    field: str
    reason: str
    message: str


# The words of the field errors of Kubernetes, by the kinds that admission rules use.
_CAUSES: Final = {
    "Required": ("FieldValueRequired", "Required value"),
    "Invalid": ("FieldValueInvalid", "Invalid value"),
    "Forbidden": ("FieldValueForbidden", "Forbidden"),
    "NotSupported": ("FieldValueNotSupported", "Unsupported value"),
    "Duplicate": ("FieldValueDuplicate", "Duplicate value"),
}
_TYPES_WITHOUT_VALUE: Final = frozenset({"Required", "Forbidden"})


def cause(kind: str, field: str, sentence: str, *, shown: str = "") -> Cause:
    """A cause in Kubernetes' wording: `Invalid value: "x": sentence`. `shown` is the offending value, already printable."""
    reason, words = _CAUSES.get(kind, _CAUSES["Invalid"])
    value = f": {shown}" if shown and kind not in _TYPES_WITHOUT_VALUE else ""
    return Cause(field, reason, f"{words}{value}: {sentence}" if sentence else f"{words}{value}")


class Refused(ServerError):
    """A request that is answered with a Status instead of an object."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Document | None = None,
        causes: Sequence[Cause] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = dict(details or {})
        # Said to the client beside the refusal.
        self.warnings: Sequence[str] = ()
        if causes:
            self.details["causes"] = [
                {name: text for name, text in found if text}
                for cause in causes
                if (found := (("reason", cause.reason), ("message", cause.message), ("field", cause.field)))
            ]

    def status(self) -> Document:
        answer: Document = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            answer["reason"] = self.reason
        if self.details:
            answer["details"] = self.details
        answer["code"] = self.code
        return answer


def bad_request(message: str) -> Refused:
    return Refused(400, "BadRequest", message)


def unauthorized() -> Refused:
    return Refused(401, "Unauthorized", "Unauthorized")


def forbidden(message: str, *, details: Document | None = None, causes: Sequence[Cause] = ()) -> Refused:
    return Refused(403, "Forbidden", message, details=details, causes=causes)


def definition_ends(kind: Kind, name: str) -> Refused:
    words = "create not allowed while custom resource definition is terminating"
    return forbidden(f'{kind.resource} "{name}" is forbidden: {words}', details=_about(kind, name))


def unknown_path() -> Refused:
    return Refused(404, "NotFound", "the server could not find the requested resource")


def not_found(kind: Kind, name: str) -> Refused:
    return Refused(404, "NotFound", f'{kind.resource} "{name}" not found', details=_about(kind, name))


def method_not_allowed(message: str) -> Refused:
    return Refused(405, "MethodNotAllowed", message)


def not_acceptable(message: str) -> Refused:
    return Refused(406, "NotAcceptable", message)


def already_exists(kind: Kind, name: str) -> Refused:
    return Refused(
        409, "AlreadyExists", f'{kind.resource} "{name}" already exists', details=_about(kind, name)
    )


def conflict(kind: Kind, name: str, why: str) -> Refused:
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return Refused(409, "Conflict", message, details=_about(kind, name))


def modified_meanwhile(kind: Kind, name: str) -> Refused:
    return conflict(
        kind,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )


def expired(message: str) -> Refused:
    return Refused(410, "Expired", message)


def too_large(message: str) -> Refused:
    return Refused(413, "RequestEntityTooLarge", message)


def unsupported_media_type(message: str) -> Refused:
    return Refused(415, "UnsupportedMediaType", message)


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> Refused:
    problems = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    title = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return Refused(
        422,
        "Invalid",
        f'{title} "{name}" is invalid: {listed}',
        details={"name": name, "group": kind.group, "kind": kind.kind},
        causes=causes,
    )


def invalid_options(kind: str, causes: Sequence[Cause]) -> Refused:
    """Parameters of a request that say how it is to be treated, and do not say it right."""
    problems = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    details: Document = {"group": "meta.k8s.io", "kind": kind}
    return Refused(
        422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: {listed}', details=details, causes=causes
    )


class Unreadable(Refused):
    """A document that is no object of its kind. `why` is what is wrong with it."""

    def __init__(self, kind: str, version: str, why: str) -> None:
        super().__init__(
            400, "BadRequest", f'{kind} in version "{version}" cannot be handled as a {kind}: {why}'
        )
        self.why = why


def invalid_patch(words: str) -> Refused:
    """A patch that leaves what cannot be read. What it leaves is not shown: it may be a secret."""
    found = Cause("patch", "FieldValueInvalid", f"Invalid value: {words}")
    return Refused(422, "Invalid", f' "" is invalid: patch: {found.message}', causes=[found])


def unprocessable(message: str) -> Refused:
    return Refused(422, "Invalid", message)


def version_too_new(asked: int, current: int) -> Refused:
    return Refused(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        details={"retryAfterSeconds": 1},
        causes=[Cause("", "ResourceVersionTooLarge", "Too large resource version")],
    )


def internal(message: str) -> Refused:
    return Refused(
        500, "InternalError", f"Internal error occurred: {message}", causes=[Cause("", "", message)]
    )


def _about(kind: Kind, name: str) -> Document:
    details: Document = {"name": name, "kind": kind.plural}
    if kind.group:
        details["group"] = kind.group
    return details
