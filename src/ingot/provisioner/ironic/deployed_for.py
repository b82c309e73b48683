"""For which provisioning of a host a system was deployed: kept in Ironic's own record, so that nobody has to guess whose it is.

Pure. The note is written before the deployment is asked for, and names the provisioning and the instance. A later deployment
past Ingot leaves it where it is, but is another instance: then nothing is known. What Ironic takes down loses its instance at
once, also where that fails; what is left is still that of the note.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.model import FullNode, PatchOperation, add

_PLACE: Final = "ingot_provisioning"
"""In the node's `extra`."""
_TAKEN_DOWN: Final = frozenset({states.DELETING, states.ERROR, states.DEPLOY_FAILED})


class _Note(msgspec.Struct, frozen=True):
    name: str
    instance: str


def deployed_for(node: FullNode) -> str | None:
    """The name of the provisioning; None where it is not known."""
    note = _note(node)
    if note is None:
        return None
    forgotten = node.instance_uuid is None and node.provision_state in _TAKEN_DOWN
    return note.name if forgotten or node.instance_uuid == note.instance else None


def is_noted(node: FullNode) -> bool:
    """Whether there is a note, be it of what is there now or not."""
    return _note(node) is not None


def noted(node: FullNode, *, name: str, instance: str) -> list[PatchOperation]:
    """The patch that notes it. Without a name nothing is noted."""
    note = _Note(name, instance)
    return [] if not name or _note(node) == note else [add(f"/extra/{_PLACE}", msgspec.to_builtins(note))]


def _note(node: FullNode) -> _Note | None:
    try:
        return msgspec.convert(node.extra.get(_PLACE), _Note)
    except msgspec.ValidationError:
        return None
