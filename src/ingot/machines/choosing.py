"""Which of the hosts that can be had a claimant gets. Pure.

Hosts of the wished-for failure domain come first, then those that need no cleaning, then those of which no BMC warns. Among
equals each claimant has an order of its own, which depends on nothing but the two of them: a thousand claimants at once choose a
thousand hosts, not all the same one, and one that has to choose again chooses the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.machines.demands import Demands
from ingot.machines.vacancies import has_software_raid, is_ailing, needs_cleaning, why_taken

FAILURE_DOMAIN: Final = "infrastructure.cluster.x-k8s.io/failure-domain"
"""The label of hosts that share their fate: a rack, a room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a claimant wants. `claimant` is its UID."""

    claimant: str
    demands: Demands
    failure_domain: str = ""
    coreos: bool = False
    """CoreOS is to be installed, which a host with software RAID volumes cannot have."""

    def suits(self, host: BareMetalHost) -> bool:
        """Whether the host would do, free or not."""
        return self.demands(host.metadata.labels) and not (self.coreos and has_software_raid(host))


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
    free = []
    for host in hosts:
        if not wish.suits(host):
            if tally is not None:
                tally.unfit += 1
        elif (why := why_taken(host)) is not None:
            if tally is not None:
                tally.taken[_kind(why)] += 1
        else:
            free.append(host)
    return choose_free(free, wish)


def choose_free(hosts: Iterable[BareMetalHost], wish: Wish) -> BareMetalHost | None:
    """The same among hosts that are known to be free. Every claimant looks at all of them: a thousand look at a thousand."""
    best: BareMetalHost | None = None
    least = _WORST
    mine, domain = _lot(wish.claimant), wish.failure_domain
    demands, coreos = wish.demands, wish.coreos
    for host in hosts:
        metadata = host.metadata
        if not demands(metadata.labels) or (coreos and has_software_raid(host)):
            continue
        elsewhere = bool(domain) and metadata.labels.get(FAILURE_DOMAIN) != domain
        rank = (elsewhere, needs_cleaning(host), False, _lot(metadata.uid) ^ mine)
        # How it feels is asked of those alone that would be better if they felt well: looking is dear, and these are few.
        if rank < least and (rank := (*rank[:2], is_ailing(host), rank[3])) < least:
            best, least = host, rank
    return best


@lru_cache(maxsize=65536)
def _lot(uid: str) -> int:
    """What is drawn for it once and for all. Two of them differ in other bits for every pair: so each claimant has an order."""
    return int.from_bytes(hashlib.blake2b(uid.encode(), digest_size=8).digest())


_WORST: Final = (True, True, True, 1 << 64)


def _kind(why: str) -> str:
    """Who it belongs to matters to nobody who counts."""
    return "claimed already" if why.startswith("belongs to") else why.removeprefix("is ")


def _plural(count: int) -> str:
    return "host is" if count == 1 else "hosts are"
