"""What a host is called in Ironic, and which host a node's name means."""

from __future__ import annotations

from typing import Final

from ingot.api.meta import Key

SEPARATOR: Final = "~"


def node_name(key: Key) -> str:
    """What a host is called in Ironic."""
    return f"{key.namespace}{SEPARATOR}{key.name}"


def host_key(name: str | None) -> Key | None:
    """Which host a node's name means; None for a node that is not ours."""
    namespace, separator, rest = (name or "").partition(SEPARATOR)
    return Key(namespace, rest) if separator and namespace and rest else None
