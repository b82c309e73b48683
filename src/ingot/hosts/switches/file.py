"""The file that tells Ironic's networking service of the switches, and the keys that go with it.

Pure. One section a switch; a login with a key names the key's file, which is mounted beside it. Every value is checked before
it becomes a line: what could end the line or mean something to those who read it is refused, because one line that cannot be
read stops the service for all switches. What is refused is never repeated.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ingot.api.baremetalswitch import BareMetalSwitch
from ingot.api.core import SecretObject
from ingot.api.meta import Malformed

FILE: Final = "switch-configs.conf"
"""The key of the Secret that holds the file."""
HEADER: Final = (
    "# Written by Ingot from the BareMetalSwitches of this namespace. Changes made here are lost.\n"
)
KEY_FILE: Final = re.compile(r"(?:[0-9a-fA-F]{2}-){5}[0-9a-fA-F]{2}\.key")
_PRINTABLE: Final = re.compile(r"[^\x00-\x1f\x7f\x85\u2028\u2029]+")


class BadCredentials(Malformed):
    """What is wrong with a switch's Secret, for the person who wrote it."""


@dataclass(frozen=True, slots=True)
class Section:
    """One switch in the file."""

    text: str
    key_file: str = ""
    key: str = ""
    """The private key as the Secret has it, in base64; "" for a login with a password."""

    def __repr__(self) -> str:
        return f"Section(key_file={self.key_file!r})"


def key_file(switch: BareMetalSwitch) -> str:
    return f"{switch.spec.mac_address.replace(':', '-')}.key"


def section(switch: BareMetalSwitch, secret: SecretObject, *, keys_folder: str) -> Section:
    """Raises `BadCredentials`. The spec of the switch has passed admission."""
    spec = switch.spec
    lines = {
        "address": spec.address,
        "mac_address": spec.mac_address,
        "port": "" if spec.port is None else str(spec.port),
        "driver_type": spec.driver,
        "device_type": spec.device_type,
        "insecure": "true" if spec.disable_certificate_verification else "",
        "username": _value(secret, "username"),
    }
    named, key = "", secret.data.get("ssh-privatekey", "")
    if key:
        _check_key(secret)
        named = key_file(switch)
        lines["key_file"] = posixpath.join(keys_folder, named)
    elif "password" in secret.data:
        lines["password"] = _value(secret, "password")
    else:
        raise BadCredentials(
            f"Secret {secret.metadata.name} has neither a password nor an ssh-privatekey. Add one of the two; the switch is "
            "taken up as soon as it is there."
        )
    if "admin-password" in secret.data:
        lines["enable_secret"] = _value(secret, "admin-password")
    body = "".join(f"{name} = {value}\n" for name, value in lines.items() if value)
    return Section(f"\n[switch:{switch.metadata.name}]\n{body}", named, key)


def whole(sections: Iterable[Section]) -> str:
    return HEADER + "".join(found.text for found in sections)


def _value(secret: SecretObject, key: str) -> str:
    name = secret.metadata.name
    # A line break at the end comes from `echo`, and is not meant.
    value = (secret.text(key) or "").rstrip("\r\n")
    if not value:
        raise BadCredentials(
            f"Secret {name} has no {key}. Add it; the switch is taken up as soon as it is there."
        )
    if problem := _problem(value):
        raise BadCredentials(
            f"Secret {name}: the value of {key} {problem}, which Ironic's networking service cannot read."
        )
    return value


def _problem(value: str) -> str:
    if not _PRINTABLE.fullmatch(value):
        return "has a line break or another control character in it"
    if value != value.strip():
        return "begins or ends with a space"
    if value[0] == value[-1] and value[0] in "\"'":
        return "begins and ends with a quotation mark"
    # It copies the values into a file of its own, where a percent sign begins a reference.
    return "has a percent sign in it" if "%" in value else ""


def _check_key(secret: SecretObject) -> None:
    if "PRIVATE KEY" not in (secret.text("ssh-privatekey") or ""):
        raise BadCredentials(
            f"Secret {secret.metadata.name}: ssh-privatekey is not a private key in PEM form."
        )
