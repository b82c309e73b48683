"""Running the parts together: informers first, controllers once every cache is filled.

A controller that starts on half a cache would take what it cannot see for deleted. All parts run in one task group: if one
ends by an error that is not weather, the others are stopped and the error is raised, and whoever runs the process decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from ingot.kube.controller import Controller
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
    ) -> None:
        """`tasks` are started together with the controllers, after the caches are filled."""
        self._informers = list(informers)
        self._controllers = list(controllers)
        self._tasks = list(tasks)
        self._started = asyncio.Event()

    async def run(self) -> None:
        """Run everything until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(measure_loop_lag(), name="loop-lag")
            for informer in self._informers:
                group.create_task(informer.run(), name=f"informer {informer.name}")
            for informer in self._informers:
                await informer.synced()
            log.info("%d caches are filled; starting the controllers", len(self._informers))
            for controller in self._controllers:
                group.create_task(controller.run(), name=f"controller {controller.name}")
            for task in self._tasks:
                group.create_task(task())
            self._started.set()

    async def started(self) -> None:
        """Returns once the caches are filled and the controllers run."""
        await self._started.wait()
