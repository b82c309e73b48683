"""What can go wrong between us and Ironic, as one tree.

    IronicError
    ├── Unavailable           weather: nobody answers, 5xx, 401; `BackendUnavailable` to everybody else
    │   ├── ServerError       Ironic answered 500; its text may still tell what happened to the host
    │   └── Overloaded        429, or 503 with Retry-After: nothing was begun, ask again after that time
    └── Refused               Ironic understood and said no (4xx)
        ├── BadRequest        400, 406, 403 of a protected node and the like: we asked for something it does not take
        │   └── WrongState    the node moved on since it was read: read it again
        ├── NotFound          404
        └── Conflict          409
            ├── Locked        somebody holds the node's lock for a moment
            ├── InTransition  the node cannot be changed while its state changes
            └── Taken         the name or MAC address belongs to another record

`refusal` turns an answer of Ironic into the right one; texts are redacted before they get into an exception.
"""

from __future__ import annotations

import msgspec

from ingot.provisioner import BackendError, BackendUnavailable
from ingot.trust import redact


class IronicError(BackendError):
    """Base of all errors of this package."""


class Unavailable(IronicError, BackendUnavailable):
    """Nobody answers, or not yet."""


class ServerError(Unavailable):
    """Ironic answered 500. `text` is what it said, redacted."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class Overloaded(Unavailable):
    """Ironic, or a proxy before it, asks for some time. `retry_after` is in seconds."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Refused(IronicError):
    """Ironic understood and said no. `text` is what it said, redacted."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class BadRequest(Refused):
    pass


class WrongState(BadRequest):
    pass


class NotFound(Refused):
    pass


class Conflict(Refused):
    pass


class Locked(Conflict):
    pass


class InTransition(Conflict):
    pass


class Taken(Conflict):
    pass


class _Fault(msgspec.Struct):
    faultstring: str = ""


class _Envelope(msgspec.Struct):
    error_message: str | _Fault = ""


def fault_text(body: bytes) -> str:
    """The sentence inside an error body: JSON inside JSON, an object, or whatever a proxy put there."""
    try:
        message = msgspec.json.decode(body, type=_Envelope).error_message
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body[:300].decode(errors="replace").strip()
    if isinstance(message, _Fault):
        return message.faultstring
    try:
        return msgspec.json.decode(message, type=_Fault).faultstring
    except msgspec.DecodeError:
        return message


def refusal(what: str, status: int, body: bytes, *, retry_after: str = "") -> IronicError:
    """The exception for an answer with an error status. `what` is the request, for the message."""
    text = redact(fault_text(body))
    message = f"Ironic answered {what} with HTTP {status}: {text or 'no reason given'}"
    match status:
        case 403 if "is protected" in text:
            # Somebody has set `protected` on the node: nothing may be undeployed or deleted there.
            return BadRequest(message, text)
        case 401 | 403:
            return Unavailable(
                f"Ironic refuses the operator's own user name or password (HTTP {status} for {what}). "
                "The files in METAL3_AUTH_ROOT_DIR/ironic must hold what Ironic's htpasswd file was made from."
            )
        case 404:
            return NotFound(message, text)
        case 409:
            return _conflict(text)(message, text)
        case 429 | 503 if status == 429 or retry_after:
            return Overloaded(message, _seconds(retry_after))
        case _ if status >= 500:
            return ServerError(message, text)
        case _:
            wrong_state = "can not be performed on node" in text and "while it is in state" in text
            return (WrongState if wrong_state else BadRequest)(message, text)


def _seconds(retry_after: str) -> float:
    """RFC 9110 also allows a date; the clocks of two machines differ by more than such a wait, so that is a moment."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        return 1.0


def _conflict(text: str) -> type[Conflict]:
    if "is locked by host" in text:
        return Locked
    if "while a state transition is in progress" in text:
        return InTransition
    return Taken if "already exists" in text else Conflict
