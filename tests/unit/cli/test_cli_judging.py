"""The webhook's judge: the API's question put to the rules, and what they say in the API's words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.firmwareschema import FIRMWARE_SCHEMAS
from ingot.api.meta import Key
from ingot.cli.parts.judging import SUBJECTS, Rules
from ingot.embedded.server import Running, serve
from ingot.kube import Client, Informer
from ingot.kube.admission import Question


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with serve(tmp_path / "state") as running:
        yield running


@pytest.fixture
async def client(server: Running) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(server.kubeconfig) as made:
        yield made


@pytest.fixture
async def rules(client: Client) -> AsyncIterator[Rules]:
    interface = {"name": "eth0", "hostNetworkAttachment": {"name": "access"}}
    await client.create(BARE_METAL_HOSTS, host(networkInterfaces=[interface]))
    hosts = Informer(client, BARE_METAL_HOSTS)
    task = asyncio.create_task(hosts.run())
    await hosts.synced()
    yield Rules(client, hosts)
    task.cancel()
    await asyncio.wait([task])


def host(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {"name": "h", "namespace": "default"},
        "spec": {"online": True, **spec},
    }


def asked(operation: Any, kind: str, **more: Any) -> Question:
    return Question(
        operation=operation,
        group="metal3.io",
        version="v1alpha1",
        kind=kind,
        key=Key("default", "h"),
        **more,
    )


async def test_a_rule_that_is_broken_becomes_a_cause_of_the_api(rules: Rules):
    wrong = host(bmc={"address": "carrier-pigeon://roof", "credentialsName": "s"})
    [problem] = (await rules(asked("CREATE", "BareMetalHost", new=wrong))).problems
    assert (problem.field, problem.reason) == ("spec.bmc.address", "FieldValueInvalid")
    assert problem.message.startswith('Invalid value: "carrier-pigeon://roof": ')


async def test_what_breaks_none_has_no_problems(rules: Rules):
    assert not (await rules(asked("CREATE", "BareMetalHost", new=host()))).problems
    assert not (await rules(asked("DELETE", "BareMetalHost", old=host()))).problems


async def test_neither_a_subresource_nor_a_change_of_labels_is_judged(rules: Rules):
    wrong = host(bmc={"address": "carrier-pigeon://roof", "credentialsName": "s"})
    labelled = {**wrong, "metadata": {**wrong["metadata"], "labels": {"a": "b"}, "finalizers": []}}
    assert not (await rules(asked("UPDATE", "BareMetalHost", new=labelled, old=wrong))).problems
    assert not (
        await rules(asked("UPDATE", "BareMetalHost", new=wrong, old=host(), subresource="status"))
    ).problems


async def test_rules_see_the_hosts(rules: Rules):
    attachment = {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "HostNetworkAttachment",
        "metadata": {"name": "access", "namespace": "default"},
        "spec": {"mode": "access", "nativeVLAN": 3},
    }
    [problem] = (await rules(asked("DELETE", "HostNetworkAttachment", old=attachment))).problems
    assert "default/h[eth0]" in problem.message
    other = {**attachment, "metadata": {"name": "unused", "namespace": "default"}}
    assert not (await rules(asked("DELETE", "HostNetworkAttachment", old=other))).problems


async def test_what_rules_look_for_is_fetched(rules: Rules, client: Client):
    settings = {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "HostFirmwareSettings",
        "metadata": {"name": "h", "namespace": "default"},
        "spec": {"settings": {"Cores": 99}},
        "status": {"schema": {"name": "s", "namespace": "default"}, "settings": {"Cores": "4"}},
    }
    question = asked("CREATE", "HostFirmwareSettings", new=settings)
    assert not (await rules(question)).problems, "what nobody knows yet cannot be judged"
    limits = {"attribute_type": "Integer", "lower_bound": 1, "upper_bound": 8}
    await client.create(
        FIRMWARE_SCHEMAS,
        {"metadata": {"name": "s", "namespace": "default"}, "spec": {"schema": {"Cores": limits}}},
    )
    [problem] = (await rules(question)).problems
    assert problem.field == "spec.settings[Cores]"


def test_the_api_is_to_ask_about_what_has_rules_and_nothing_else():
    about = {subject.kind.kind: tuple(subject.operations) for subject in SUBJECTS}
    assert about["BareMetalHost"] == ("CREATE", "UPDATE")
    assert about["HostNetworkAttachment"] == ("CREATE", "UPDATE", "DELETE")
    assert "HardwareData" not in about
