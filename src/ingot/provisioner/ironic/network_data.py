"""Network data as Ironic takes it: an object of plain values."""

from __future__ import annotations

import msgspec

from ingot.api.inputs import network_data
from ingot.provisioner.ironic.model import Json
from ingot.trust import Secret


def parse(text: Secret) -> dict[str, Json] | None:
    """None where there is nothing to configure. Raises `UnreadableNetworkData`."""
    parsed = network_data.parse(text.reveal())
    if parsed is None:
        return None
    # YAML has dates and numbers as keys; JSON has not.
    plain: dict[str, Json] = msgspec.to_builtins(parsed, str_keys=True)
    return plain
