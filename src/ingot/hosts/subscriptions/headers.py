"""The HTTP headers that a management controller sends along with its events, from their Secret.

Every key of the Secret is a header. Names and values are checked before they become a part of a request that somebody else's
firmware makes: a line break in one of them would be a header nobody wrote. Values never appear in a message.
"""

from __future__ import annotations

import re
from typing import Final

from ingot.api.bmceventsubscription import BMCEventSubscription
from ingot.api.core import SECRETS
from ingot.api.meta import Key, Malformed
from ingot.kube import Client, NotFound
from ingot.trust import Secret

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\U0010ffff]*")


def headers_secret(subscription: BMCEventSubscription) -> Key | None:
    """Where the headers are: always in the namespace of the subscription. None without any."""
    reference = subscription.spec.http_headers_ref
    if reference is None or not reference.name:
        return None
    return Key(subscription.metadata.namespace, reference.name)


async def read_headers(client: Client, subscription: BMCEventSubscription) -> dict[str, Secret]:
    """Raises `Malformed`, with a sentence for the user, where they cannot be had."""
    key = headers_secret(subscription)
    if key is None:
        return {}
    try:
        secret = await client.get(SECRETS, key)
    except NotFound:
        raise Malformed(
            f"Secret {key.name}, named by spec.httpHeadersRef, does not exist in namespace {key.namespace}. "
            "Create it; the subscription is made as soon as it is there."
        ) from None
    found: dict[str, Secret] = {}
    for name in sorted(secret.data):
        value = (secret.text(name) or "").rstrip("\r\n")
        if not _NAME.fullmatch(name):
            raise Malformed(f"Secret {key.name}: the key {name!r} cannot be the name of an HTTP header.")
        if not _VALUE.fullmatch(value):
            raise Malformed(
                f"Secret {key.name}: the value of {name!r} cannot be an HTTP header, because it has a line break or another "
                "control character in it."
            )
        found[name] = Secret(value)
    return found
