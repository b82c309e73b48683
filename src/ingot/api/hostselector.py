"""Choosing hosts by their labels: what claims and machines write to say which hosts will do."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ingot.api.meta import Model
from ingot.api.schema import doc


class HostSelectorRequirement(Model):
    """One demand on one label of a host."""

    key: Annotated[str, doc("The label.", required=True)] = ""
    operator: Annotated[
        str,
        doc(
            "How its value is compared: `=`, `==` or `!=` with one value, `in` or `notin` with several, `exists` or `!` "
            "(is absent) with none.",
            required=True,
        ),
    ] = ""
    values: Annotated[list[str], doc("The values to compare with.", required=True)] = msgspec.field(
        default_factory=list
    )


class HostSelector(Model):
    """Which hosts will do. All demands have to be met; without any, every host will do."""

    match_expressions: Annotated[list[HostSelectorRequirement], doc("Demands on single labels.")] = (
        msgspec.field(default_factory=list)
    )
    match_labels: Annotated[
        dict[str, str], doc("Labels that the host has to have, with exactly these values.")
    ] = msgspec.field(default_factory=dict)
