"""The page of what was found out about Ironic names every finding, and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

FINDINGS = (
    "notifications lose events",
    "some changes have no event at all",
    "a hook may not fit another Ironic",
    "payloads carry user data",
    "forces the power back",
    "a dead BMC takes a worker",
    "600,000 rounds",
    "without a lock it breaks",
    "the bulk list answers 500",
    "inspection data that are posted before",
    "BIOS settings that a machine takes and never applies",
    "a thousand agents that report at once",
    "a heartbeat that comes while the node is locked",
    "SQLite refuses transactions",
    "a BMC that answers 503",
    "steps are logged whole",
    "the reason of a failed step is only in the node's history",
    "`last_error` can hold the token",
    "a conductor that died leaves nodes",
    "fails what it was cleaning or deploying",
    "as many as it has workers",
    "makes the next one take steps for done",
    "killed in the middle of a reboot",
    "to abort a deployment that is on hold",
    "a lost database costs nothing",
    "answers 409 for some milliseconds",
    "where the URL of an image redirects",
    "an interface cannot be changed while an inspection has failed",
    "the driver for iDRAC",
    "marks no port as one to boot from",
    "look-up answers `******`",
    "keeps Ironic from everything else for a minute",
    "reads the system four times",
    "`Connection: close`",
)
"""A few words of each, by which its row is known: one that is dropped from the page is missed here. Add yours."""


def rows() -> list[str]:
    lines = (ROOT / "docs" / "ironic-findings.md").read_text().splitlines()
    return [line for line in lines if line.startswith("| ") and not line.startswith("| finding")]


@pytest.mark.parametrize("finding", FINDINGS)
def test_a_finding_has_its_row(finding):
    assert len([row for row in rows() if finding in row.split(" | ")[0]]) == 1


def test_every_finding_has_its_tests():
    named = [re.findall(r"`(test_\w+)`", row) for row in rows()]
    assert all(named)
    written = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    assert [test for tests in named for test in tests if f"def {test}(" not in written] == []
