"""The notification driver inside Ironic's own environment: a notification must neither stop Ironic nor be logged."""

from __future__ import annotations

import os
import subprocess

from ingot.services.environment import ensure, without_ours

TOLD = """
from ingot_ironic.driver import IngotDriver

class Unreadable:
    def get(self, *_):
        raise RuntimeError("sesame")

IngotDriver.__new__(IngotDriver).notify({}, Unreadable(), "INFO", None)
"""


def test_a_notification_that_cannot_be_read_stays_with_us_and_nothing_of_it_is_logged() -> None:
    """Raised into oslo.messaging, it would be logged there with its payload, which holds user data."""
    ironic = ensure()
    told = subprocess.run(
        [ironic.python, "-c", TOLD], env=without_ours(os.environ), capture_output=True, text=True, timeout=120
    )
    assert told.returncode == 0, told.stderr
    assert "A notification was not passed on to the operator (RuntimeError)" in told.stderr
    assert "sesame" not in told.stderr + told.stdout
