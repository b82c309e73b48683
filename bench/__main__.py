"""Runs the measurements: `python -m bench` runs all, `python -m bench api` one, `python -m bench --list` names them.

A measurement is a file `bench_NAME.py` beside this one that prints a small table; its docstring's first line says what it
measures. Each runs in a process of its own, so that none warms up another. No measurement has a limit it must keep.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def measurements() -> dict[str, Path]:
    return {path.stem.removeprefix("bench_"): path for path in sorted(FOLDER.glob("bench_*.py"))}


def first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]


def main(arguments: list[str]) -> int:
    known = measurements()
    if "--list" in arguments:
        for name, path in known.items():
            print(f"{name:12} {first_line(path)}")
        return 0
    if unknown := [name for name in arguments if name not in known]:
        print(f"no measurement named {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    failed = []
    for name in arguments or known:
        print(f"== {name}: {first_line(known[name])}", flush=True)
        if subprocess.run([sys.executable, str(known[name])], check=False).returncode != 0:
            failed.append(name)
        print(flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
