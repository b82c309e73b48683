"""Running the parts together: informers first, controllers once every cache is filled and we lead.

A controller that starts on half a cache would take what it cannot see for deleted. Where several processes contend, each begins
to when its caches are filled, and keeps them so while it stands by: whoever wins can work at once. Leadership that ends stops
all work at once. All parts run in one task group: if one ends by an error that is not weather, the others are stopped and the
error is raised, and whoever runs the process decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from ingot.kube.controller import Controller
from ingot.kube.election import Elector, Leadership
from ingot.kube.errors import NotLeading
from ingot.kube.informer import Informer
from ingot.kube.metrics import measure_loop_lag

log = logging.getLogger(__name__)

Task = Callable[[], Coroutine[Any, Any, None]]


class Manager:
    """Informers, controllers, and other tasks that live as long as they do."""

    def __init__(
        self,
        informers: Iterable[Informer[Any]] = (),
        controllers: Iterable[Controller] = (),
        *,
        tasks: Iterable[Task] = (),
        elector: Elector | None = None,
        prepare: Task | None = None,
    ) -> None:
        """`tasks` are started together with the controllers. `prepare` is run to its end before them, once we lead.

        The `elector` is told when to contend; to stop it, after the manager has ended, is its owner's business.
        """
        self._informers = list(informers)
        self._elector = elector
        self._prepare = prepare
        self._controllers = list(controllers)
        self._tasks = list(tasks)
        self._filled = False
        self._started = asyncio.Event()

    @property
    def trouble(self) -> str:
        """What is missing before the controllers can work, or keeps their caches from following the API; "" for nothing."""
        known = [f"{informer.name}: {informer.trouble}" for informer in self._informers if informer.trouble]
        return "; ".join(known if self._filled else ["the caches are not filled yet", *known])

    async def run(self) -> None:
        """Run everything until cancelled. Raises `NotLeading`, in a group, when leadership is over."""
        async with asyncio.TaskGroup() as group:
            group.create_task(measure_loop_lag(), name="loop-lag")
            for informer in self._informers:
                group.create_task(informer.run(), name=f"informer {informer.name}")
            for informer in self._informers:
                await informer.synced()
            self._filled = True
            log.info("%d caches are filled", len(self._informers))
            if self._elector is not None:
                self._elector.contend()
                await self._elector.leadership.acquired()
                group.create_task(self._stop_with(self._elector.leadership), name="leadership")
            if self._prepare is not None:
                await self._prepare()
            for controller in self._controllers:
                group.create_task(controller.run(), name=f"controller {controller.name}")
            for task in self._tasks:
                group.create_task(task())
            self._started.set()

    async def started(self) -> None:
        """Returns once the caches are filled, we lead, and the controllers run."""
        await self._started.wait()

    async def _stop_with(self, leadership: Leadership) -> None:
        why = await leadership.ended()
        for controller in self._controllers:
            # Whoever leads now may be at the same object already.
            controller.give_no_grace()
        raise NotLeading(why)
