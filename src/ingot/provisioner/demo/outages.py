"""The times at which nobody answers: scripted, or asked for by a test.

Scripted outages count from the making of the file, and each happens once, however often the operator is restarted in between.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from ingot.provisioner import EVERYTHING
from ingot.provisioner.demo.hall import Hall
from ingot.provisioner.demo.script import Outage

_OVER: Final = "outages over"
WHY: Final = "the demo back end is away, as its script says"


class Outages:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    def begin(self) -> None:
        """Put what is still to come on the agenda; what was missed is made up for."""
        outages = sorted(self._hall.plan.script.outages, key=lambda outage: outage.after)
        over = int(self._hall.facts.get(_OVER, b"0"))
        for number, outage in enumerate(outages):
            if number >= over:
                start = self._hall.born + outage.after
                if outage.seconds:
                    self._hall.agenda.at(start, partial(self.go_away, WHY))
                self._hall.agenda.at(start + outage.seconds, partial(self._over, number, outage))

    def go_away(self, why: str) -> None:
        self._hall.away = why

    def come_back(self) -> None:
        self._hall.away = ""
        self._hall.changes.announce(EVERYTHING)

    def _over(self, number: int, outage: Outage) -> None:
        self._hall.note_fact(_OVER, str(number + 1))
        if outage.forgets:
            self._hall.forget_all()
        self.come_back()
