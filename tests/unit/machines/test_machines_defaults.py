"""What a Machine installs: what it says itself, else what the cluster says, else what the release says; and who said it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ingot.api.core import CONFIG_MAPS, EVENTS, ConfigMap
from ingot.api.machine import BareMetalMachineProviderSpec, read_provider_spec
from ingot.api.meta import Key, ObjectMeta
from ingot.embedded.server import serve
from ingot.kube import Client, EventRecorder, Informer
from ingot.machines.defaults import (
    BROKEN,
    NAME,
    BrokenDefault,
    NoTarget,
    TargetDefaults,
    defaults_informer,
    of_cluster,
    of_release,
)

COREOS = "customDeploy: {method: install_coreos}"
IMAGE = {"url": "https://images.example/a.qcow2", "checksum": "https://images.example/a.sha256"}
IMAGE_TEXT = "url: https://images.example/a.qcow2\nchecksum: https://images.example/a.sha256\n"
PATIENCE = 20.0
HERE = Key("default", NAME)


def spec(**fields: Any) -> BareMetalMachineProviderSpec:
    return read_provider_spec({"hostSelector": {"matchLabels": {"role": "worker"}}} | fields)


def config_map(**data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=NAME, namespace="default"), data=data)


# What a Machine says itself


@pytest.mark.parametrize(
    ("fields", "url", "method"),
    [
        ({"image": IMAGE}, IMAGE["url"], None),
        ({"customDeploy": {"method": "install_coreos"}}, None, "install_coreos"),
        ({"image": IMAGE, "customDeploy": {"method": "mine"}}, IMAGE["url"], "mine"),
        # As upstream: an image that is not whole is no image beside a deploy step.
        ({"image": {"url": IMAGE["url"]}, "customDeploy": {"method": "mine"}}, None, "mine"),
        ({"image": {"url": "oci://registry.example/a:1"}}, "oci://registry.example/a:1", None),
    ],
)
def test_what_the_provider_spec_says_wins(
    fields: dict[str, Any], url: str | None, method: str | None
) -> None:
    found = TargetDefaults(release="image: {url: 'https://other.example/b', checksum: '11'}").resolve(
        spec(**fields)
    )
    assert found.source == "provider spec"
    assert (found.image and found.image.url, found.custom_deploy and found.custom_deploy.method) == (
        url,
        method,
    )


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"image": {"url": IMAGE["url"]}}, "image.checksum missing"),
        ({"image": {"checksum": "11"}}, "image.url missing"),
        ({"image": {"url": "file:///etc/shadow", "checksum": "11"}}, "the scheme has to be one of"),
        ({"image": {"url": "oci://registry.example/a", "checksum": "11"}}, "Remove the checksum"),
        ({"customDeploy": {"method": "rm -rf"}}, "the name of a deploy step"),
    ],
)
def test_a_provider_spec_that_says_half_of_it_is_not_completed_by_a_default(
    fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(NoTarget, match=r"spec\.providerSpec\.value") as caught:
        TargetDefaults(release=COREOS).resolve(spec(**fields))
    assert sentence in str(caught.value)
    assert not isinstance(caught.value, BrokenDefault)


def test_where_nobody_says_anything_the_machine_is_told_what_to_write() -> None:
    with pytest.raises(NoTarget, match="neither image nor customDeploy"):
        TargetDefaults().resolve(spec())


def test_the_default_of_the_release_is_the_last_that_is_asked() -> None:
    found = TargetDefaults(release=COREOS).resolve(spec())
    assert found.source == "release"
    assert found.image is None
    assert found.custom_deploy is not None
    assert found.custom_deploy.method == "install_coreos"


# How defaults are read


@pytest.mark.parametrize("text", ["", "  \n"])
def test_no_default_of_the_release_is_none(text: str) -> None:
    assert of_release(text) is None


@pytest.mark.parametrize(
    "text",
    [
        f"image:\n  url: {IMAGE['url']}\n  checksum: {IMAGE['checksum']}\n",
        f'{{"image": {{"url": "{IMAGE["url"]}", "checksum": "{IMAGE["checksum"]}"}}}}',
    ],
    ids=["YAML", "JSON"],
)
def test_the_release_says_it_as_a_provider_spec_does(text: str) -> None:
    found = of_release(text)
    assert found is not None
    assert found.image is not None
    assert (found.image.url, found.image.checksum) == (IMAGE["url"], IMAGE["checksum"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("install_coreos", "is not a mapping"),
        ("- image", "is not a mapping"),
        ("image: {url: a: b}", "is neither YAML nor JSON"),
        ("imgae: {}", "has the field imgae, which does not exist"),
        ("customDeploy: {methd: x}", "has the field customDeploy.methd"),
        ("image: [1]", "wrong sort"),
        ("image: {url: 'https://images.example/a'}", "image.checksum missing"),
        ("image: {url: 'ftp://h ost/a', checksum: '1'}", "image.url"),
        ("customDeploy: {}", "does not say what to install"),
        ("image: null", "does not say what to install"),
        ("customDeploy: {method: install_coreos}\nuserData: {name: x}", "has the field userData"),
        ("[" * 5000, "nested more than"),
    ],
)
def test_a_release_with_a_default_that_cannot_be_used_does_not_begin(text: str, sentence: str) -> None:
    with pytest.raises(BrokenDefault) as caught:
        TargetDefaults(release=text)
    assert sentence in str(caught.value)
    assert "--release-target" in str(caught.value)


def test_the_cluster_says_it_in_one_key_or_the_other() -> None:
    by_image, by_step = (
        of_cluster(config_map(image=IMAGE_TEXT)),
        of_cluster(config_map(customDeploy="method: x")),
    )
    assert by_image.image is not None
    assert by_image.image.url == IMAGE["url"]
    assert by_step.custom_deploy is not None
    assert {by_image.source, by_step.source} == {"cluster"}


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({}, "does not say what to install"),
        ({"image": "{"}, "key image is neither YAML nor JSON"),
        ({"image": "https://images.example/a.qcow2"}, "wrong sort"),
        ({"image": "url: https://images.example/a.qcow2"}, "image.checksum missing"),
        ({"image": IMAGE_TEXT + "format: raw"}, "has the field image.format"),
        ({"Image": IMAGE_TEXT}, "has the field Image"),
        ({"image": IMAGE_TEXT, "note": "ours"}, "has the field note"),
    ],
)
def test_a_config_map_that_cannot_be_used_is_named_and_what_to_do_said(
    data: dict[str, str], sentence: str
) -> None:
    with pytest.raises(BrokenDefault) as caught:
        of_cluster(config_map(**data))
    assert sentence in str(caught.value)
    assert f"ConfigMap default/{NAME}" in str(caught.value)


# The one ConfigMap


class Cluster:
    """An API, and the defaults that follow it."""

    def __init__(self, client: Client, informer: Informer[ConfigMap], defaults: TargetDefaults) -> None:
        self.client, self.informer, self.defaults = client, informer, defaults

    async def says(self, data: dict[str, str], key: Key = HERE) -> None:
        await self.client.create(
            CONFIG_MAPS, {"metadata": {"name": key.name}, "data": data}, namespace=key.namespace
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        heard = asyncio.Event()
        self.informer.subscribe(lambda _: heard.set())
        async with asyncio.timeout(PATIENCE):
            while not condition():
                heard.clear()
                await heard.wait()

    def source(self) -> str:
        try:
            return self.defaults.resolve(spec()).source
        except BrokenDefault as broken:
            return f"broken: {broken}"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with serve(tmp_path / "state") as api, Client.from_kubeconfig(api.kubeconfig) as client:
        informer = defaults_informer(client, "default")
        defaults = TargetDefaults(informer, release=COREOS)
        following = asyncio.create_task(informer.run())
        await informer.synced()
        yield Cluster(client, informer, defaults)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_a_default_of_the_cluster_is_seen_when_it_comes_changes_and_goes(cluster: Cluster) -> None:
    changes: list[str] = []
    cluster.defaults.when_changed(lambda: changes.append(cluster.source()))
    assert cluster.source() == "release"
    await cluster.says({"image": IMAGE_TEXT})
    await cluster.until(lambda: cluster.source() == "cluster")
    await cluster.client.patch(CONFIG_MAPS, HERE, {"data": {"image": "url: ["}})
    await cluster.until(lambda: cluster.source().startswith("broken"))
    await cluster.client.delete(CONFIG_MAPS, HERE)
    await cluster.until(lambda: cluster.source() == "release")
    assert [one.partition(":")[0] for one in changes] == ["cluster", "broken", "release"]


async def test_a_broken_default_is_not_guessed_around(cluster: Cluster) -> None:
    await cluster.says({"imgae": IMAGE_TEXT})
    await cluster.until(lambda: cluster.source() != "release")
    with pytest.raises(NoTarget, match="imgae"):
        cluster.defaults.resolve(spec())
    assert cluster.defaults.resolve(spec(image=IMAGE)).source == "provider spec"


async def test_a_broken_default_is_told_once_for_each_thing_it_says(cluster: Cluster) -> None:
    async with EventRecorder(cluster.client) as recorder:
        cluster.defaults.tell(recorder)
        await cluster.says({"image": "url: ["})
        await cluster.until(lambda: cluster.source().startswith("broken"))
        await cluster.client.patch(CONFIG_MAPS, HERE, {"metadata": {"labels": {"a": "b"}}})
        await cluster.client.patch(CONFIG_MAPS, HERE, {"data": {"image": IMAGE_TEXT}})
        await cluster.until(lambda: cluster.source() == "cluster")
    told = (await cluster.client.list(EVENTS, namespace="default")).items
    assert [(event.type, event.reason, event.count) for event in told] == [("Warning", BROKEN, 1)]
    assert "neither YAML nor JSON" in told[0].message
    assert told[0].involved_object.name == NAME


async def test_no_other_config_map_is_held(cluster: Cluster) -> None:
    await cluster.says({"image": "theirs"}, Key("default", "somebody-elses"))
    await cluster.says({"image": IMAGE_TEXT})
    await cluster.until(lambda: cluster.source() == "cluster")
    assert [found.metadata.name for found in cluster.informer.items()] == [NAME]
