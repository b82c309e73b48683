"""What an idle client costs the server."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from running_server import calling
from test_embedded_durability import process

from ingot.trust import client_context

CONNECTIONS = 200


def memory(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_an_open_connection_holds_no_quarter_of_a_megabyte(tmp_path: Path) -> None:
    async with process(tmp_path) as (child, running), calling(running) as api:
        assert (await api.call("GET", "/readyz"))[0] == 200
        before = memory(child.pid)
        context = client_context(running.ca_file)
        port = int(running.url.rpartition(":")[2])
        opened = [await asyncio.open_connection("127.0.0.1", port, ssl=context) for _ in range(CONNECTIONS)]
        assert (await api.call("GET", "/readyz"))[0] == 200
        # asyncio alone would take 256 KB for each.
        assert (memory(child.pid) - before) / CONNECTIONS < 150_000
        for _, writer in opened:
            writer.close()
