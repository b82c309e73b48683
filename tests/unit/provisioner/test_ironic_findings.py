"""The page of what was found out about Ironic names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_finding_has_its_tests():
    lines = (ROOT / "docs" / "ironic-findings.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| finding")]
    named = [re.findall(r"`(test_\w+)`", row) for row in rows]
    assert all(named)
    written = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    assert [test for tests in named for test in tests if f"def {test}(" not in written] == []
