"""`ingot host add`: a host and its Secret from the command line, with a password that is never on it."""

from __future__ import annotations

import json

from host_site import ADDRESS, Site

from ingot.api.core import SECRETS
from ingot.api.meta import Key


async def test_a_host_is_added_and_followed_until_it_is_available(site: Site) -> None:
    told = await site.host(
        *("add", "h1", "--address", ADDRESS, "--username", "admin", "--password-file", "-", "--wait"),
        input="hunter2\n",
    )
    assert told.exit_code == 0, told.output
    lines = told.output.splitlines()
    assert lines[0] == "default/h1 was added"
    assert lines[-1] == "default/h1 is available"
    assert any(line.startswith("  registering: ") for line in lines)
    secret = await site.client.get(SECRETS, Key("default", "h1-bmc"))
    assert (secret.text("username"), secret.text("password")) == ("admin", "hunter2")
    assert "hunter2" not in told.output


async def test_what_is_said_of_the_machine_is_in_its_spec(site: Site) -> None:
    words = ("--mac", "52:54:00:12:34:56", "--boot-mode", "legacy", "--offline", "--label", "rack=3")
    told = await site.added(
        "h1", *words, "--inspection", "fast", "--root-device", "/dev/vda", "--any-certificate"
    )
    assert told.exit_code == 0, told.output
    host = await site.get("h1")
    assert (host.spec.boot_mac_address, host.spec.boot_mode, host.spec.online) == (words[1], "legacy", False)
    assert host.spec.bmc.disable_certificate_verification
    assert host.spec.root_device_hints is not None
    assert host.spec.root_device_hints.device_name == "/dev/vda"
    assert host.metadata.labels["rack"] == "3"


async def test_a_host_that_fails_ends_the_waiting_with_its_error(site: Site) -> None:
    told = await site.added("broken", "--wait")
    assert told.exit_code == 1
    assert told.output.splitlines()[-1] == "Error: default/broken: no disks were found."


async def test_the_waiting_can_be_limited(site: Site) -> None:
    told = await site.added("slow", "--wait", "--timeout", "1")
    assert told.exit_code == 1
    assert "it is not done after 1 s, and goes on" in told.output


async def test_it_is_told_to_programs_apart_from_the_progress(site: Site) -> None:
    told = await site.added("h1", "--wait", "-o", "json")
    found = json.loads(told.stdout)
    assert (found["name"], found["state"], found["why"]) == (
        "h1",
        "available",
        "waiting for an image to be set",
    )
    assert "default/h1 was added" in told.stderr


REFUSED = [
    (("--address", "carrier-pigeon://roof"), "there is no scheme 'carrier-pigeon'"),
    (("--address", ADDRESS, "--mac", "nonsense"), "spec.bootMACAddress"),
    (("--address", ADDRESS, "--inspection", "disabled"), "spec.bootMACAddress"),
    (("--address", ADDRESS, "--label", "rack"), "write a label as KEY=VALUE"),
]


async def test_what_the_api_would_refuse_is_refused_with_its_sentence(site: Site) -> None:
    for words, said in REFUSED:
        told = await site.host("add", "h1", "--username", "admin", *words, INGOT_BMC_PASSWORD="x")
        assert told.exit_code != 0, words
        assert said in told.output
    assert await site.secrets() == []


async def test_a_secret_whose_host_cannot_be_made_is_taken_back(site: Site) -> None:
    told = await site.added("h1", "--label", "rack=not a label")
    assert told.exit_code == 1
    assert "Traceback" not in told.output
    assert await site.secrets() == []


async def test_without_a_terminal_nobody_is_asked(site: Site) -> None:
    told = await site.host("add", "h1", "--address", ADDRESS)
    assert (told.exit_code, "--username or INGOT_BMC_USERNAME" in told.output) == (2, True)
    told = await site.host("add", "h1", "--address", ADDRESS, "--username", "admin")
    assert (told.exit_code, "--password-file" in told.output) == (2, True)


async def test_a_secret_that_is_there_is_used_but_never_overwritten(site: Site) -> None:
    body = {"metadata": {"name": "h1-bmc"}, "stringData": {"username": "admin", "password": "x"}}
    await site.client.create(SECRETS, body, namespace="default")
    told = await site.added("h1")
    assert (told.exit_code, "--credentials h1-bmc" in told.output) == (1, True)
    told = await site.host("add", "h1", "--address", ADDRESS, "--credentials", "h1-bmc", "--wait")
    assert told.exit_code == 0, told.output


async def test_a_host_that_is_there_is_left_as_it_is(site: Site) -> None:
    await site.added("h1")
    told = await site.added("h1", "--offline")
    assert (told.exit_code, "default/h1 exists already" in told.output) == (1, True)
    assert (await site.get("h1")).spec.online
