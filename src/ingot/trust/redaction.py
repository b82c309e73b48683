"""Keeping secrets out of sight.

`Secret` holds a value that must be used but never shown: its repr and str say nothing, so it cannot slip into a log, an
exception, or an f-string by accident. `redact` cleans text that others wrote (Ironic's errors can hold an agent token in a
URL, see the tests for the shapes it knows) before it reaches a status or an event.
"""

from __future__ import annotations

import hmac
import re
from typing import Final

HIDDEN: Final = "******"


class Secret:
    """A string to use, not to show. `reveal()` is the one way to its value."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(
            other._value.encode(errors="surrogateescape"), self._value.encode(errors="surrogateescape")
        )

    def __hash__(self) -> int:
        return hash((Secret, self._value))


# What stands before an @ in a URL, colons and further @ included.
_URL_USER: Final = re.compile(r"(?<=://)[^/\s?#]+@")
# A name that says what follows it, and the value: in quotes, in quotes that were escaped once more, or bare. Where the text was
# cut off before the closing quote, the rest of it belongs to the value. "secret:" in prose is the name of a Kubernetes object
# more often than a value follows it, so it needs a quote or a "=".
_NAMED: Final = re.compile(
    r"""
    (?P<name> (?: (?:token|password|passwd|authorization)[\w-]{0,64} | secret[\w-]{0,64}(?=\\*["'=]) )
              (?:\\*["'])? \s*[=:]\s* (?:b(?=["']))? )
    (?: (?P<quote>["'])      (?: \\. | (?!(?P=quote))[^\\] )* (?P=quote)?
      | (?P<escaped>\\+["']) (?: (?!(?P=escaped)). )*         (?P=escaped)?
      | (?:(?:Basic|Bearer)\s+)? [^\s"'&,;)}\]\\]+
    )
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)

# A URL that was signed lets everybody in who has the whole of it: S3 and its kin, Google, Azure, CloudFront.
_SIGNED: Final = re.compile(
    r"""
    (?P<name> (?<=[?&;]) (?: x-(?:amz|goog|oss|obs)-(?:signature|credential|security-token)
                           | signature | sig | policy | awsaccesskeyid | googleaccessid | key-pair-id | api[-_]?key ) = )
    [^&\s"'<>)\]},;]+
    """,
    re.IGNORECASE | re.VERBOSE,
)

# What Ironic publishes for machines is below a path that holds a key (`services.front.files`); the key is a `random_token`.
_FILES_KEY: Final = re.compile(r"(?<=/files/)[0-9A-Za-z]{40}(?![0-9A-Za-z])")


def redact(text: str, *secrets: Secret) -> str:
    """`text` without the given secrets, without tokens, passwords, keys and signatures in URLs, parameters or pairs."""
    for secret in secrets:
        if secret:
            text = text.replace(secret.reveal(), HIDDEN)
    text = _FILES_KEY.sub(HIDDEN, _URL_USER.sub(f"{HIDDEN}@", text))
    return _NAMED.sub(_hidden, _SIGNED.sub(rf"\g<name>{HIDDEN}", text))


def _hidden(found: re.Match[str]) -> str:
    quote = found["quote"] or found["escaped"] or ""
    return f"{found['name']}{quote}{HIDDEN}{quote}"
