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
from ingot.api.core import NAMESPACES
from ingot.api.hostclaim import HOST_CLAIMS
from ingot.api.hostdeploypolicy import HOST_DEPLOY_POLICIES
from ingot.api.machine import MACHINES
from ingot.api.meta import Key
from ingot.api.preprovisioningimage import FINALIZER, PREPROVISIONING_IMAGES
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


@pytest.mark.parametrize("what", ["h17", "pod/h17", "bmh/", "machine/"])
async def test_what_is_none_of_these_is_refused_with_an_example(what: str) -> None:
    told = await asked(what)
    assert told.exit_code == 2
    assert "bmh/h17" in told.output


# Whose the images are


async def test_a_host_says_whose_its_images_are(api: Path) -> None:
    async with Client.from_kubeconfig(api) as client:
        consumer = {
            "kind": "Machine",
            "apiVersion": "machine.openshift.io/v1beta1",
            "name": "w0",
            "namespace": "default",
        }
        claim = {"consumerRef": consumer, "customDeploy": {"method": "install_coreos"}}
        await client.patch(BARE_METAL_HOSTS, Key("default", "h17"), {"spec": claim})
        await client.create(
            MACHINES,
            {"metadata": {"name": "w0", "annotations": {"ingot.metal3.io/image-source": "release"}}},
            namespace="default",
        )
        await client.create(
            PREPROVISIONING_IMAGES,
            {"metadata": {"name": "h17", "finalizers": [FINALIZER]}},
            namespace="default",
        )
        made = {"imageUrl": "https://i.example/h17", "format": "iso", "version": "coreos-43"}
        await client.patch(
            PREPROVISIONING_IMAGES, Key("default", "h17"), {"status": made}, subresource="status"
        )
    told = await asked("bmh/h17", "--kubeconfig", str(api))
    assert "provisioning: coreos-43 (iso)" in told.output
    assert "owner:      the release" in told.output
    assert "owner:      Machine default/w0" in told.output
    assert "default of the release" in told.output
    found = json.loads((await asked("bmh/h17", "-o", "json", "--kubeconfig", str(api))).output)
    assert found["images"]["provisioning"]["owner"] == "the release"
    assert found["images"]["target"]["owner"] == "Machine default/w0"


async def test_a_claimant_that_is_gone_is_said_to_be(api: Path) -> None:
    consumer = {"kind": "HostClaim", "apiVersion": "metal3.io/v1alpha1", "name": "c", "namespace": "default"}
    async with Client.from_kubeconfig(api) as client:
        await client.patch(BARE_METAL_HOSTS, Key("default", "h17"), {"spec": {"consumerRef": consumer}})
    told = await asked("bmh/h17", "--kubeconfig", str(api))
    assert "no such HostClaim exists any more" in told.output


# Machines and claims


@pytest.mark.parametrize("kind", ["machine", "Machines", "machines.machine.openshift.io"])
async def test_a_machine_without_a_host_says_which_hosts_were_passed_over(api: Path, kind: str) -> None:
    async with Client.from_kubeconfig(api) as client:
        value = {"hostSelector": {"matchLabels": {"role": "worker"}}}
        await client.create(
            MACHINES,
            {"metadata": {"name": "w0"}, "spec": {"providerSpec": {"value": value}}},
            namespace="default",
        )
    told = await asked(f"{kind}/w0", "--kubeconfig", str(api))
    assert told.exit_code == 0, told.output
    assert "Machine default/w0 has no host." in told.output
    assert "1 host is not what is asked for" in told.output
    found = json.loads((await asked(f"{kind}/w0", "-o", "json", "--kubeconfig", str(api))).output)
    assert (found["claimant"], found["host"]) == ("Machine default/w0", "")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"imgae": {}}, "imgae"),
        ({"hostSelector": {"matchExpressions": [{"key": "a", "operator": "near", "values": ["b"]}]}}, "near"),
    ],
)
async def test_a_machine_that_asks_in_a_way_nobody_understands_says_so(
    api: Path, value: dict[str, object], sentence: str
) -> None:
    async with Client.from_kubeconfig(api) as client:
        await client.create(
            MACHINES,
            {"metadata": {"name": "w0"}, "spec": {"providerSpec": {"value": value}}},
            namespace="default",
        )
    told = await asked("machine/w0", "--kubeconfig", str(api))
    assert told.exit_code == 0, told.output
    assert sentence in told.output


async def test_a_claim_in_a_namespace_of_its_own_is_explained(api: Path) -> None:
    async with Client.from_kubeconfig(api) as client:
        await client.create(NAMESPACES, {"metadata": {"name": "tenant"}})
        await client.create(
            HOST_CLAIMS, {"metadata": {"name": "mine"}, "spec": {"poweredOn": True}}, namespace="tenant"
        )
    told = await asked("-n", "tenant", "hostclaim/mine", "--kubeconfig", str(api))
    assert told.exit_code == 0, told.output
    assert "HostClaim tenant/mine has no host." in told.output


async def test_hosts_that_a_claim_may_have_are_counted_for_who_may_see_them(api: Path) -> None:
    async with Client.from_kubeconfig(api) as client:
        await client.create(NAMESPACES, {"metadata": {"name": "tenant"}})
        spec = {"poweredOn": True, "hostSelector": {"inNamespace": "default"}}
        await client.create(HOST_CLAIMS, {"metadata": {"name": "mine"}, "spec": spec}, namespace="tenant")
        await client.create(
            HOST_DEPLOY_POLICIES,
            {"metadata": {"name": "tenants"}, "spec": {"hostClaimNamespaces": {"names": ["tenant"]}}},
            namespace="default",
        )
    told = await asked("-n", "tenant", "hostclaims/mine", "--kubeconfig", str(api))
    assert "1 host is in error" in told.output
