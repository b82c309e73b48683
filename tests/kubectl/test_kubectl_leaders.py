"""Two operators with a Lease: the leader is killed while hosts are on their way, and nobody who watches with kubectl can tell."""

from __future__ import annotations

from typing import Any

from demo_hall import IMAGE, DemoHall, credentials, host, resource

# Each is caught somewhere else on its way when the leader dies. Those who have the longest way come first.
STATES = {"w": "provisioning", "p": "preparing", "i": "inspecting", "r": "registering"}
WAY = ("registering", "inspecting", "preparing", "available", "provisioning", "provisioned")
SCRIPT = """
default: {others: {seconds: 0.1}}
hosts:
  w-*: {provision: {seconds: 8}}
  p-*: {prepare: {seconds: 8}}
  i-*: {inspect: {seconds: 8}}
  r-*: {register: {seconds: 8}}
"""
# The Lease of one that was killed has to expire before another leads. Everywhere else an operator has all its time to renew it.
QUICK = ("--lease-duration-seconds=8", "--renew-deadline-seconds=6", "--retry-period-seconds=0.5")
RAID = {"hardwareRAIDVolumes": [{"level": "1", "sizeGibibytes": 400}]}
VERBS = ("register", "inspect", "prepare", "provision")
DEEDS = ("inspect", "prepare", "make volumes", "set NumLock to Off", "deploy")


def test_hosts_arrive_when_the_leader_is_killed_and_nothing_is_done_twice(hall: DemoHall):
    first = hall.operator(SCRIPT, *QUICK)
    first.leads()
    second = hall.operator(SCRIPT, *QUICK)
    names = [f"{letter}-{number}" for letter in STATES for number in (1, 2)]
    hall.apply(*(part for name in names for part in host_with_wishes(name)))
    hall.until(lambda: all(has_come_far(row) for row in rows(hall)))
    before = holder(hall)
    first.kill()
    assert {row[1] for row in rows(hall)} != {"provisioned"}
    second.leads()
    hall.wait("condition=Provisioned", "bmh", "--all")
    assert holder(hall) not in ("", before)
    assert rows(hall) == [[name, "provisioned", "true"] for name in sorted(names)]
    assert not hall.kubectl("get", "events", "--field-selector=type=Warning", "-o", "name")
    second.stop()
    assert holder(hall) == ""
    for name in names:
        machine = hall.machine(name)
        assert machine["done"] == dict.fromkeys(DEEDS, 1), name
        assert {verb: machine["attempts"][verb] for verb in VERBS} == dict.fromkeys(VERBS, 1), name


def host_with_wishes(name: str) -> tuple[dict[str, Any], ...]:
    settings = resource("HostFirmwareSettings", name, settings={"NumLock": "Off"})
    return credentials(name), settings, host(name, image=IMAGE, raid=RAID)


def rows(hall: DemoHall) -> list[list[str]]:
    return [line.split()[:-1] for line in hall.kubectl("get", "bmh", "--no-headers").splitlines()]


def has_come_far(row: list[str]) -> bool:
    """As far as its script lets it come soon; a machine that is slow to ask may find it farther."""
    letter, state = row[0][0], row[1] if len(row) > 2 else ""
    return state in WAY and WAY.index(state) >= WAY.index(STATES[letter])


def holder(hall: DemoHall) -> str:
    return hall.kubectl("get", "lease", "baremetal-operator", "-o", "jsonpath={.spec.holderIdentity}")
