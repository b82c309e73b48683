"""The runtime on a real kube-apiserver: streamed lists, narrow rights, programs that log in, restarts, restored backups."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import secrets
import shutil
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import EVENTS, NAMESPACES, SECRETS
from ingot.api.meta import Key, Object, PartialObjectMetadata, Resource
from ingot.kube import (
    Backoff,
    Client,
    Conflict,
    Contested,
    EventRecorder,
    Forbidden,
    Gone,
    Informer,
    Invalid,
    config,
    metadata_of,
)
from ingot.kube.watching import Listed, Put

QUICK = Backoff(first=0.05, limit=0.5)
PATIENCE = 90


class Anything(Object):
    """An object of a kind that these tests make and do not read."""


ACCOUNTS = Resource(group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", type=Anything)
_RBAC = {"group": "rbac.authorization.k8s.io", "version": "v1", "type": Anything}
ROLES = Resource(kind="Role", plural="roles", **_RBAC)
BINDINGS = Resource(kind="RoleBinding", plural="rolebindings", **_RBAC)


@pytest.fixture
def kubeconfig() -> Path:
    path = os.environ.get("INGOT_TEST_KUBECONFIG")
    if not path:
        pytest.skip("needs a real cluster: make test-cluster")
    return Path(path)


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(kubeconfig) as made:
        yield made


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    name = f"kube-{secrets.token_hex(4)}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    yield name
    await client.delete(NAMESPACES, Key("", name))


def host(name: str = "h1", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "spec": {"online": True}}


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.02)


@asynccontextmanager
async def following(informer: Informer[Any]) -> AsyncIterator[None]:
    task = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await informer.synced()
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), task.exception()


def names(informer: Informer[Any]) -> set[str]:
    return {item.metadata.name for item in informer.items()}


# Reading and following


async def test_a_watch_tells_first_what_is_there(client: Client, namespace: str):
    for name in ("a", "b"):
        await client.create(BARE_METAL_HOSTS, host(name), namespace=namespace)
    found: list[str] = []
    async with aclosing(
        client.watch(BARE_METAL_HOSTS, resource_version=None, seconds=30, namespace=namespace)
    ) as news:
        async for item in news:
            if isinstance(item, Listed):
                break
            assert isinstance(item, Put)
            found.append(item.object.metadata.name)
    assert sorted(found) == ["a", "b"]
    assert int(item.version) >= 1


@pytest.mark.parametrize("streamed_list", [30.0, 0.0])
async def test_an_informer_follows_creation_change_and_deletion(
    client: Client, namespace: str, streamed_list: float, caplog: pytest.LogCaptureFixture
):
    await client.create(BARE_METAL_HOSTS, host("before"), namespace=namespace)
    informer = Informer(
        client, BARE_METAL_HOSTS, namespace=namespace, backoff=QUICK, streamed_list=streamed_list
    )
    key = Key(namespace, "h1")
    caplog.set_level("INFO")
    async with following(informer):
        assert names(informer) == {"before"}
        await client.create(BARE_METAL_HOSTS, host(), namespace=namespace)
        await eventually(lambda: informer.get(key) is not None)
        written = await client.patch(BARE_METAL_HOSTS, key, {"metadata": {"labels": {"a": "b"}}})
        informer.observe(written)
        await client.delete(BARE_METAL_HOSTS, key, uid=written.metadata.uid)
        await eventually(lambda: names(informer) == {"before"})
    assert "does not stream lists" not in caplog.text


async def test_selectors_choose_what_an_informer_knows(client: Client, namespace: str):
    await client.create(BARE_METAL_HOSTS, host("a", labels={"rack": "1"}), namespace=namespace)
    await client.create(BARE_METAL_HOSTS, host("b", labels={"rack": "2"}), namespace=namespace)
    by_label = Informer(client, BARE_METAL_HOSTS, namespace=namespace, labels="rack=1", backoff=QUICK)
    by_field = Informer(
        client, BARE_METAL_HOSTS, namespace=namespace, fields="metadata.name=b", backoff=QUICK
    )
    async with following(by_label), following(by_field):
        assert (names(by_label), names(by_field)) == ({"a"}, {"b"})
        for name, rack in (("a", "2"), ("b", "1")):
            await client.patch(
                BARE_METAL_HOSTS, Key(namespace, name), {"metadata": {"labels": {"rack": rack}}}
            )
        await eventually(lambda: names(by_label) == {"b"})


async def test_the_values_of_secrets_stay_where_they_are(client: Client, namespace: str):
    informer = Informer(client, metadata_of(SECRETS), namespace=namespace, backoff=QUICK)
    async with following(informer):
        await client.create(
            SECRETS, {"metadata": {"name": "bmc"}, "stringData": {"password": "hush"}}, namespace=namespace
        )
        await eventually(lambda: informer.get(Key(namespace, "bmc")) is not None)
        found = informer.get(Key(namespace, "bmc"))
    assert type(found) is PartialObjectMetadata


async def test_pages_show_every_object_once(client: Client, namespace: str):
    for number in range(7):
        await client.create(BARE_METAL_HOSTS, host(f"h{number}"), namespace=namespace)
    pages = [page async for page in client.pages(BARE_METAL_HOSTS, namespace=namespace, page_size=3)]
    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert len({page.version for page in pages}) == 1
    assert int(await client.latest_version(BARE_METAL_HOSTS)) >= int(pages[0].version)


async def test_history_that_was_forgotten_is_said_to_be(client: Client):
    # Hosts became known when the server was long at work: of version 1 it never knew any. Of namespaces it may.
    with pytest.raises(Gone):
        async for _ in client.watch(BARE_METAL_HOSTS, resource_version="1", seconds=5):
            pass


# Writing


async def test_what_was_decided_on_an_old_version_is_refused(client: Client, namespace: str):
    made = await client.create(BARE_METAL_HOSTS, host(), namespace=namespace)
    old = made.metadata.resource_version
    await client.patch(BARE_METAL_HOSTS, made.key, {"spec": {"online": False}}, resource_version=old)
    with pytest.raises(Conflict):
        await client.patch(
            BARE_METAL_HOSTS,
            made.key,
            {"status": {"errorMessage": "late"}},
            subresource="status",
            resource_version=old,
        )
    with pytest.raises(Conflict):
        await client.delete(BARE_METAL_HOSTS, made.key, uid="another")
    with pytest.raises(Conflict):
        await client.delete(BARE_METAL_HOSTS, made.key, resource_version=old)
    with pytest.raises(Invalid):
        await client.patch(BARE_METAL_HOSTS, made.key, {"spec": {"online": "perhaps"}})


async def test_applied_fields_have_an_owner(client: Client, namespace: str):
    def wanted(description: str) -> dict[str, Any]:
        return {"metadata": {"name": "h1"}, "spec": {"online": True, "description": description}}

    made = await client.apply(BARE_METAL_HOSTS, wanted("ours"), namespace=namespace)
    assert made.metadata.generation == 1
    again = await client.apply(BARE_METAL_HOSTS, wanted("ours"), namespace=namespace)
    assert again.metadata.resource_version == made.metadata.resource_version
    with pytest.raises(Contested, match=r"\.spec\.description"):
        await client.apply(BARE_METAL_HOSTS, wanted("theirs"), namespace=namespace, field_manager="other")
    taken = await client.apply(
        BARE_METAL_HOSTS, wanted("theirs"), namespace=namespace, field_manager="other", force=True
    )
    assert taken.spec.description == "theirs"


async def test_events_are_counted_and_combined(client: Client, namespace: str):
    made = await client.create(BARE_METAL_HOSTS, host(), namespace=namespace)
    space = await client.get(NAMESPACES, Key("", namespace))
    async with EventRecorder(client, drain=60) as recorder:
        for attempt in range(13):
            recorder.record(made, type="Warning", reason="Failed", message=f"attempt {attempt}")
        recorder.record(made, type="Normal", reason="Registered", message="known")
        recorder.record(made, type="Normal", reason="Registered", message="known")
        # A kind without namespace: its Events live in the namespace default.
        recorder.record(space, type="Normal", reason="Seen", message="by a test")
    events = (await client.list(EVENTS, fields=f"involvedObject.uid={made.metadata.uid}")).items
    counts = {event.message: event.count for event in events}
    assert counts["known"] == 2
    assert counts["(combined from similar events): attempt 12"] == 3
    assert len(events) == 12
    (other,) = (await client.list(EVENTS, fields=f"involvedObject.uid={space.metadata.uid}")).items
    assert other.metadata.namespace == "default"
    await client.delete(EVENTS, other.key)


# Being somebody


async def service_account(client: Client, namespace: str, name: str = "operator") -> None:
    """An account that may see the hosts of its namespace, and nothing else."""
    await client.create(ACCOUNTS, {"metadata": {"name": name}}, namespace=namespace)
    rules = [{"apiGroups": ["metal3.io"], "resources": ["baremetalhosts"], "verbs": ["get", "list", "watch"]}]
    await client.create(ROLES, {"metadata": {"name": name}, "rules": rules}, namespace=namespace)
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    await client.create(BINDINGS, binding, namespace=namespace)


async def token_of(kubeconfig: Path, namespace: str, name: str = "operator") -> str:
    """A token of the account, made by kubectl: it is a subresource of its own kind."""
    process = await asyncio.create_subprocess_exec(
        "kubectl", "--kubeconfig", kubeconfig, "create", "token", name, "-n", namespace, stdout=-1
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode().strip()


def cluster_of(kubeconfig: Path) -> dict[str, Any]:
    cluster: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    return cluster


def authority_of(kubeconfig: Path) -> bytes:
    cluster = cluster_of(kubeconfig)
    data = cluster.get("certificate-authority-data")
    return base64.b64decode(data) if data else Path(cluster["certificate-authority"]).read_bytes()


async def until_let_in(client: Client, namespace: str) -> None:
    """Authorization learns of a new binding by a watch of its own."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.list(BARE_METAL_HOSTS, namespace=namespace)
                return
            except Forbidden:
                await asyncio.sleep(0.05)


async def test_a_pod_with_narrow_rights_sees_its_namespace_and_no_more(
    client: Client, kubeconfig: Path, namespace: str, tmp_path: Path
):
    await service_account(client, namespace)
    await client.create(BARE_METAL_HOSTS, host(), namespace=namespace)
    (tmp_path / "token").write_text(await token_of(kubeconfig, namespace))
    (tmp_path / "ca.crt").write_bytes(authority_of(kubeconfig))
    server = cluster_of(kubeconfig)["server"].removeprefix("https://")
    pod = {
        "KUBERNETES_SERVICE_HOST": server.rpartition(":")[0],
        "KUBERNETES_SERVICE_PORT": server.rpartition(":")[2],
    }
    async with Client(config.load(environment=pod, service_account=tmp_path)) as narrow:
        await until_let_in(narrow, namespace)
        with pytest.raises(Forbidden, match="cannot list resource"):
            await narrow.list(BARE_METAL_HOSTS)
        with pytest.raises(Forbidden):
            await narrow.list(SECRETS, namespace=namespace)
        with pytest.raises(Forbidden):
            await narrow.patch(BARE_METAL_HOSTS, Key(namespace, "h1"), {"spec": {"online": False}})
        everywhere = Informer(narrow, BARE_METAL_HOSTS, backoff=QUICK)
        lost = asyncio.create_task(everywhere.run())
        async with following(Informer(narrow, BARE_METAL_HOSTS, namespace=namespace, backoff=QUICK)):
            await eventually(lambda: "cannot list resource" in everywhere.trouble)
        lost.cancel()
        await asyncio.wait([lost])
        # A new token in the file is taken without being told.
        (tmp_path / "token").write_text(await token_of(kubeconfig, namespace))
        await narrow.list(BARE_METAL_HOSTS, namespace=namespace)


async def test_a_program_logs_us_in(client: Client, kubeconfig: Path, namespace: str, tmp_path: Path):
    await service_account(client, namespace)
    plugin = tmp_path / "login"
    plugin.write_text(
        "#!/bin/sh\n"
        'version=$(echo "$KUBERNETES_EXEC_INFO" | sed \'s/.*"apiVersion":"\\([^"]*\\)".*/\\1/\')\n'
        f"token=$(kubectl --kubeconfig {kubeconfig} create token operator -n {namespace}) || exit 1\n"
        'echo "{\\"apiVersion\\":\\"$version\\",\\"kind\\":\\"ExecCredential\\",\\"status\\":{\\"token\\":\\"$token\\"}}"\n'
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./login",
            "interactiveMode": "Never",
        }
    }
    path = tmp_path / "config"
    path.write_text(
        json.dumps(
            {
                "current-context": "it",
                "clusters": [{"name": "it", "cluster": cluster_of(kubeconfig)}],
                "users": [{"name": "it", "user": user}],
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            }
        )
    )
    async with Client.from_kubeconfig(path) as narrow:
        await until_let_in(narrow, namespace)
        with pytest.raises(Forbidden, match=f"system:serviceaccount:{namespace}:operator"):
            await narrow.list(BARE_METAL_HOSTS)


# A control plane of our own, to be treated badly


@pytest.fixture
def plane(kubeconfig: Path, tmp_path: Path):
    sys.path.insert(0, str(Path(__file__).parent))
    from control_plane import ControlPlane

    from ingot.api.crd import all_crds

    made = ControlPlane.start(tmp_path, controllers=False, crds=all_crds())
    yield made
    made.stop()


async def settled(informer: Informer[BareMetalHost], client: Client) -> None:
    """Cache and API say the same."""
    async with asyncio.timeout(PATIENCE):
        while True:
            listed = {item.key: item for item in (await client.list(BARE_METAL_HOSTS)).items}
            if {item.key: item for item in informer.items()} == listed:
                return
            await asyncio.sleep(0.1)


async def test_an_informer_survives_a_killed_api_server_and_a_restored_backup(plane: Any, tmp_path: Path):
    async with Client.from_kubeconfig(plane.kubeconfig) as client:
        for number in range(3):
            await client.create(BARE_METAL_HOSTS, host(f"h{number}"), namespace="default")
        informer = Informer(client, BARE_METAL_HOSTS, backoff=QUICK)
        async with following(informer):
            await asyncio.to_thread(plane.restart_api_server)
            await client.create(BARE_METAL_HOSTS, host("after"), namespace="default")
            await client.delete(BARE_METAL_HOSTS, Key("default", "h0"))
            await settled(informer, client)
            # A backup, more writes than the restored history will soon have again, and the way back.
            plane.kill("kube-apiserver")
            plane.kill("etcd")
            shutil.copytree(plane.folder / "etcd", tmp_path / "backup")
            await asyncio.to_thread(plane.start_again)
            for number in range(60):
                await client.patch(
                    BARE_METAL_HOSTS, Key("default", "h1"), {"metadata": {"labels": {"n": str(number)}}}
                )
            await client.create(BARE_METAL_HOSTS, host("ghost"), namespace="default")
            await settled(informer, client)
            plane.kill("kube-apiserver")
            plane.kill("etcd")
            shutil.rmtree(plane.folder / "etcd")
            shutil.copytree(tmp_path / "backup", plane.folder / "etcd")
            await asyncio.to_thread(plane.start_again)
            await settled(informer, client)
            assert names(informer) == {"h1", "h2", "after"}
            await client.patch(BARE_METAL_HOSTS, Key("default", "h1"), {"metadata": {"labels": {"n": "new"}}})
            await settled(informer, client)
