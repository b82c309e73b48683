"""For all tests: property tests have no clock of their own, because the machine that runs them may be busy."""

from __future__ import annotations

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
