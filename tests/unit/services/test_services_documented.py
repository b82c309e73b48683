"""docs/ironic.md names every setting: what is taken, passed over, refused."""

from __future__ import annotations

import re
from pathlib import Path

from ingot.services import codec, ironic_image
from ingot.services.settings import IronicPaths, IronicSettings

PAGE = (Path(__file__).parents[3] / "docs" / "ironic.md").read_text()


def names(text: str) -> set[str]:
    """The variables in a text; A_{B,C} stands for A_B and A_C."""
    found = set(re.findall(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", text))
    for prefix, choices in re.findall(r"\b([A-Z_]+_)\{([A-Z_,]+)\}", text):
        found |= {prefix + choice for choice in choices.split(",")}
    return found | ({"BOOTLOADER", "NUMWORKERS"} & set(re.findall(r"`([A-Z]+)`", text)))


def table(heading: str) -> set[str]:
    return names(PAGE[PAGE.index(f"| {heading} |") :].split("\n\n")[0])


def test_every_setting_is_documented_where_it_belongs() -> None:
    taken = {name for kind in (IronicSettings, IronicPaths) for name, _ in codec.variables(kind).values()}
    assert (taken | set(ironic_image.SPELLINGS)) - table("taken") == set()
    assert set(ironic_image.PASSED_OVER) - table("passed over, with a warning") == set()
    assert {*ironic_image.REFUSED, "IRONIC_DEPLOYMENT"} == table("refused when it is on")
