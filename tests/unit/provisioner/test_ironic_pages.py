"""The pages about addresses and security say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ingot.api import bmc
from ingot.api.inputs import documents
from ingot.api.inputs.weaknesses import Weakness
from ingot.provisioner.ironic.drivers import DRIVERS
from ingot.provisioner.ironic.firewall.policy import FORBID, IMAGE_HOSTS

DOCS = Path(__file__).parents[3] / "docs"
ADDRESSES = (DOCS / "bmc-addresses.md").read_text()
SECURITY = (DOCS / "security.md").read_text()


def row(name: str) -> str:
    scheme, driver = bmc.SCHEMES[name], DRIVERS[name]
    boots = "the network"
    if scheme.boots_from_iso:
        boots = "a virtual CD" if scheme.virtual_media else "an ISO over HTTP"
    assert scheme.hardware_raid == scheme.firmware_settings == scheme.firmware_updates
    cells = [
        f"`{name}`",
        boots,
        f"`{driver.name}`",
        f"`{driver.interfaces['boot']}`",
        f"`{driver.fast_inspection}`" if scheme.fast_inspection else "no",
        *("yes" if can else "no" for can in (scheme.secure_boot, scheme.hardware_raid, scheme.needs_mac)),
    ]
    return f"| {' | '.join(cells)} |"


def test_the_table_of_schemes_is_that_of_the_code():
    """After a wanted change: put the lines of `row` into docs/bmc-addresses.md."""
    rows = [line for line in ADDRESSES.splitlines() if line.startswith("| `") and line.count("|") == 9]
    assert rows == [row(name) for name in bmc.SCHEMES]


def test_what_serves_the_machines_of_a_dropped_scheme_is_told():
    assert all(f"| `{was}` | {use} |" in ADDRESSES for was, use in bmc.GONE.items())


@pytest.mark.parametrize("address", re.findall(r"^    (\S.*)$", ADDRESSES, re.MULTILINE))
def test_the_addresses_that_are_shown_are_addresses(address):
    for one in address.split():
        bmc.parse(one)


def test_every_weakness_and_every_setting_has_its_line():
    for word in (*Weakness, IMAGE_HOSTS, FORBID):
        assert f"| `{word}` |" in SECURITY
    assert f"{documents.MOST_VALUES:,} values, {documents.DEEPEST} levels" in SECURITY
