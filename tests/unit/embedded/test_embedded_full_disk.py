"""A disk that takes no more: writes are refused with a sentence, reading goes on, and it mends itself."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

from running_server import SECRETS, Caller, calling
from test_embedded_durability import process

UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


async def answers(api: Caller, path: str, code: int) -> str:
    async with asyncio.timeout(60):
        while True:
            found, text = await api.call("GET", path)
            if found == code:
                return str(text)
            await asyncio.sleep(0.05)


async def test_a_full_disk_refuses_writes_and_not_reads_and_is_noticed_when_there_is_room_again(
    tmp_path: Path,
) -> None:
    large = {"stringData": {"v": "x" * 200_000}}
    async with process(tmp_path) as (child, running), calling(running) as api:
        code, _ = await api.call("POST", SECRETS, {"metadata": {"name": "kept"}, "stringData": {"v": "1"}})
        assert code == 201
        # The kernel refuses to let any file of that process grow, as a full disk does.
        grown = max(path.stat().st_size for path in (tmp_path / "api").iterdir())
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (grown, resource.RLIM_INFINITY))
        code, refused = await api.call("POST", SECRETS, {"metadata": {"name": "lost"}, **large})
        assert (code, refused["reason"]) == (500, "InternalError")
        assert f"the database {tmp_path}/api/api.db refuses writes" in refused["message"]
        assert "nothing was changed" in refused["message"]
        # Not ready, and it says why; alive, and reading.
        text = await answers(api, "/readyz", 500)
        assert "[-]etcd failed: the database" in text
        assert (await api.call("GET", "/livez"))[0] == 200
        assert (await api.call("GET", f"{SECRETS}/kept"))[0] == 200
        assert (await api.call("GET", f"{SECRETS}/lost"))[0] == 404
        assert (await api.call("PATCH", f"{SECRETS}/kept", large))[0] == 500
        # Room again: nobody has to write for it to be noticed.
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, UNLIMITED)
        await answers(api, "/readyz", 200)
        assert (await api.call("POST", SECRETS, {"metadata": {"name": "lost"}, **large}))[0] == 201
    async with process(tmp_path) as (_, running), calling(running) as api:
        _, listed = await api.call("GET", SECRETS)
        assert {item["metadata"]["name"] for item in listed["items"]} == {"kept", "lost"}
