"""Indicator lights: of the system, the chassis, and each drive. They show what they were told, also after a restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ingot.lab.components import Led
from ingot.lab.redfish.answers import Refusal
from ingot.lab.redfish.server import Server

PROPERTY: Final = "IndicatorLED"


def shown(server: Server, place: str) -> Led:
    return server.parts.leds.get(place, "Off")


def switch(server: Server, place: str, body: Mapping[str, Any]) -> None:
    """Set the light as the body says."""
    try:
        wanted = msgspec.convert(body.get(PROPERTY), Led)
    except msgspec.ValidationError:
        raise Refusal(
            400, "PropertyValueNotInList", f"{PROPERTY} must be Lit, Blinking or Off.", args=[PROPERTY]
        ) from None
    server.parts.leds[place] = wanted
    server.chassis.note(f"indicator of the {place}: {wanted}")
