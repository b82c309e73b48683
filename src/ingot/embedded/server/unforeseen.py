"""Errors that nobody foresaw, told to whoever mends them: the place, and not what the error says.

What it says can be a part of an object, and so somebody's secret.
"""

from __future__ import annotations

import logging
import traceback


def tell(log: logging.Logger, what: str, error: BaseException) -> None:
    places = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s failed with %s\n%s", what, type(error).__name__, places)
