"""`ingot explain` tells a person about a host on any API."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ingot.api.baremetalhost import (
    BARE_METAL_HOSTS,
    BareMetalHostStatus,
    ErrorType,
    OperationalStatus,
    ProvisionStatus,
)
from ingot.api.meta import Key
from ingot.api.wire import wire
from ingot.cli.explain import explain
from ingot.embedded.server import serve
from ingot.kube import Client


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Path]:
    """The kubeconfig of an API with one failed host."""
    async with serve(tmp_path / "state") as api, Client.from_kubeconfig(api.kubeconfig) as client:
        await client.create(
            BARE_METAL_HOSTS, {"metadata": {"name": "h17"}, "spec": {"online": True}}, namespace="default"
        )
        status = BareMetalHostStatus(
            provisioning=ProvisionStatus(state="registering"),
            operational_status=OperationalStatus.ERROR,
            error_type=ErrorType.REGISTRATION,
            error_message="the BMC is away.",
            error_count=3,
        )
        await client.patch(
            BARE_METAL_HOSTS, Key("default", "h17"), {"status": wire(status)}, subresource="status"
        )
        yield api.kubeconfig


async def asked(*arguments: str, **environment: str) -> Result:
    import asyncio

    # The command has an event loop of its own.
    return await asyncio.to_thread(CliRunner(env=environment).invoke, explain, list(arguments))


async def test_a_failed_host_is_explained_in_words(api: Path) -> None:
    told = await asked("bmh/h17", "--kubeconfig", str(api))
    assert told.exit_code == 0, told.output
    assert "default/h17 is registering" in told.output
    assert "error:    the BMC is away." in told.output
    assert "3 in a row" in told.output
    assert "to do:" in told.output


async def test_the_same_comes_as_json(api: Path) -> None:
    told = await asked("baremetalhost/h17", "-o", "json", KUBECONFIG=str(api))
    found = json.loads(told.output)
    assert (found["host"], found["state"], found["failures"]) == ("default/h17", "registering", 3)


async def test_what_ingot_up_runs_here_is_found_without_a_word(api: Path) -> None:
    told = await asked("bmh/h17", "--state", str(api.parent), KUBECONFIG="")
    assert told.exit_code == 0, told.output


async def test_a_host_that_does_not_exist_is_named(api: Path) -> None:
    told = await asked("bmh/h18", "--kubeconfig", str(api))
    assert told.exit_code == 1
    assert "h18" in told.output
    assert "Traceback" not in told.output


@pytest.mark.parametrize("what", ["h17", "pod/h17", "bmh/"])
async def test_what_is_no_host_is_refused_with_an_example(what: str) -> None:
    told = await asked(what)
    assert told.exit_code == 2
    assert "bmh/h17" in told.output
