"""Changes of firmware as steps of Ironic: the same for cleaning and for servicing. Pure."""

from __future__ import annotations

from ingot.provisioner import FirmwareChange
from ingot.provisioner.ironic.model import Json

Steps = list[dict[str, Json]]


def firmware_steps(change: FirmwareChange) -> Steps:
    """In the order of Ironic's own documents: settings, then updates."""
    steps: Steps = []
    if change.settings:
        settings: list[Json] = [{"name": name, "value": value} for name, value in change.settings.items()]
        steps.append({"interface": "bios", "step": "apply_configuration", "args": {"settings": settings}})
    if change.updates:
        updates: list[Json] = [{"component": one.component, "url": one.url} for one in change.updates]
        steps.append({"interface": "firmware", "step": "update", "args": {"settings": updates}})
    return steps
