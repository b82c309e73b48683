"""Passwords, and what is sent along with them. None of it is ever shown.

A password becomes a line of a file for ipmitool, or a header of an HTTP request: a line break in it begins another line. The
password of a registry is for that registry: with an image from anywhere else it is not handed on at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ingot.api.baremetalhost import Image
from ingot.provisioner import Credentials
from ingot.provisioner.ironic.firewall.rejection import Rejected, reject
from ingot.trust import Secret

_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_LONGEST_HEADER: Final = 8192
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
# Where the request goes and how long it is, is not for a header to say.
_NOT_FOR_USERS: Final = frozenset(
    {"connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"}
)


def bmc_credentials(found: Credentials | None) -> None:
    if found is None:
        return
    for name, value in (("username", found.username), ("password", found.password.reveal())):
        if _CONTROL.search(value):
            raise reject(
                f"the {name} in the Secret of spec.bmc.credentialsName",
                None,
                "it holds a line break or another control character. Often it is the last line break of the file that the Secret "
                "was made from",
            )


def pull_secret(image: Image | None, found: Secret) -> Secret:
    """What is handed on: nothing, unless the image comes from a registry."""
    if not found or image is None or not image.url.lower().startswith("oci://"):
        return Secret("")
    if _CONTROL.search(found.reveal()):
        raise reject(
            "the Secret of spec.image.ociAuthSecretName",
            None,
            "the user name or password in it holds a line break or another control character",
        )
    return found


def headers(found: Mapping[str, Secret]) -> None:
    for name, value in found.items():
        if not _HEADER.fullmatch(name):
            raise reject(
                "a header in the Secret of spec.httpHeadersRef",
                name,
                "this is not the name of an HTTP header",
            )
        if name.lower() in _NOT_FOR_USERS:
            raise Rejected(
                f"the header {name} in the Secret of spec.httpHeadersRef: it belongs to the connection; the BMC sets it itself"
            )
        if _CONTROL.search(value.reveal()) or len(value.reveal()) > _LONGEST_HEADER:
            raise reject(
                f"the header {name} in the Secret of spec.httpHeadersRef",
                None,
                f"its value has to be one line of at most {_LONGEST_HEADER} characters",
            )
