"""A bench whose server has a vendor and its own pace, and somebody who receives its events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from lab_bench import FAST, Bench
from lab_ironic import LabIronic

from ingot.lab.client import Lab
from ingot.lab.farm import Farm
from ingot.lab.settings import FarmSettings, Timings
from ingot.trust import Authority


@asynccontextmanager
async def bench_of(
    state: Path, ironic: LabIronic, profile: str = "generic", timings: Timings = FAST
) -> AsyncIterator[Bench]:
    settings = FarmSettings(
        state=state, servers=1, agent_api=ironic.url, timings=timings, profiles=(profile,)
    )
    async with Farm.running(settings), Lab.open(state) as lab:
        yield Bench(state, lab, ironic)


@asynccontextmanager
async def receiving(
    state: Path, handler: Callable[[web.Request], Awaitable[web.Response]]
) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/events", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    made = Authority(state / "ca").issue(state / "receiver", "x", ["127.0.0.1"])
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=made.server_context()).start()
    try:
        yield f"https://127.0.0.1:{runner.addresses[0][1]}/events"
    finally:
        await runner.cleanup()
