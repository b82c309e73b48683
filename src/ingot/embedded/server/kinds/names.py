"""Names, label keys and values: what the API accepts as one, checked before it becomes a key, a path or a selector.

Each function answers with a sentence that says what is wrong, or with an empty string.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Final

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL: Final = re.compile(_LABEL)
_DNS_SUBDOMAIN: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_DNS_1035_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
# No vowels and no look-alikes: a random suffix must neither spell a word nor be misread.
_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_DRAWS: Final = 8


def subdomain_problem(name: str) -> str:
    """Object names: lower-case DNS subdomains."""
    if len(name) > 253:
        return "must be no more than 253 characters"
    if not _DNS_SUBDOMAIN.fullmatch(name):
        return (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character (e.g. 'example.com')"
        )
    return ""


def label_problem(name: str) -> str:
    """Namespace names: one lower-case DNS label."""
    if len(name) > 63:
        return "must be no more than 63 characters"
    if not _DNS_LABEL.fullmatch(name):
        return (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character (e.g. 'my-name')"
        )
    return ""


def path_segment_problem(name: str) -> str:
    """Names of roles: whatever can stand between two slashes of a URL."""
    if name in (".", ".."):
        return f"may not be '{name}'"
    found = next((part for part in ("/", "%") if part in name), "")
    return f"may not contain '{found}'" if found else ""


def label_1035_problem(name: str) -> str:
    """Names of services, kinds and versions: a DNS label that starts with a letter."""
    if len(name) > 63:
        return "must be no more than 63 characters"
    if not _DNS_1035_LABEL.fullmatch(name):
        return (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
            "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation "
            "is '[a-z]([-a-z0-9]*[a-z0-9])?')"
        )
    return ""


def label_key_problem(key: str) -> str:
    """Keys of labels and annotations, and finalizers: an optional DNS prefix and a name."""
    prefix, slash, name = key.rpartition("/")
    if slash and (not prefix or subdomain_problem(prefix)):
        return f'the prefix "{prefix[:253]}" must be a lowercase DNS subdomain'
    if len(name) > 63 or not _QUALIFIED.fullmatch(name):
        return (
            f"\"{name[:63]}\" must consist of up to 63 alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
    return ""


def label_value_problem(value: str) -> str:
    if value and (len(value) > 63 or not _QUALIFIED.fullmatch(value)):
        return (
            "a label value is empty or up to 63 alphanumeric characters, '-', '_' or '.', "
            "starting and ending with an alphanumeric character"
        )
    return ""


def generated(prefix: str, is_taken: Callable[[str], bool]) -> str:
    """A name from `generateName`: the prefix, cut so that every kind of name has room for it, and five random characters.

    Among ten thousand names with one prefix two would be the same, so one that is taken is not given. In a crowd in which even
    that does not help, the caller is told that the name exists.
    """
    name = ""
    for _ in range(_DRAWS):
        name = prefix[: 63 - 5] + "".join(secrets.choice(_SUFFIX_ALPHABET) for _ in range(5))
        if not is_taken(name):
            break
    return name
