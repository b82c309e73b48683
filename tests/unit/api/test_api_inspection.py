"""How a host is to be inspected, from the two places where that can be said."""

from __future__ import annotations

import pytest

from ingot.api.baremetalhost import BareMetalHost, BareMetalHostSpec, InspectionMode
from ingot.api.inspection import inspection_is_disabled, inspection_mode
from ingot.api.meta import ObjectMeta


@pytest.mark.parametrize(
    ("annotation", "field", "mode"),
    [
        (None, None, "agent"),
        (None, "agent", "agent"),
        (None, "fast", "fast"),
        (None, "disabled", "disabled"),
        ("", None, "agent"),
        ("", "disabled", "disabled"),
        ("disabled", None, "disabled"),
        ("disabled", "agent", "disabled"),
    ],
)
def test_either_way_of_disabling_counts(
    annotation: str | None, field: InspectionMode | None, mode: str
) -> None:
    annotations = {} if annotation is None else {"inspect.metal3.io": annotation}
    host = BareMetalHost(
        metadata=ObjectMeta(annotations=annotations), spec=BareMetalHostSpec(inspection_mode=field)
    )
    assert inspection_mode(host) == mode
    assert inspection_is_disabled(host) is (mode == "disabled")
