"""Our own meters: Prometheus cannot tell them from those of its library."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

# Also has the library leave out the time at which each counter was made.
from ingot.kube import metrics
from ingot.kube.meters import Spreads, Tallies

BOUNDS = (0.001, 0.5, 2, 60)
DURATIONS = (0.0, 0.001, 0.0011, 0.5, 7, 60, 61)


def of_the_library() -> tuple[CollectorRegistry, Counter, Histogram]:
    registry = CollectorRegistry()
    counter = Counter("ends", "How it ended.", ["name", "result"], registry=registry)
    return registry, counter, Histogram("took", "How long.", ["name"], buckets=BOUNDS, registry=registry)


def of_ours() -> tuple[CollectorRegistry, Tallies, Spreads]:
    registry = CollectorRegistry()
    tallies = Tallies("ends", "How it ended.", ["name", "result"], registry=registry)
    return registry, tallies, Spreads("took", "How long.", ["name"], buckets=BOUNDS, registry=registry)


def text(
    made: tuple[CollectorRegistry, Counter, Histogram] | tuple[CollectorRegistry, Tallies, Spreads],
) -> str:
    registry, ends, took = made
    empty = generate_latest(registry).decode()
    ends.labels("hosts", "success").inc()
    ends.labels("hosts", "success").inc()
    ends.labels('a "strange"\nname', "error").inc()
    for seconds in DURATIONS:
        took.labels("hosts").observe(seconds)
    took.labels("nothing yet")
    return empty + generate_latest(registry).decode()


def test_our_meters_are_shown_as_those_of_the_library_are() -> None:
    ours = text(of_ours())
    assert 'ends_total{name="hosts",result="success"} 2.0' in ours
    assert 'took_bucket{le="2.0",name="hosts"} 4.0' in ours
    assert ours == text(of_the_library())


def test_a_controller_counts_in_one_place_however_often_its_meters_are_asked_for() -> None:
    metrics.ControllerMeters("counted twice").added.inc()
    metrics.ControllerMeters("counted twice").added.inc()
    assert metrics.QUEUE_ADDS.labels("counted twice").value == 2
