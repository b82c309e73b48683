"""What a user gets wrong, how kubectl tells it, and that mending it is all there is to do."""

from __future__ import annotations

import json
from typing import Any

import yaml
from demo_hall import DemoHall, credentials, host, resource

ACCESS = resource("HostNetworkAttachment", "access", mode="access", nativeVLAN=3)


def test_a_password_that_was_wrong_is_corrected_in_the_secret(busy_hall: DemoHall):
    busy_hall.apply(credentials("denied", "mistyped"), host("denied"))
    busy_hall.wait("jsonpath={.status.errorType}=registration error", "bmh/denied")
    assert busy_hall.row("denied") == ["denied", "registering", "true", "registration", "error"]
    told = busy_hall.kubectl("describe", "bmh", "denied")
    assert "the user name or the password is refused" in told
    assert "Warning" in told
    explained = busy_hall.ingot("explain", "bmh/denied")
    assert "failures: 1 in a row" in explained
    assert "a change of the host or of its Secrets is tried at once" in explained
    busy_hall.apply(credentials("denied", "right"))
    busy_hall.wait("condition=AvailableForProvisioning", "bmh/denied")
    assert busy_hall.row("denied") == ["denied", "available", "true"]
    assert "mistyped" not in told + explained


def test_what_failed_by_chance_is_tried_again_when_somebody_says_so(busy_hall: DemoHall):
    busy_hall.apply(credentials("flaky"), host("flaky"))
    busy_hall.wait("jsonpath={.status.errorType}=inspection error", "bmh/flaky")
    assert "no disks were found" in busy_hall.ingot("host", "list")
    busy_hall.ingot("host", "retry", "flaky")
    busy_hall.wait("condition=AvailableForProvisioning", "bmh/flaky")


def test_a_setting_that_the_firmware_does_not_have_is_told_and_can_be_corrected(busy_hall: DemoHall):
    # Before the firmware is known nobody can refuse it.
    wish = {"ProcTurboMode": "Sometimes"}
    busy_hall.apply(
        resource("HostFirmwareSettings", "picky", settings=wish), credentials("picky"), host("picky")
    )
    busy_hall.wait("condition=Valid=False", "hfs/picky")
    busy_hall.until(lambda: "ValidationFailed" in busy_hall.events("picky"))
    assert "ProcTurboMode" in busy_hall.kubectl("describe", "hfs", "picky")
    # From then on only a possible wish is taken.
    said = busy_hall.refused("patch", "hfs/picky", "--type=merge", "-p", _settings("Perhaps"))
    assert "spec.settings[ProcTurboMode]" in said
    assert "'Enabled', 'Disabled'" in said or "Enabled, Disabled" in said
    busy_hall.patch("hfs/picky", {"spec": {"settings": {"ProcTurboMode": "Disabled"}}})
    busy_hall.wait("condition=Valid", "hfs/picky")
    busy_hall.wait("jsonpath={.status.settings.ProcTurboMode}=Disabled", "hfs/picky")
    busy_hall.wait("condition=AvailableForProvisioning", "bmh/picky")
    busy_hall.until(lambda: busy_hall.books("picky").get("set ProcTurboMode to Disabled") == 1)


def _settings(turbo: str) -> str:
    return json.dumps({"spec": {"settings": {"ProcTurboMode": turbo}}})


BOTH_RAIDS = {"hardwareRAIDVolumes": [{"level": "1"}], "softwareRAIDVolumes": [{"level": "1"}]}
DOOR = [{"component": "door", "url": "https://firmware.example/x"}]
PIGEON = {"address": "carrier-pigeon://roof", "credentialsName": "s"}


def test_what_breaks_a_rule_is_refused_with_the_field_and_the_reason(busy_hall: DemoHall):
    busy_hall.apply(
        resource("BMCEventSubscription", "heard", hostName="h", destination="https://events.example/")
    )
    table: list[tuple[dict[str, Any], str]] = [
        (host("wrong", bmc=PIGEON), "there is no scheme 'carrier-pigeon'"),
        (host("wrong", raid=BOTH_RAIDS), "spec.raid"),
        (host("wrong", online=False, disablePowerOff=True), "spec.online"),
        (resource("DataImage", "wrong", url="floppy://a.iso"), "spec.url"),
        (resource("HostFirmwareComponents", "wrong", updates=DOOR), "spec.updates[0].component"),
        (
            resource("BMCEventSubscription", "heard", hostName="h", destination="https://another.example/"),
            "a subscription cannot be changed",
        ),
    ]
    # kubectl goes on after each that is refused.
    said = busy_hall.refused("apply", "-f", "-", given=yaml.safe_dump_all(wrong for wrong, _ in table))
    assert [words for _, words in table if words not in said] == []
    busy_hall.kubectl("delete", "bmcevent", "heard")
    assert "NotFound" in busy_hall.refused(
        "get", "bmh/wrong", "dataimage/wrong", "hostfirmwarecomponents/wrong"
    )


def test_a_host_cannot_be_changed_into_a_wrong_one_nor_what_it_names_be_deleted(busy_hall: DemoHall):
    busy_hall.apply(ACCESS)
    wired = {"name": "eth0", "hostNetworkAttachment": {"name": "access"}}
    busy_hall.apply(host("wired", networkInterfaces=[wired]))
    busy_hall.wait("jsonpath={.status.provisioning.state}=registering", "bmh/wired")
    assert "reboot.metal3.io" in busy_hall.refused("annotate", "bmh", "wired", "reboot.metal3.io={")
    assert "wired[eth0]" in busy_hall.refused("delete", "hostnetworkattachment", "access")
    busy_hall.patch("bmh/wired", {"spec": {"networkInterfaces": None}})
    busy_hall.kubectl("delete", "bmh", "wired")
    busy_hall.until(
        lambda: "deleted" in busy_hall.kubectl("delete", "hostnetworkattachment", "access", check=False)
    )
