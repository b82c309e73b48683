"""What is counted of hosts, under the names that Metal3's dashboards and alerts know.

Most of it is per host, and there may be ten thousand of them: so the figures are kept as plain numbers in dictionaries and
become Prometheus' objects only while somebody reads them. What is counted of a host goes with the host.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import REGISTRY, Histogram
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ingot.api.baremetalhost import State
from ingot.api.meta import Key
from ingot.hosts.history import Operation

_DEFAULT_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LONG_BUCKETS: Final = (30.0, 90.0, 180.0, 360.0, 720.0, 1440.0)
_BUCKETS: Final[dict[Operation, tuple[float, ...]]] = {
    "register": _DEFAULT_BUCKETS,
    "inspect": _LONG_BUCKETS,
    "provision": _LONG_BUCKETS,
    "deprovision": _LONG_BUCKETS,
}

_OF_A_HOST: Final = {
    "metal3_reconcile": "Passes over the host.",
    "metal3_reconcile_error": "Passes over the host that ended in an error nobody foresaw.",
    "metal3_delayed__provisioning": "Times the host found no place to be inspected or provisioned.",
    "metal3_delayed__deprovisioning": "Times the host found no place to be deprovisioned.",
}
_OF_ALL: Final = {
    "metal3_credentials_missing": "Times the Secret with a BMC's credentials did not exist.",
    "metal3_credentials_invalid": "Times the Secret with a BMC's credentials was not complete.",
    "metal3_credentials_unhandled_error": "Times a BMC's credentials could not be read for another reason.",
    "metal3_credentials_updated": "Times a BMC's credentials changed.",
    "metal3_credentials_no_management_access": "Times a BMC did not let us in.",
    "metal3_host_registration_required": "Times a host was registered although it had been before.",
    "metal3_host_unmanaged": "Times a host without a BMC was looked at.",
    "metal3_delete_without_deprovisioning": "Hosts that were deleted although deprovisioning failed.",
    "metal3_delete_without_powering_off": "Hosts that were deleted although they could not be switched off.",
    "metal3_delete_delayed_for_detached": "Times a deletion waited because the host was detached.",
    "metal3_provisioner_not_ready": "Times the back end did not answer.",
    "metal3_waiting_for_preprov_image": "Times a host waited for the ramdisk that is built for it.",
}
_LABELLED: Final = {
    "metal3_host_error": ("Errors of hosts by what they were doing.", ("error_type",)),
    "metal3_host_config_data_error": (
        "Secrets with user data and the like that could not be read.",
        ("host_data_type",),
    ),
    "metal3_operation_power_change": (
        "Times a host was switched on or off.",
        ("namespace", "host", "on_off"),
    ),
    "metal3_provisioning_state_change": ("Changes from one state to another.", ("prev_state", "new_state")),
}


class HostMetrics(Collector):
    """The figures of all hosts of this process."""

    def __init__(self) -> None:
        self._all: Counter[str] = Counter(dict.fromkeys(_OF_ALL, 0))
        self._hosts: dict[str, Counter[Key]] = {name: Counter() for name in _OF_A_HOST}
        self._labelled: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in _LABELLED}
        self._took: dict[Operation, dict[Key, list[float]]] = {name: {} for name in _BUCKETS}

    def count(self, name: str) -> None:
        self._all[f"metal3_{name}"] += 1

    def count_host(self, name: str, key: Key) -> None:
        self._hosts[f"metal3_{name}"][key] += 1

    def failed(self, error_type: str) -> None:
        self._labelled["metal3_host_error"][(error_type,)] += 1

    def unreadable(self, data: str) -> None:
        self._labelled["metal3_host_config_data_error"][(data,)] += 1

    def switched(self, key: Key, *, on: bool) -> None:
        self._labelled["metal3_operation_power_change"][(*key, "on" if on else "off")] += 1

    def moved(self, left: State, entered: State) -> None:
        self._labelled["metal3_provisioning_state_change"][(str(left), str(entered))] += 1

    def took(self, operation: Operation, key: Key, seconds: float) -> None:
        """One operation of one host came to its end."""
        buckets = _BUCKETS[operation]
        # One number a bucket, one for what is longer, and the sum of all.
        figures = self._took[operation].setdefault(key, [0.0] * (len(buckets) + 2))
        figures[bisect_left(buckets, seconds)] += 1
        figures[-1] += seconds

    def forget(self, key: Key) -> None:
        for counts in self._hosts.values():
            counts.pop(key, None)
        for figures in self._took.values():
            figures.pop(key, None)
        switched = self._labelled["metal3_operation_power_change"]
        for on_off in ("on", "off"):
            switched.pop((*key, on_off), None)

    def collect(self) -> Iterator[Metric]:
        for name, text in _OF_ALL.items():
            yield CounterMetricFamily(name, text, value=self._all[name])
        for name, text in _OF_A_HOST.items():
            yield _counter(name, text, ("namespace", "host"), self._hosts[name].items())
        for name, (text, labels) in _LABELLED.items():
            yield _counter(name, text, labels, self._labelled[name].items())
        for operation, by_host in self._took.items():
            family = HistogramMetricFamily(
                f"metal3_operation_{operation}_duration_seconds",
                f"Seconds it took to {operation} the host.",
                labels=["namespace", "host"],
            )
            for key, figures in by_host.items():
                family.add_metric([*key], _cumulated(_BUCKETS[operation], figures), sum_value=figures[-1])
            yield family


def _counter(
    name: str, text: str, labels: tuple[str, ...], counts: Iterable[tuple[tuple[str, ...], int]]
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, count in counts:
        family.add_metric([*values], count)
    return family


def _cumulated(buckets: tuple[float, ...], figures: list[float]) -> list[tuple[str, float]]:
    made, below = [], 0.0
    for bound, count in zip((*buckets, float("inf")), figures, strict=False):
        below += count
        made.append(("+Inf" if bound == float("inf") else str(bound), below))
    return made


EVENT_TO_STATUS: Final = Histogram(
    "ingot_backend_event_to_status_seconds",
    "Time from news of the back end about a host until its pass has ended, with the status written.",
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30),
)
METRICS: Final = HostMetrics()
REGISTRY.register(METRICS)
