"""Where an image comes from; what is wrong with it is said with its name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ingot.formats import FormatError


@contextmanager
def read_image(path: str) -> Iterator[BinaryIO]:
    """An image to look into."""
    with about(path), Path(path).open("rb") as file:
        yield file


@contextmanager
def read_archive(path: str | None) -> Iterator[BinaryIO]:
    """An initial RAM disk, which may also come from standard input."""
    if path is None:
        with about("standard input"):
            yield sys.stdin.buffer
    else:
        with read_image(path) as file:
            yield file


@contextmanager
def about(name: str) -> Iterator[None]:
    """Errors of a format in here are about this file."""
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{name}: {error}") from error
