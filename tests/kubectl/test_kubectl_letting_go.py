"""Deleting a host while nobody answers, and moving one to another cluster: the machine keeps what it has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from demo_hall import IMAGE, SCRIPT, DemoHall, api_server, credentials, host

AWAY = SCRIPT + "outages: [{after: 0, seconds: 1000000}]\n"
NOTES = "configmap/ingot-forgotten-hosts"


def test_a_host_is_deleted_by_force_while_the_back_end_is_away_and_forgotten_when_it_is_back(hall: DemoHall):
    operator = hall.operator()
    operator.leads()
    hall.apply(credentials("lost"), host("lost"))
    hall.wait("condition=AvailableForProvisioning", "bmh/lost")
    operator.stop()

    operator = hall.operator(AWAY)
    operator.leads()
    hall.until_rules_hold()
    told = hall.ingot("host", "delete", "lost", "--timeout=5", code=1)
    assert "away, as its script says" in told
    assert "Without the back end: --force." in told
    assert hall.row("lost")[0] == "lost"
    told = hall.ingot("host", "delete", "lost", "--force")
    assert "Its record" in told
    assert f"{hall.namespace}/lost is gone" in told
    assert "lost" in hall.get(NOTES)[0]["data"]
    hall.until(lambda: "ForceDeleted" in hall.events("lost", "type=Warning"))
    assert hall.machine("lost")["record"]
    # A new one of that name waits, and says for what.
    hall.apply(credentials("lost"), host("lost"))
    hall.until(lambda: "ingot-forgotten-hosts" in hall.ingot("explain", "bmh/lost"))
    operator.stop()

    operator = hall.operator()
    operator.leads()
    hall.wait("delete", NOTES)
    hall.wait("condition=AvailableForProvisioning", "bmh/lost")
    assert "deleted" in hall.kubectl("delete", "bmh", "lost", "--timeout=120s")
    operator.stop()
    assert "record" not in hall.machine("lost")


@pytest.fixture
def elsewhere(hall: DemoHall, tmp_path: Path) -> Iterator[DemoHall]:
    """The same machines, seen from another cluster: the one from which they are moved."""
    with api_server(tmp_path / "api") as kubeconfig:
        old = DemoHall(kubeconfig, tmp_path, hall.namespace, webhook=False)
        old.share_machines_of(hall)
        old.open()
        try:
            yield old
        finally:
            old.close()


def test_a_host_that_is_moved_to_another_cluster_runs_on(hall: DemoHall, elsewhere: DemoHall):
    operator = elsewhere.operator()
    operator.leads()
    elsewhere.apply(credentials("moved"), host("moved", image=IMAGE))
    elsewhere.wait("condition=Provisioned", "bmh/moved")
    elsewhere.kubectl("annotate", "bmh", "moved", "baremetalhost.metal3.io/paused=")
    operator.stop()
    before = elsewhere.books("moved")

    *others, found = elsewhere.get("secret/moved-bmc", "hardwaredata/moved", "bmh/moved")
    assert found["status"]["provisioning"]["state"] == "provisioned"
    status = {"baremetalhost.metal3.io/status": json.dumps(found["status"])}
    hall.apply(*map(exported, others), exported(found, status))
    operator = hall.operator()
    operator.leads()
    hall.wait("condition=Ready", "bmh/moved")
    assert hall.row("moved") == ["moved", "provisioned", "true"]
    annotations = hall.get("bmh/moved")[0]["metadata"].get("annotations", {})
    assert "baremetalhost.metal3.io/status" not in annotations
    assert "until its image is changed or removed" in hall.ingot("explain", "bmh/moved")
    operator.stop()
    machine = hall.machine("moved")
    assert machine["powered_on"]
    assert machine["disk"] == {"image": IMAGE["url"]}
    assert {deed: many for deed, many in machine["done"].items() if deed != "adopt"} == before


def exported(found: dict[str, Any], annotations: dict[str, str] | None = None) -> dict[str, Any]:
    """An object as whoever moves it writes it down: what it is, without what the old cluster knows of it."""
    metadata = {"name": found["metadata"]["name"], "annotations": annotations or {}}
    kept = {
        key: value for key, value in found.items() if key in ("apiVersion", "kind", "type", "spec", "data")
    }
    return {**kept, "metadata": metadata}
