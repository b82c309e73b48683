"""What the operator is told about all hosts counts: here, how many may boot over the network at the same time."""

from __future__ import annotations

from collections.abc import Callable

from demo_hall import DemoHall, credentials, host

SCRIPT = """
networkBoot: true
default: {others: {seconds: 0.1}}
hosts: {first: {inspect: {seconds: forever}}}
"""


def test_a_host_waits_for_its_place_says_so_and_gets_it(new_hall: Callable[[], DemoHall]):
    hall = new_hall()
    hall.environment["PROVISIONING_LIMIT"] = "1"
    hall.operator(SCRIPT).leads()
    hall.apply(credentials("first"), host("first"))
    hall.wait("jsonpath={.status.provisioning.state}=inspecting", "bmh/first")
    hall.apply(credentials("second"), host("second"))
    hall.wait("jsonpath={.status.operationalStatus}=delayed", "bmh/second")
    assert "(delayed)" in hall.ingot("host", "list")
    assert "all 1 places" in hall.ingot("explain", "bmh/second")
    hall.kubectl("delete", "bmh", "first", "--timeout=120s")
    hall.wait("condition=AvailableForProvisioning", "bmh/second")
