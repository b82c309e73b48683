"""Server-side apply, and who owns which field.

`applied` and `updated` (in `applying`) are the two ways in; both are pure. `structure` says how the fields of a kind
merge, `fieldset` is the arithmetic of sets of fields, `comparing` finds what changed, `merging` lays a configuration
over an object, `ownership` goes from documents to fields and back, `managers` keeps the entries of `managedFields`.
"""

from ingot.embedded.server.writes.apply.applying import Conflict, Conflicts, applied, updated
from ingot.embedded.server.writes.apply.managers import (
    APPLY,
    UPDATE,
    Entry,
    Managed,
    Manager,
    managed_after,
    same_but_for_time,
)
from ingot.embedded.server.writes.apply.merging import problems
from ingot.embedded.server.writes.apply.ownership import fields_of
from ingot.embedded.server.writes.apply.structure import Structure, structure_of

__all__ = [
    "APPLY",
    "UPDATE",
    "Conflict",
    "Conflicts",
    "Entry",
    "Managed",
    "Manager",
    "Structure",
    "applied",
    "fields_of",
    "managed_after",
    "problems",
    "same_but_for_time",
    "structure_of",
    "updated",
]
