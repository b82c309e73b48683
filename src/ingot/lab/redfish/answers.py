"""What a BMC answers: values that the handlers return, and the refusal that any of them may raise.

An error always has a body in Redfish's form: Ironic shows the message of its extended info, and clients crash on an error
without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Document = dict[str, Any]

GENERAL: Final = "GeneralError"
_REGISTRY: Final = "Base.1.18."


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int = 204
    document: Document | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):
    """The call is not done. `code` is the name of a message of Redfish's base registry."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        args: Sequence[str] = (),
        related: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.answer: Final = Answer(
            status=status, document=error(code, message, args=args, related=related), headers=headers or {}
        )


def error(code: str, message: str, *, args: Sequence[str] = (), related: Sequence[str] = ()) -> Document:
    full = code if "." in code else _REGISTRY + code
    info = {
        "MessageId": full,
        "Message": message,
        "MessageArgs": list(args),
        "RelatedProperties": list(related),
        "Severity": "Critical",
        "Resolution": "None",
    }
    return {"error": {"code": full, "message": message, "@Message.ExtendedInfo": [info]}}


def missing(path: str) -> Refusal:
    return Refusal(404, "ResourceMissingAtURI", f"There is no resource at {path}.", args=[path])


def link(path: str) -> Document:
    return {"@odata.id": path}


def links(paths: Sequence[str]) -> list[Document]:
    return [link(path) for path in paths]


def collection(path: str, name: str, members: Sequence[str]) -> Document:
    return {
        "@odata.id": path,
        "Name": name,
        "Members@odata.count": len(members),
        "Members": links(members),
    }
