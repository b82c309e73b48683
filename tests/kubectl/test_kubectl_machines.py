"""Hosts that are given to Machines, as their user sees it: a MachineSet that is scaled with kubectl."""

from __future__ import annotations

from typing import Any

from demo_hall import IMAGE, DemoHall, credentials, host, resource

MACHINE_API = "machine.openshift.io/v1beta1"
LABEL = "machine.openshift.io/cluster-api-machineset"
# Whoever was killed is replaced within seconds.
QUICK = ("--lease-duration-seconds=4", "--renew-deadline-seconds=3", "--retry-period-seconds=0.5")
SCRIPT = """
default: {others: {seconds: 0.1}}
hosts:
  slow-*: {provision: {seconds: 2}}
"""


def test_a_machine_set_is_scaled_up_and_down_and_its_operator_killed_in_between(hall: DemoHall):
    options = ("--controllers=hosts,machines", "--machinesets=on", *QUICK)
    first = hall.operator(SCRIPT, *options)
    first.leads()
    hosts = [f"slow-{number}" for number in range(4)]
    hall.apply(*(part for name in hosts for part in (credentials(name), host(name))))
    hall.wait("condition=AvailableForProvisioning", "bmh", "--all")
    hall.apply(machine_set("workers", replicas=2))
    hall.until(lambda: len(hall.claimed()) == 2)

    # Two more, and the one who gives them is killed in the middle.
    hall.kubectl("scale", "machineset/workers", "--replicas=4")
    hall.until(lambda: len(hall.claimed()) > 2)
    first.kill()
    hall.operator(SCRIPT, *options).leads()
    hall.wait("condition=Provisioned", "bmh", "--all")
    hall.wait("jsonpath={.status.replicas}=4", "machineset/workers")
    hall.until(
        lambda: {machine["status"].get("phase") for machine in hall.get("machines")} == {"Provisioned"}
    )
    assert sorted(hall.claimed()) == hosts
    assert {name: hall.books(name)["deploy"] for name in hosts} == dict.fromkeys(hosts, 1)
    for machine in hall.get("machines"):
        mine = [name for name, owner in hall.claimed().items() if owner == machine["metadata"]["name"]]
        assert machine["metadata"]["annotations"]["metal3.io/BareMetalHost"] == f"{hall.namespace}/{mine[0]}"
        assert machine["spec"]["providerID"].startswith(f"baremetalhost:///{hall.namespace}/{mine[0]}/")
        assert len(mine) == 1
    rows = hall.kubectl("get", "machines", "-o", "wide", "--no-headers").splitlines()
    assert {(row.split()[1], row.split()[-1]) for row in rows} == {("Provisioned", "provisioned")}
    # Desired, current: and no node of any cluster has come up on them.
    assert hall.kubectl("get", "machineset", "workers", "--no-headers").split()[:3] == ["workers", "4", "4"]

    # Down again: the hosts of those that go are empty before anybody else can have them.
    hall.kubectl("scale", "machineset/workers", "--replicas=1")
    hall.until(lambda: len(hall.get("machines")) == 1 and len(hall.claimed()) == 1)
    kept = next(iter(hall.claimed()))
    free = [name for name in hosts if name != kept]
    hall.wait("condition=AvailableForProvisioning", *(f"bmh/{name}" for name in free))
    assert {name: hall.books(name).get("undeploy") for name in free} == dict.fromkeys(free, 1)
    assert "undeploy" not in hall.books(kept)

    # A Machine that somebody deletes is made anew.
    before = hall.get("machines")[0]["metadata"]["name"]
    hall.kubectl("delete", "machine", before)
    hall.until(lambda: len(hall.claimed()) == 1 and before not in hall.claimed().values())
    hall.kubectl("delete", "machineset", "workers")
    hall.until(lambda: not hall.get("machines") and not hall.claimed())


def machine_set(name: str, *, replicas: int) -> dict[str, Any]:
    labels = {LABEL: name}
    value = {
        "apiVersion": "baremetal.cluster.k8s.io/v1alpha1",
        "kind": "BareMetalMachineProviderSpec",
        "image": {"url": IMAGE["url"], "checksum": IMAGE["checksum"]},
    }
    template = {"metadata": {"labels": labels}, "spec": {"providerSpec": {"value": value}}}
    return resource(
        "MachineSet",
        name,
        group=MACHINE_API,
        replicas=replicas,
        selector={"matchLabels": labels},
        template=template,
    )
