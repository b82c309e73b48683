"""Which of the hosts that can be had a claimant gets. Pure.

Hosts of the wished-for failure domain come first, then those that need no cleaning. Among equals each claimant has an order of
its own, which depends on nothing but the two of them: a thousand claimants at once choose a thousand hosts, not all the same one,
and one that has to choose again chooses the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.machines.demands import Demands
from ingot.machines.vacancies import needs_cleaning, why_taken

FAILURE_DOMAIN: Final = "infrastructure.cluster.x-k8s.io/failure-domain"
"""The label of hosts that share their fate: a rack, a room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a claimant wants. `claimant` is its UID."""

    claimant: str
    demands: Demands
    failure_domain: str = ""


@dataclass(slots=True)
class Tally:
    """Why hosts were passed over, for the sentence that a person reads."""

    unfit: int = 0
    taken: Counter[str] = field(default_factory=Counter)

    def sentence(self) -> str:
        passed = [f"{count} {_plural(count)} {why}" for why, count in sorted(self.taken.items())]
        if self.unfit:
            passed.append(f"{self.unfit} {_plural(self.unfit)} not what is asked for")
        return "; ".join(passed) or "there are no hosts"


def choose(hosts: Iterable[BareMetalHost], wish: Wish, *, tally: Tally | None = None) -> BareMetalHost | None:
    """The host to ask for first; None where there is none to be had. `tally` is told of those that are not."""
    best: BareMetalHost | None = None
    best_rank: tuple[bool, bool, bytes] | None = None
    for host in hosts:
        if not wish.demands(host.metadata.labels):
            if tally is not None:
                tally.unfit += 1
        elif (why := why_taken(host)) is not None:
            if tally is not None:
                tally.taken[_kind(why)] += 1
        else:
            rank = rank_of(host, wish)
            if best_rank is None or rank < best_rank:
                best, best_rank = host, rank
    return best


def rank_of(host: BareMetalHost, wish: Wish) -> tuple[bool, bool, bytes]:
    """The smaller, the better."""
    elsewhere = bool(wish.failure_domain) and host.metadata.labels.get(FAILURE_DOMAIN) != wish.failure_domain
    lot = hashlib.blake2b(host.metadata.uid.encode(), key=wish.claimant.encode()[:64], digest_size=8)
    return elsewhere, needs_cleaning(host), lot.digest()


def _kind(why: str) -> str:
    """Who it belongs to matters to nobody who counts."""
    return "claimed already" if why.startswith("belongs to") else why.removeprefix("is ")


def _plural(count: int) -> str:
    return "host is" if count == 1 else "hosts are"
