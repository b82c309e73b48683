"""The agent's part is a distribution of its own; its sources are put on the path as they stand in the checkout."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "agent" / "src"))
