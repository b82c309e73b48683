"""`ingot host list` and `ingot host show`: hosts as a person reads them, and as a program does."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from host_site import IMAGE, Site

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.hostfirmwaresettings import HOST_FIRMWARE_SETTINGS
from ingot.api.hostupdatepolicy import HOST_UPDATE_POLICIES
from ingot.api.meta import Key
from ingot.cli.host.list import lines
from ingot.cli.parts.host_report import HostReport, table


async def test_hosts_are_listed_with_why_they_are_where_they_are(site: Site) -> None:
    await site.added("h1", "--wait", "--label", "rack=3")
    await site.added("broken", "--wait")
    told = await site.host("list")
    head, *rows = told.output.splitlines()
    assert head.split() == ["NAME", "STATE", "POWER", "CONSUMER", "ERROR", "AGE", "WHY"]
    assert [row.split()[0] for row in rows] == ["broken", "h1"]
    assert "inspection error" in rows[0]
    assert rows[0].endswith("no disks were found.")
    assert rows[1].endswith("waiting for an image to be set")
    assert len((await site.host("list", "-A", "-l", "rack=3")).output.splitlines()) == 2
    found = json.loads((await site.host("list", "-o", "json")).stdout)
    assert [one["errorType"] for one in found] == ["inspection error", ""]


async def test_no_hosts_are_said_to_be_none(site: Site) -> None:
    told = await site.host("list", "-n", "rack-3")
    assert told.output == "No hosts in namespace rack-3. -A shows those of all namespaces.\n"
    assert json.loads((await site.host("list", "-o", "json")).stdout) == []


async def test_a_host_with_a_state_that_does_not_exist_hides_no_other(site: Site) -> None:
    await site.added("h1", "--wait")
    await site.host("pause", "h1")
    status = {"status": {"provisioning": {"state": "dancing"}}}
    await site.client.patch(BARE_METAL_HOSTS, Key("default", "h1"), status, subresource="status")
    await site.added("h2", "--wait")
    rows = (await site.host("list")).output.splitlines()[1:]
    assert "which is no state of a host" in rows[0]
    assert rows[1].startswith("h2")


def report(**more: object) -> HostReport:
    usual = {
        "namespace": "rack",
        "name": "h1",
        "state": "provisioned",
        "status": "OK",
        "online": True,
        "powered_on": True,
        "consumer": "",
        "address": "",
        "error_type": "",
        "error": "",
        "why": "the wanted image is installed",
    }
    return HostReport(**(usual | more))


@pytest.mark.parametrize(
    ("more", "cell"),
    [
        ({}, "provisioned   on"),
        ({"powered_on": False}, "off, to be on"),
        ({"online": False}, "on, to be off"),
        ({"status": "detached"}, "provisioned (detached)"),
        ({"status": "error"}, "provisioned   on"),
        ({"error": "the BMC is away."}, "the BMC is away."),
    ],
)
def test_a_row_says_what_matters(more: dict[str, object], cell: str) -> None:
    assert cell in lines([report(**more)], datetime.now(UTC))[1]


def test_a_terminal_gets_lines_that_fit() -> None:
    assert table([("NAME", "WHY"), ("h1", "waiting for an image")], 15) == ["NAME   WHY", "h1     waiting…"]


async def test_all_of_a_host_is_shown(site: Site) -> None:
    await site.added("h1", "--wait")
    key = Key("default", "h1")
    await site.host("provision", "h1", *IMAGE, "--wait")
    await site.client.patch(
        HOST_FIRMWARE_SETTINGS, key, {"spec": {"settings": {"ProcTurboMode": "Disabled"}}}
    )
    policy = {"metadata": {"name": "h1"}, "spec": {"firmwareSettings": "onReboot"}}
    await site.client.create(HOST_UPDATE_POLICIES, policy, namespace="default")
    told = (await site.host("show", "h1")).output
    assert told.startswith("default/h1 is provisioned since ")
    for line in (
        "  image:     https://images.example/a.raw",
        "  memory:    256 GiB",
        "  bios:          1.0",
        "  ProcTurboMode: Enabled, to be Disabled",
        "  HostUpdatePolicy: settings onReboot, updates onPreparing",
        "lately:",
    ):
        assert line in told
    found = json.loads((await site.host("show", "h1", "-o", "json")).stdout)
    assert found["hardware"]["ramMebibytes"] == 256 * 1024
    assert found["provisioning"]["image"]["url"] == IMAGE[1]
    assert found["updatePolicy"]["spec"] == {"firmwareSettings": "onReboot"}
    assert found["dataImage"] is None


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("fedora-coreos-44", "fedora-coreos-44 (iso), told to boot at 2026-01-02 03:04:05 UTC"),
        ("", "of an unknown version (iso), told to boot at 2026-01-02 03:04:05 UTC"),
    ],
)
async def test_the_ramdisk_that_a_host_booted_last_is_shown(site: Site, version: str, told: str) -> None:
    await site.added("h1", "--wait")
    await site.host("pause", "h1")
    booted = {"version": version, "format": "iso", "bootedAt": "2026-01-02T03:04:05Z"}
    await site.client.patch(
        BARE_METAL_HOSTS, Key("default", "h1"), {"status": {"ramdisk": booted}}, subresource="status"
    )
    assert f"  ramdisk:   {told}\n" in (await site.host("show", "h1")).output
    ran = {"status": {"ramdisk": {"reported": "44.1.2"}}}
    await site.client.patch(BARE_METAL_HOSTS, Key("default", "h1"), ran, subresource="status")
    assert f"  ramdisk:   {told}, says it is 44.1.2\n" in (await site.host("show", "h1")).output
    found = json.loads((await site.host("show", "h1", "-o", "json")).stdout)
    assert found["ramdisk"]["bootedAt"] == "2026-01-02T03:04:05Z"


async def test_a_host_that_does_not_exist_is_named(site: Site) -> None:
    told = await site.host("show", "h9")
    assert told.exit_code == 1
    assert "h9" in told.output
    assert "Traceback" not in told.output
