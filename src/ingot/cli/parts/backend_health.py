"""Whether the back end can take orders: asked now and then, told in the log when it changes, and known in between."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from ingot.provisioner import BackendError

log = logging.getLogger(__name__)

WHILE_WELL: Final = 30.0
WHILE_NOT: Final = 2.0


class BackendHealth:
    """`run` it once the back end is open."""

    def __init__(
        self,
        check: Callable[[], Awaitable[None]],
        notice: Callable[[], str] = lambda: "",
        notice_file: Path | None = None,
    ) -> None:
        self._check = check
        self._notice, self._notice_file = notice, notice_file
        self.trouble = ""
        """Why it cannot take orders; "" while it can, and before anybody asked: a standby has nothing to do with it."""

    async def run(self) -> None:
        """Ask again and again, until cancelled."""
        said = "not asked yet"
        noticed = ""
        self._show("")
        while True:
            try:
                await self._check()
                self.trouble = ""
            except BackendError as error:
                self.trouble = str(error)
            if self.trouble != said:
                said = self.trouble
                if said:
                    log.warning("the back end cannot take orders: %s", said)
                else:
                    log.info("the back end is ready")
            if (notice := "" if said else self._notice()) != noticed:
                noticed = notice
                self._show(notice)
            await asyncio.sleep(WHILE_NOT if said else WHILE_WELL)

    def _show(self, notice: str) -> None:
        """In the log, and for `ingot status`."""
        if notice:
            log.warning("%s", notice)
        if self._notice_file is None:
            return
        # A disk that is full does not keep anybody from being looked after.
        with contextlib.suppress(OSError):
            if notice:
                self._notice_file.write_text(f"{notice}\n")
            else:
                self._notice_file.unlink(missing_ok=True)
