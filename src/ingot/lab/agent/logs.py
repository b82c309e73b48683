"""The agent's own log as it hands it over: base64 of a compressed archive."""

from __future__ import annotations

import base64
import io
import tarfile
from collections.abc import Iterable

from ingot.lab.record import LogLine


def packed(lines: Iterable[LogLine]) -> str:
    text = "".join(f"{line.at.isoformat()} {line.text}\n" for line in lines).encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        entry = tarfile.TarInfo("agent.log")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    return base64.b64encode(buffer.getvalue()).decode()
