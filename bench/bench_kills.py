"""Two hundred times kill -9 under write load: what was acknowledged is there, nothing is there by half, versions go up.

`python bench/bench_kills.py [--kills 200] [--seed 1]` prints what happened; a promise that is not kept ends it with an error.
The tests do the same with twenty kills.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import signal
import sys
import tempfile
import time
from pathlib import Path

from spine.tables import table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "integration"))

from kill_campaign import Campaign


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    # Asked to end, it still stops what it started: every `finally` on the way runs.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
        tally = asyncio.run(Campaign(Path(folder), seed=options.seed).run(options.kills))
    rows = [[name.replace("_", " "), f"{count:,}"] for name, count in dataclasses.asdict(tally).items()]
    print(table([f"seed {options.seed}, {time.perf_counter() - begun:.0f} s", ""], rows))
    print("  nothing acknowledged was lost")


if __name__ == "__main__":
    main()
