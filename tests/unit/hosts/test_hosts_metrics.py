"""What is counted of hosts has the names that Metal3's dashboards ask for, and goes with the host."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from rack import IMAGE, Rack

from ingot.api.baremetalhost import State
from ingot.api.core import SECRETS
from ingot.api.meta import Key
from ingot.hosts import HostSettings
from ingot.hosts.metrics import METRICS, HostMetrics
from ingot.provisioner import Failed

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


def counted(name: str, **labels: str) -> float:
    registry = CollectorRegistry()
    registry.register(METRICS)
    return registry.get_sample_value(f"metal3_{name}_total", labels) or 0.0


async def test_what_happens_to_credentials_is_counted(rack: Rack) -> None:
    names = ("credentials_no_management_access", "credentials_updated", "host_registration_required")
    before = {name: counted(name) for name in names}
    rack.backend.script("register", Failed("wrong", refused_credentials=True))
    key = await rack.host()
    await rack.until_error(key, "wrong")
    assert counted("credentials_no_management_access") == before["credentials_no_management_access"] + 1
    await rack.client.patch(SECRETS, rack.bmc, {"stringData": {"password": "right"}})
    await rack.until_well(key, "available")
    assert counted("credentials_updated") == before["credentials_updated"]
    await rack.client.patch(SECRETS, rack.bmc, {"stringData": {"password": "another"}})
    await rack.until(key, lambda _: counted("credentials_updated") > before["credentials_updated"])
    assert counted("host_registration_required") == before["host_registration_required"]
    rack.backend.rename(key, "another-record")
    await rack.until(key, lambda host: host.status.provisioning.id == "another-record")
    assert counted("host_registration_required") == before["host_registration_required"] + 1


async def test_what_a_host_lacks_is_counted(rack: Rack) -> None:
    invalid, unmanaged = counted("credentials_invalid"), counted("host_unmanaged")
    unread = counted("host_config_data_error", host_data_type="userData")
    await rack.secret("h1-bmc", username="admin", password=" ")
    key = await rack.host(secret=False)
    await rack.until_error(key, "no password")
    assert counted("credentials_invalid") > invalid
    note = await rack.host("note", secret=False, bmc=None)
    await rack.until_state(note, "unmanaged")
    assert counted("host_unmanaged") > unmanaged
    other = await rack.host("other", image=IMAGE, userData={"name": "none"})
    await rack.until_error(other, "none")
    assert counted("host_config_data_error", host_data_type="userData") > unread


@pytest.mark.parametrize("settings", [HostSettings(own_ramdisks=True)], ids=["own ramdisks"])
async def test_who_waits_for_a_ramdisk_is_counted(rack: Rack) -> None:
    before = counted("waiting_for_preprov_image")
    rack.backend.own_ramdisk_formats = ("iso",)
    key = await rack.host()
    await rack.until(key, lambda host: "waiting for the ramdisk" in rack.sentence(host))
    assert counted("waiting_for_preprov_image") > before


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
