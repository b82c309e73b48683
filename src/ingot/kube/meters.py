"""Meters for the way that every key takes: a number is added to a number, and Prometheus is told when it asks.

The library's own meters take a lock and a handful of calls for each count, because any thread may count, and with four of them
a key that is a tenth of what a change costs. These are counted on the event loop alone; they may be read from any thread. What
is counted seldom stays with the library.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final, Generic, TypeVar

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

Meter = TypeVar("Meter")


class Tally:
    """How often something happened."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self) -> None:
        self.value += 1.0


class Spread:
    """How long something took, counted by ranges that end at these bounds."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """One for each range, and one for what lies above them all."""
        self.sum = 0.0

    def observe(self, amount: float) -> None:
        self.counts[bisect_left(self._bounds, amount)] += 1
        self.sum += amount


class _Family(Collector, Generic[Meter]):
    """The meters of one name, by the values of their labels."""

    def __init__(
        self,
        name: str,
        help_: str,
        labels: Sequence[str],
        make: Callable[[], Meter],
        registry: CollectorRegistry,
    ) -> None:
        self._name, self._help, self._labels = name, help_, labels
        self._make = make
        self._meters: dict[tuple[str, ...], Meter] = {}
        registry.register(self)

    def labels(self, *values: str) -> Meter:
        """The one meter with these values; made when it is first asked for. Costs more than counting: keep it."""
        if (meter := self._meters.get(values)) is None:
            meter = self._meters[values] = self._make()
        return meter

    def _all(self) -> list[tuple[tuple[str, ...], Meter]]:
        """A copy: whoever reads is in another thread than those who add."""
        return list(self._meters.items())


class Tallies(_Family[Tally]):
    """A counter, as Prometheus sees it."""

    def __init__(
        self, name: str, help_: str, labels: Sequence[str], *, registry: CollectorRegistry = REGISTRY
    ) -> None:
        super().__init__(name, help_, labels, Tally, registry)

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(self._name, self._help, labels=self._labels)
        for values, tally in self._all():
            family.add_metric(values, tally.value)
        yield family


class Spreads(_Family[Spread]):
    """A histogram, as Prometheus sees it."""

    def __init__(
        self,
        name: str,
        help_: str,
        labels: Sequence[str],
        *,
        buckets: Sequence[float],
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self._ends: Final = [*(str(float(bound)) for bound in buckets), "+Inf"]
        super().__init__(name, help_, labels, lambda: Spread(buckets), registry)

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self._name, self._help, labels=self._labels)
        for values, spread in self._all():
            up_to_each = accumulate(spread.counts.copy())
            family.add_metric(values, list(zip(self._ends, up_to_each, strict=True)), spread.sum)
        yield family
