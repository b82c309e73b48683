"""For all tests: property tests have no clock of their own, because the machine that runs them may be busy; no event loop is
made that nobody closes; and the thousands of tests themselves are not searched for garbage again and again."""

from __future__ import annotations

import asyncio
import gc
import os

from hypothesis import HealthCheck, settings

# Under CI hypothesis tries the same examples every time; a new one that fails belongs on a developer's desk.
settings.register_profile(
    "ingot",
    parent=settings.get_profile("ci" if os.environ.get("CI") else "default"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ingot")


def pytest_configure() -> None:
    gc.disable()
    # pytest-asyncio remembers the loop that is current before it sets its own. Where none was ever set or unset, asking for it
    # makes one, and nobody closes it.
    asyncio.set_event_loop(None)


def pytest_collection_finish() -> None:
    # What was collected stays to the end of the run.
    gc.freeze()
    gc.enable()
