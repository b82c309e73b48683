"""Installing by another way than writing an image, and images that a registry gives to those who log in."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from rack import IMAGE, Rack

from ingot.api.core import SECRETS, SecretObject
from ingot.api.meta import Key, Malformed, ObjectMeta
from ingot.hosts import HostSettings
from ingot.hosts.secrets.pulling import UnsupportedForm, credentials_in
from ingot.provisioner import Busy, Failed

STEP = {"method": "install_coreos"}
FROM_REGISTRY = {"url": "oci://registry.example:5000/os/debian:12", "ociAuthSecretName": "pull"}


# Custom deploy steps


async def test_a_deploy_step_without_an_image_is_run(rack: Rack) -> None:
    key = await rack.host(customDeploy=STEP)
    host = await rack.until_well(key, "provisioned")
    deployed = rack.backend.machines[key].deployment
    assert deployed is not None
    assert deployed.custom_deploy is not None
    assert deployed.custom_deploy.method == "install_coreos"
    assert deployed.image is None
    assert host.status.provisioning.custom_deploy is not None
    assert host.status.provisioning.image is None
    assert host.status.last_attempted_image is None


async def test_a_deploy_step_gets_the_image_that_is_beside_it(rack: Rack) -> None:
    key = await rack.host(customDeploy=STEP, image=IMAGE)
    host = await rack.until_well(key, "provisioned")
    deployed = rack.backend.machines[key].deployment
    assert deployed is not None
    assert deployed.image is not None
    assert deployed.image.url == IMAGE["url"]
    assert deployed.custom_deploy is not None
    assert host.status.provisioning.image is not None


async def test_a_host_that_a_deploy_step_installed_is_adopted_as_that(rack: Rack) -> None:
    key = await rack.host(customDeploy=STEP)
    await rack.until_well(key, "provisioned")
    await rack.settle()
    adopted = rack.backend.machines[key].adopted_step
    assert adopted is not None
    assert adopted.method == "install_coreos"


async def test_what_was_begun_is_written_before_the_back_end_is_told(rack: Rack) -> None:
    rack.backend.hold("provision", Busy("running the step"))
    key = await rack.host(customDeploy=STEP)
    host = await rack.until_state(key, "provisioning")
    assert host.status.provisioning.custom_deploy is not None
    await rack.operator.restart()
    rack.backend.let_go("provision")
    rack.backend.tell(key)
    await rack.until_well(key, "provisioned")


async def test_removing_the_step_deprovisions_and_another_one_installs_anew(rack: Rack) -> None:
    key = await rack.host(customDeploy=STEP)
    await rack.until_well(key, "provisioned")
    await rack.change(key, {"customDeploy": {"method": "another_way"}})
    await rack.until(
        key,
        lambda host: (
            host.state == "provisioned"
            and host.status.provisioning.custom_deploy is not None
            and host.status.provisioning.custom_deploy.method == "another_way"
        ),
    )
    await rack.change(key, {"customDeploy": None})
    host = await rack.until_well(key, "available")
    assert host.status.provisioning.custom_deploy is None


async def test_what_the_back_end_can_never_run_costs_no_cleaned_disk(rack: Rack) -> None:
    rack.backend.unknown_formats.add("live-iso")
    key = await rack.host(image={"url": "https://images.example/live.iso", "format": "live-iso"})
    await rack.until_error(key, "knows no live-iso")
    assert "deploy" not in rack.backend.machines[key].orders


@pytest.mark.parametrize("settings", [HostSettings(most_attempts=1)], ids=["one attempt"])
async def test_a_step_that_failed_too_often_waits_until_it_is_taken_back(rack: Rack) -> None:
    rack.backend.script("provision", Failed("the step failed"))
    key = await rack.host(customDeploy=STEP)
    await rack.until_error(key, "the step failed")
    await rack.change(key, {"description": "try again"})
    await rack.until_error(key, "gave up after 1 failed")
    await rack.change(key, {"customDeploy": None})
    await rack.until_well(key, "available")
    await rack.change(key, {"customDeploy": STEP})
    await rack.until_well(key, "provisioned")


# CoreOS, by either of its names

IGNITION = (
    '{"ignition": {"version": "3.4.0"}, "passwd": {"users": [{"name": "core", "passwordHash": "sesame"}]}}'
)
COREOS = {"url": "", "format": "coreos"}


@pytest.mark.parametrize("spec", [{"image": COREOS}, {"customDeploy": STEP}], ids=["by format", "by step"])
@pytest.mark.parametrize("text", ["#cloud-config\nsesame: 1", "sesame: 1", '{"sesame": 1}'])
async def test_user_data_that_are_no_ignition_are_refused_before_the_machine_is_touched(
    rack: Rack, spec: dict[str, Any], text: str
) -> None:
    await rack.secret("user-data", userData=text)
    key = await rack.host(**spec, userData={"name": "user-data"})
    host = await rack.until_error(
        key, "CoreOS is configured with Ignition" if "{" not in text else "no ignition.version"
    )
    assert host.state == "available"
    assert host.status.error_type == "provisioning error"
    assert "spec.userData" in host.status.error_message
    assert "sesame" not in host.status.error_message
    assert "deploy" not in rack.backend.machines[key].orders
    await rack.settle()
    assert "ProvisioningError" in await rack.event_reasons()
    await rack.client.patch(SECRETS, Key(rack.namespace, "user-data"), {"stringData": {"userData": IGNITION}})
    await rack.until_well(key, "provisioned")
    deployed = rack.backend.machines[key].deployment
    assert deployed is not None
    assert deployed.config_drive.user_data.reveal() == IGNITION


async def test_other_ways_of_installing_take_any_user_data(rack: Rack) -> None:
    await rack.secret("user-data", userData="#cloud-config\n")
    key = await rack.host(customDeploy={"method": "another_way"}, userData={"name": "user-data"})
    await rack.until_well(key, "provisioned")


async def test_kernel_arguments_that_a_boot_loader_could_take_for_more_are_refused(rack: Rack) -> None:
    await rack.secret("meta", metaData=json.dumps({"coreos_append_karg": ["quiet", "a; sesame"]}))
    key = await rack.host(image=COREOS, metaData={"name": "meta"})
    host = await rack.until_error(key, "coreos_append_karg")
    assert "sesame" not in host.status.error_message
    assert "deploy" not in rack.backend.machines[key].orders


async def test_an_image_that_becomes_one_of_coreos_is_installed_anew(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_well(key, "provisioned")
    await rack.change(key, {"image": {**IMAGE, "format": "coreos"}})
    await rack.until(
        key,
        lambda host: (
            host.state == "provisioned"
            and host.status.provisioning.image is not None
            and host.status.provisioning.image.format == "coreos"
        ),
    )
    assert rack.backend.machines[key].orders.count("deploy") == 2


# Pull secrets


async def pull_secret(rack: Rack, config: object, *, type_: str = "kubernetes.io/dockerconfigjson") -> None:
    key = ".dockercfg" if type_.endswith("dockercfg") else ".dockerconfigjson"
    body = {"metadata": {"name": "pull"}, "type": type_, "stringData": {key: json.dumps(config)}}
    await rack.client.create(SECRETS, body, namespace=rack.namespace)


def auth(text: str) -> dict[str, str]:
    return {"auth": base64.b64encode(text.encode()).decode()}


async def test_an_image_of_a_registry_is_fetched_with_the_credentials_of_its_secret(rack: Rack) -> None:
    await pull_secret(rack, {"auths": {"registry.example:5000": auth("me:sesame")}})
    key = await rack.host(image=FROM_REGISTRY)
    await rack.until_well(key, "provisioned")
    deployed = rack.backend.machines[key].deployment
    assert deployed is not None
    assert deployed.pull_secret.reveal() == "me:sesame"


async def test_a_missing_pull_secret_is_named_and_noticed_when_it_appears(rack: Rack) -> None:
    key = await rack.host(image=FROM_REGISTRY)
    host = await rack.until_error(key, "Secret pull, named by spec.image.ociAuthSecretName, does not exist")
    assert host.state == "available"
    await pull_secret(rack, {"auths": {"registry.example:5000": auth("me:sesame")}})
    await rack.until_well(key, "provisioned")


async def test_a_pull_secret_of_another_sort_is_told_in_an_event_of_its_own(rack: Rack) -> None:
    await rack.secret("pull", user="me")
    key = await rack.host(image=FROM_REGISTRY)
    await rack.until_error(key, "kubectl create secret docker-registry")
    await rack.settle()
    assert "ImageAuthFormatUnsupported" in await rack.event_reasons()


async def test_a_pull_secret_without_the_registry_is_told_in_an_event_of_its_own(rack: Rack) -> None:
    await pull_secret(rack, {"auths": {"elsewhere.example": auth("me:sesame")}})
    key = await rack.host(image=FROM_REGISTRY)
    await rack.until_error(key, "has no entry for registry.example:5000")
    await rack.settle()
    assert "ImageAuthParseError" in await rack.event_reasons()


def secret_with(config: object, *, type_: str = "kubernetes.io/dockerconfigjson") -> SecretObject:
    key = ".dockercfg" if type_.endswith("dockercfg") else ".dockerconfigjson"
    text = config if isinstance(config, str) else json.dumps(config)
    return SecretObject(
        metadata=ObjectMeta(name="pull", namespace="rack"),
        type=type_,
        data={key: base64.b64encode(text.encode()).decode()},
    )


@pytest.mark.parametrize(
    ("registry", "url"),
    [
        ("registry.example", "oci://registry.example/os/debian:12"),
        ("https://registry.example", "oci://registry.example/os/debian:12"),
        ("https://registry.example/v2/", "oci://registry.example/os/debian:12"),
        ("registry.example/os", "oci://registry.example/os/debian:12"),
        ("https://index.docker.io/v1/", "oci://docker.io/library/debian:12"),
    ],
)
def test_the_entry_of_the_registry_is_found_however_it_is_written(registry: str, url: str) -> None:
    assert credentials_in(secret_with({"auths": {registry: auth("me:sesame")}}), url).reveal() == "me:sesame"


def test_the_entry_with_the_longest_path_counts() -> None:
    entries = {
        "registry.example": auth("all:x"),
        "registry.example/os": auth("os:y"),
        "registry.example/o": auth("o:z"),
    }
    assert (
        credentials_in(secret_with({"auths": entries}), "oci://registry.example/os/debian").reveal() == "os:y"
    )


def test_the_older_form_and_plain_fields_are_read() -> None:
    older = secret_with({"registry.example": auth("me:a:b")}, type_="kubernetes.io/dockercfg")
    assert credentials_in(older, "oci://registry.example/x").reveal() == "me:a:b"
    plain = secret_with({"auths": {"registry.example": {"username": "me", "password": "open"}}})
    assert credentials_in(plain, "oci://registry.example/x").reveal() == "me:open"


@pytest.mark.parametrize(
    "config",
    [
        "sesame",
        '{"auths": ["sesame"]}',
        {"auths": {"registry.example": {"auth": "not base64: sesame"}}},
        {"auths": {"registry.example": {"identitytoken": "sesame"}}},
        {"auths": {"registry.example.evil": {"username": "me", "password": "sesame"}}},
    ],
)
def test_what_cannot_be_used_is_refused_without_repeating_it(config: object) -> None:
    with pytest.raises(Malformed) as found:
        credentials_in(secret_with(config), "oci://registry.example/x")
    assert "sesame" not in str(found.value)
    assert "Secret pull" in str(found.value)


def test_a_secret_of_another_type_is_an_unsupported_form() -> None:
    with pytest.raises(UnsupportedForm, match="Opaque"):
        credentials_in(secret_with({}, type_="Opaque"), "oci://registry.example/x")


async def test_a_failed_deploy_step_is_undone_before_the_next_attempt(rack: Rack) -> None:
    rack.backend.script("provision", Failed("the step failed"))
    key = await rack.host(customDeploy=STEP)
    host = await rack.until_error(key, "the step failed")
    assert host.state == "provisioning"
    await rack.change(key, {"description": "try again"})
    host = await rack.until_well(key, "provisioned")
    assert host.status.operation_history.deprovision.end is not None
    assert host.status.provisioning_fail_count == 0
