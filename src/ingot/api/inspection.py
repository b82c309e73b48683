"""Whether a host is to be inspected, and how: the annotation and the field that say so, read as one."""

from __future__ import annotations

from ingot.api.baremetalhost import Annotation, BareMetalHost, InspectionMode


def inspection_mode(host: BareMetalHost) -> InspectionMode:
    """How to find out what the host is made of. Either way of disabling counts; an agent in a ramdisk is the default."""
    if host.metadata.annotations.get(Annotation.INSPECT) == "disabled":
        return "disabled"
    return host.spec.inspection_mode or "agent"


def inspection_is_disabled(host: BareMetalHost) -> bool:
    return inspection_mode(host) == "disabled"
