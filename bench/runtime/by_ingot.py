"""Contender: Ingot's runtime. Informer, queue and 32 workers; every host is reconciled, also after every change."""

import time

STARTED = time.perf_counter()

import asyncio  # noqa: E402 - what follows is what an import costs
import os  # noqa: E402

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost  # noqa: E402
from ingot.api.meta import Key  # noqa: E402
from ingot.kube import Again, Change, Client, Controller, Done, Informer, Manager  # noqa: E402

IMPORTED = time.perf_counter() - STARTED

from runtime.stopwatch import Result, Stopwatch, arguments, go, memory, peak, tell  # noqa: E402


class Operator:
    """Looks at each host and notes in which state it was."""

    def __init__(self, client: Client, *, pages: bool) -> None:
        self.hosts = Informer(client, BARE_METAL_HOSTS, **({"streamed_list": 0} if pages else {}))
        self.controller = Controller("hosts", self.reconcile, workers=32)
        self.hosts.subscribe(self.changed)
        self.seen: dict[Key, str] = {}
        self.changes = 0

    def changed(self, change: Change[BareMetalHost]) -> None:
        self.changes += 1
        self.controller.wake(change.key, low=change.initial)

    async def reconcile(self, key: Key) -> Done | Again:
        host = self.hosts.get(key)
        if host is not None:
            self.seen[key] = host.status.provisioning.state
        return Done()


class Ticker:
    """Sleeps for a moment again and again, and notes by how much the worst one was late: somebody held up the loop."""

    def __init__(self) -> None:
        self.worst = 0.0

    async def run(self) -> None:
        while True:
            due = time.perf_counter() + 0.005
            await asyncio.sleep(0.005)
            self.worst = max(self.worst, time.perf_counter() - due)


async def until(condition) -> None:
    while not condition():  # noqa: ASYNC110 - the measured code has no event for it
        await asyncio.sleep(0.002)


async def main() -> None:
    folder, hosts, events = arguments()
    ticker = Ticker()
    ticking = asyncio.create_task(ticker.run())
    base, watch = memory(), Stopwatch()
    async with Client.from_kubeconfig(folder / "kubeconfig") as client:
        operator = Operator(client, pages="PAGES" in os.environ)
        running = asyncio.create_task(Manager([operator.hosts], [operator.controller]).run())
        await until(lambda: len(operator.seen) == hosts)
        listed = watch.lap()
        await asyncio.sleep(0.2)
        operator.changes, watch = 0, Stopwatch()
        go(client.server, folder / "ca" / "ca.crt")
        await until(lambda: operator.changes == events)
        watched = watch.lap()
        assert operator.hosts.version == str(hosts + events)
        tell(Result(IMPORTED, base, listed, watched, memory(), peak(), ticker.worst))
        for task in (running, ticking):
            task.cancel()
        await asyncio.wait([running, ticking])


asyncio.run(main())
