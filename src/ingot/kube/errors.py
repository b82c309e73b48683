"""What can go wrong between us and a Kubernetes API, as one tree.

    KubeError
    ├── ConfigError            the kubeconfig does not say how to reach a cluster; a person must mend it
    │   └── CredentialError    what it names to prove who we are, or whom to believe, cannot be had right now
    ├── NotLeading             we refused it ourselves: without the Lease nothing is changed
    ├── Unreadable             an object does not have the shape of its kind; a person must mend it, or it is a bug of ours
    └── ApiError               the API refused, or could not be asked
        ├── BadRequest         400: it does not understand us; or a webhook of somebody denied it, and gave no other code
        ├── Unauthorized       401: it does not know us
        ├── Forbidden          403: it knows us and says no
        ├── NotFound           404
        ├── Conflict           409: decided on an old version of the object; read again, decide again
        ├── AlreadyExists      409: the name is taken
        ├── Contested          409: another manager owns a field that we apply; forcing it, or a person, must decide
        ├── Gone               410: the version asked for has been forgotten; list again
        ├── Invalid            422: the object breaks a rule; the message names the field
        ├── TooManyRequests    429: later, please
        └── Unavailable        5xx, or nobody answered: weather, try again
            └── Untrusted      who answered is not who the kubeconfig means; told nothing, a person must look

An `ApiError` carries the server's own words in `message`; its text adds what was being done.
"""

from __future__ import annotations

from typing import Final

import msgspec

# What decoding raises. Bytes that are not UTF-8, and what is nested too deeply, have no place in msgspec's own tree.
UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class KubeError(Exception):
    """Root of everything this package raises on purpose."""


class ConfigError(KubeError):
    """The kubeconfig cannot be used as it is."""


class CredentialError(ConfigError):
    """A token, a certificate or the program that should give one is missing or of no use."""


class NotLeading(KubeError):
    """To change something is for whoever holds the Lease, and that is not us, or not any more."""


class Unreadable(KubeError):
    """An answer of the API that does not have the shape it should have."""


class ApiError(KubeError):
    """The API refused, or could not be asked.

    `code` is 0 where there was no answer; `retry_after` is how many seconds the server asks us to wait, None where it did not.
    """

    def __init__(
        self, code: int, reason: str, message: str, *, doing: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(code, reason, message)
        self.code = code
        self.reason = reason
        self.message = message
        self.doing = doing
        self.retry_after = retry_after

    def __str__(self) -> str:
        status = f" (HTTP {self.code} {self.reason})" if self.code else ""
        return f"{self.doing}: {self.message}{status}" if self.doing else f"{self.message}{status}"


class BadRequest(ApiError):
    pass


class Unauthorized(ApiError):
    pass


class Forbidden(ApiError):
    pass


class NotFound(ApiError):
    pass


class Conflict(ApiError):
    pass


class AlreadyExists(ApiError):
    pass


class Contested(ApiError):
    pass


class Gone(ApiError):
    pass


class Invalid(ApiError):
    pass


class TooManyRequests(ApiError):
    pass


class Unavailable(ApiError):
    """`sent` says whether the request may have reached the server, and so may have been carried out."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        doing: str = "",
        retry_after: float | None = None,
        sent: bool = True,
    ) -> None:
        super().__init__(code, reason, message, doing=doing, retry_after=retry_after)
        self.sent = sent


class Untrusted(Unavailable):
    """The certificate of the server is not one to trust. It may be in the middle of a change, so it stays weather to callers."""


class Cause(msgspec.Struct):
    reason: str = ""


class Details(msgspec.Struct, rename="camel"):
    causes: list[Cause] = []
    retry_after_seconds: int = 0


class Status(msgspec.Struct, rename="camel"):
    """The body of a refusal."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


REFUSALS: Final = (BadRequest, Forbidden, Invalid)
"""A clear no to what was asked: by a rule, a quota, a webhook, our rights, a namespace that goes. A person can do something
about it, and should hear why."""

_BY_CODE: Final[dict[int, type[ApiError]]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}
_BY_REASON: Final[dict[str, type[ApiError]]] = {"AlreadyExists": AlreadyExists}
_CONTESTED: Final = "FieldManagerConflict"
_EXCERPT: Final = 300


def read_status(code: int, body: bytes) -> Status:
    """The refusal in a body. Proxies answer with pages of their own: of those a line is kept."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except UNDECODABLE:
        text = " ".join(body.decode(errors="replace").split())
        return Status(message=text[:_EXCERPT] or "the answer has no text", code=code)
    status.message = status.message or "the answer has no message"
    return status


def error_from(status: Status, *, code: int, doing: str, retry_after: float | None = None) -> ApiError:
    """The exception for a refusal; `code` is what the HTTP status, or the error event of a watch, said."""
    reason, message, details = status.reason or "Unknown", status.message, status.details or Details()
    if retry_after is None and details.retry_after_seconds:
        retry_after = float(details.retry_after_seconds)
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code, ApiError)
    if code >= 500:
        kind = Unavailable
    elif any(cause.reason == _CONTESTED for cause in details.causes):
        kind = Contested
    return kind(code, reason, message, doing=doing, retry_after=retry_after)
