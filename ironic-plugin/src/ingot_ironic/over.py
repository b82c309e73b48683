"""A note with the node that all steps of what it is at are done.

Ironic forgets the steps first, and then ends the work, and in between nothing tells work that is over from work that has just
begun. The note holds the moment at which the node came to be at it: one that earlier work left behind means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

CLEANING: Final = "ingot_cleaning_is_over"
DEPLOYMENT: Final = "ingot_deployment_is_over"
_SINCE: Final = "since"


def note(node: Any, key: str, **more: Any) -> None:
    """Saved together with the steps being forgotten, by whoever comes next."""
    node.set_driver_internal_info(key, {_SINCE: _moment(node), **more})


def noted(node: Any, key: str, step: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What was noted; None where this work is not over. Who is at a step is at it, whatever was noted."""
    found: dict[str, Any] | None = node.driver_internal_info.get(key)
    return found if found and not step and found.get(_SINCE) == _moment(node) else None


def _moment(node: Any) -> int:
    """When the node's state last changed, as precisely as every database keeps it."""
    since = node.provision_updated_at
    return int(since.timestamp()) if since else 0
