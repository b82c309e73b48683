"""The few files that are made of a base and kept: named after its hash, whole or not there at all, made again at will."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def keep(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file beside its place and move it there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def made_of(sha256: str, folder: Path) -> list[Path]:
    """What is there that was made of the base with this hash."""
    return list(folder.glob(f"{sha256}.*"))


def forget(files: Iterable[Path]) -> None:
    for file in files:
        with suppress(OSError):
            file.unlink()


def forget_others(folder: Path, hashes: set[str], used: set[Path]) -> None:
    """Remove what was made of other bases, half made, or is another name of one. For a time when nobody is served from it."""

    def is_other(path: Path) -> bool:
        return path.name.partition(".")[0] not in hashes or (path.suffix == ".blob" and path not in used)

    with suppress(OSError):
        forget(path for path in folder.iterdir() if is_other(path))
