"""The machine to install on is that of the tests beside the real coreos-installer."""

from __future__ import annotations

import sys
from pathlib import Path

for name in ("coreos", "integration"):
    sys.path.append(str(Path(__file__).parents[1] / name))
