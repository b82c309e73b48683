"""What a user gets wrong, how kubectl tells it, and that mending it is all there is to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from demo_hall import DemoHall, credentials, host, resource

SCRIPT = """
default: {others: {seconds: 0.1}}
hosts:
  denied: {register: {fails: 1, refusesCredentials: true, message: the user name or the password is refused}}
"""
SUBSCRIPTION = {"hostName": "h2", "destination": "https://events.example/"}
ACCESS = resource("HostNetworkAttachment", "access", mode="access", nativeVLAN=3)


@pytest.fixture(scope="module")
def hall(new_hall: Callable[[], DemoHall]) -> DemoHall:
    hall = new_hall()
    hall.operator(SCRIPT).leads()
    hall.until_rules_hold()
    hall.apply(credentials("h2"), host("h2"), resource("BMCEventSubscription", "h2", **SUBSCRIPTION))
    hall.wait("condition=AvailableForProvisioning", "bmh/h2")
    return hall


def test_a_password_that_was_wrong_is_corrected_in_the_secret(hall: DemoHall):
    hall.apply(credentials("denied", "mistyped"), host("denied"))
    hall.wait("jsonpath={.status.errorType}=registration error", "bmh/denied")
    assert hall.row("denied") == ["denied", "registering", "true", "registration", "error"]
    told = hall.kubectl("describe", "bmh", "denied")
    assert "the user name or the password is refused" in told
    assert "Warning" in told
    explained = hall.ingot("explain", "bmh/denied")
    assert "failures: 1 in a row" in explained
    assert "a change of the host or of its Secrets is tried at once" in explained
    hall.apply(credentials("denied", "right"))
    hall.wait("condition=AvailableForProvisioning", "bmh/denied")
    assert hall.row("denied") == ["denied", "available", "true"]
    assert "mistyped" not in told + explained


def test_a_setting_that_the_firmware_does_not_have_is_told_and_can_be_corrected(hall: DemoHall):
    # Before the firmware is known nobody can refuse it.
    wish = {"ProcTurboMode": "Sometimes"}
    hall.apply(resource("HostFirmwareSettings", "picky", settings=wish), credentials("picky"), host("picky"))
    hall.wait("condition=Valid=False", "hfs/picky")
    hall.until(lambda: "ValidationFailed" in hall.events("picky"))
    assert "ProcTurboMode" in hall.kubectl("describe", "hfs", "picky")
    # From then on only a possible wish is taken.
    said = hall.refused("patch", "hfs/picky", "--type=merge", "-p", _settings("Perhaps"))
    assert "spec.settings[ProcTurboMode]" in said
    assert "'Enabled', 'Disabled'" in said or "Enabled, Disabled" in said
    hall.patch("hfs/picky", {"spec": {"settings": {"ProcTurboMode": "Disabled"}}})
    hall.wait("condition=Valid", "hfs/picky")
    hall.wait("jsonpath={.status.settings.ProcTurboMode}=Disabled", "hfs/picky")
    hall.wait("condition=AvailableForProvisioning", "bmh/picky")
    hall.until(lambda: hall.books("picky").get("set ProcTurboMode to Disabled") == 1)


def _settings(turbo: str) -> str:
    return json.dumps({"spec": {"settings": {"ProcTurboMode": turbo}}})


BOTH_RAIDS = {"hardwareRAIDVolumes": [{"level": "1"}], "softwareRAIDVolumes": [{"level": "1"}]}
PIGEON = {"address": "carrier-pigeon://roof", "credentialsName": "s"}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (host("wrong", bmc=PIGEON), "there is no scheme 'carrier-pigeon'"),
        (host("wrong", raid=BOTH_RAIDS), "spec.raid"),
        (host("wrong", online=False, disablePowerOff=True), "spec.online"),
        (resource("DataImage", "wrong", url="floppy://a.iso"), "spec.url"),
        (
            resource(
                "HostFirmwareComponents", "wrong", updates=[{"component": "door", "url": "https://f/x"}]
            ),
            "spec.updates[0].component",
        ),
        (
            resource("BMCEventSubscription", "h2", hostName="h2", destination="https://another.example/"),
            "a subscription cannot be changed",
        ),
    ],
    ids=lambda given: given["kind"] if isinstance(given, dict) else "",
)
def test_what_breaks_a_rule_is_refused_with_the_field_and_the_reason(
    hall: DemoHall, wrong: dict[str, Any], words: str
):
    assert words in hall.refused("apply", "-f", "-", given=json.dumps(wrong))


def test_an_annotation_that_cannot_be_read_is_refused(hall: DemoHall):
    assert "reboot.metal3.io" in hall.refused("annotate", "bmh", "h2", "reboot.metal3.io={")


def test_a_network_attachment_stays_while_a_host_names_it(hall: DemoHall):
    hall.apply(ACCESS)
    wired = {"name": "eth0", "hostNetworkAttachment": {"name": "access"}}
    hall.apply(host("wired", networkInterfaces=[wired]))
    hall.wait("jsonpath={.status.provisioning.state}=registering", "bmh/wired")
    assert "wired[eth0]" in hall.refused("delete", "hostnetworkattachment", "access")
    hall.patch("bmh/wired", {"spec": {"networkInterfaces": None}})
    hall.kubectl("delete", "bmh", "wired")
    hall.until(lambda: "deleted" in hall.kubectl("delete", "hostnetworkattachment", "access", check=False))
