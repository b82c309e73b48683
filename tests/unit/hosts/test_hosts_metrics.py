"""What is counted of hosts has the names that Metal3's dashboards ask for, and goes with the host."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from rack import IMAGE, Rack

from ingot.api.baremetalhost import State
from ingot.api.meta import Key
from ingot.hosts.metrics import METRICS, HostMetrics

NAMES = {
    "metal3_reconcile_total",
    "metal3_reconcile_error_total",
    "metal3_host_error_total",
    "metal3_operation_power_change_total",
    "metal3_credentials_missing_total",
    "metal3_credentials_invalid_total",
    "metal3_credentials_unhandled_error_total",
    "metal3_credentials_updated_total",
    "metal3_credentials_no_management_access_total",
    "metal3_host_config_data_error_total",
    "metal3_delayed__provisioning_total",
    "metal3_delayed__deprovisioning_total",
    "metal3_provisioning_state_change_total",
    "metal3_host_registration_required_total",
    "metal3_host_unmanaged_total",
    "metal3_delete_without_deprovisioning_total",
    "metal3_provisioner_not_ready_total",
    "metal3_delete_delayed_for_detached_total",
    "metal3_operation_register_duration_seconds",
    "metal3_operation_inspect_duration_seconds",
    "metal3_operation_provision_duration_seconds",
    "metal3_operation_deprovision_duration_seconds",
}


def lines(metrics: HostMetrics) -> list[str]:
    registry = CollectorRegistry()
    registry.register(metrics)
    return generate_latest(registry).decode().splitlines()


def test_every_name_is_there_before_anything_was_counted() -> None:
    told = {line.split()[2] for line in lines(HostMetrics()) if line.startswith("# TYPE")}
    assert told >= NAMES


def test_durations_are_kept_as_a_histogram_of_each_host() -> None:
    metrics = HostMetrics()
    for seconds in (20, 100, 5000):
        metrics.took("inspect", Key("rack", "h1"), seconds)
    registry = CollectorRegistry()
    registry.register(metrics)
    name, host = "metal3_operation_inspect_duration_seconds", {"namespace": "rack", "host": "h1"}
    within = {
        bound: registry.get_sample_value(f"{name}_bucket", host | {"le": bound})
        for bound in ("30.0", "90.0", "180.0", "1440.0", "+Inf")
    }
    assert within == {"30.0": 1, "90.0": 1, "180.0": 2, "1440.0": 2, "+Inf": 3}
    assert registry.get_sample_value(f"{name}_sum", host) == 5120
    assert registry.get_sample_value(f"{name}_count", host) == 3


def test_what_was_counted_of_a_host_goes_with_it() -> None:
    metrics = HostMetrics()
    key = Key("rack", "h1")
    metrics.count_host("reconcile", key)
    metrics.took("register", key, 1)
    metrics.switched(key, on=True)
    metrics.moved(State.REGISTERING, State.INSPECTING)
    metrics.forget(key)
    assert not [line for line in lines(metrics) if 'host="h1"' in line]
    assert [line for line in lines(metrics) if 'new_state="inspecting"' in line]


async def test_a_host_on_its_way_is_counted(rack: Rack) -> None:
    key = await rack.host("counted", image=IMAGE)
    await rack.until_state(key, "provisioned")
    told = "\n".join(lines(METRICS))
    for operation in ("register", "inspect", "provision"):
        assert f"metal3_operation_{operation}_duration_seconds_count" in told
    assert 'prev_state="available"' in told
    await rack.delete(key)
    await rack.until_gone(key)
    await rack.settle()
    assert 'host="counted"' not in "\n".join(lines(METRICS))
