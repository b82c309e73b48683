"""The scale subresource: of kinds that clients define, and through kubectl."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from defined_kinds import Group, a_group, a_version
from kubernetes_api import JSON_PATCH, Api, Kubectl

WHOLE = {"type": "integer"}


@pytest.fixture
async def group(api: Api) -> AsyncIterator[Group]:
    paths = {
        "specReplicasPath": ".spec.count",
        "statusReplicasPath": ".status.count",
        "labelSelectorPath": ".status.selector",
    }
    async with a_group(api) as group:
        await group.define(
            a_version(
                subresources={"status": {}, "scale": paths},
                spec={"count": {**WHOLE, "maximum": 10}, "color": {"type": "string"}},
                status={"count": WHOLE, "selector": {"type": "string"}},
            )
        )
        made = await api.post(group.place(), group.a_widget("w", spec={"count": 3, "color": "red"}))
        assert made.code == 201, made.body
        yield group


async def test_an_object_is_seen_as_a_scale(api: Api, group: Group) -> None:
    status = {"status": {"count": 2, "selector": "app=w"}}
    assert (await api.patch(f"{group.place()}/w/status", status)).code == 200
    whole = (await api.get(f"{group.place()}/w")).body
    found = await api.get(f"{group.place()}/w/scale")
    assert found.code == 200
    assert (found.body["apiVersion"], found.body["kind"]) == ("autoscaling/v1", "Scale")
    assert found.body["spec"] == {"replicas": 3}
    assert found.body["status"] == {"replicas": 2, "selector": "app=w"}
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    assert found.body["metadata"] == {name: whole["metadata"][name] for name in kept}


async def test_a_scale_is_patched_and_only_the_number_of_the_object_changes(api: Api, group: Group) -> None:
    path = f"{group.place()}/w"
    before = (await api.get(path)).body
    done = await api.patch(f"{path}/scale", {"spec": {"replicas": 5}})
    assert (done.code, done.body["kind"], done.body["spec"]) == (200, "Scale", {"replicas": 5})
    after = (await api.get(path)).body
    assert after["spec"] == {"count": 5, "color": "red"}
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert after["metadata"]["resourceVersion"] == done.version
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 6}]
    assert (await api.patch(f"{path}/scale", operations, JSON_PATCH)).body["spec"] == {"replicas": 6}


async def test_a_scale_is_replaced_and_no_number_is_nought(api: Api, group: Group) -> None:
    path = f"{group.place()}/w"
    scale = (await api.get(f"{path}/scale")).body
    done = await api.put(f"{path}/scale", {**scale, "spec": {"replicas": 4}})
    assert (done.code, done.body["spec"]) == (200, {"replicas": 4})
    assert (await api.put(f"{path}/scale", {**scale, "spec": {"replicas": 1}})).code == 409
    unconditional = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w"}}
    done = await api.put(f"{path}/scale", unconditional)
    assert (done.code, done.body["spec"], done.body["status"]) == (200, {}, {"replicas": 0})
    assert (await api.get(path)).body["spec"]["count"] == 0


@pytest.mark.parametrize(
    ("wish", "code", "reason", "field"),
    [
        ({"spec": {"replicas": -1}}, 422, "Invalid", ".spec.count"),
        ({"spec": {"replicas": 11}}, 422, "Invalid", "spec.count"),
        ({"spec": {"replicas": "x"}}, 422, "Invalid", "patch"),
        ({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 1}}, 409, "Conflict", ""),
        ({"metadata": {"name": "other"}, "spec": {"replicas": 1}}, 400, "BadRequest", ""),
    ],
    ids=["negative", "what the schema forbids", "no number", "a version of yesterday", "another name"],
)
async def test_a_scale_that_cannot_be_is_refused(
    api: Api, group: Group, wish: object, code: int, reason: str, field: str
) -> None:
    done = await api.patch(f"{group.place()}/w/scale", wish)
    assert (done.code, done.body["reason"]) == (code, reason), done.body
    if field:
        assert [cause["field"] for cause in done.body["details"]["causes"]] == [field]
    assert (await api.get(f"{group.place()}/w")).body["spec"]["count"] == 3


async def test_the_object_itself_cannot_have_a_number_that_is_no_scale(api: Api, group: Group) -> None:
    done = await api.post(group.place(), group.a_widget("x", spec={"count": -1}))
    assert (done.code, done.body["reason"]) == (422, "Invalid")
    assert [cause["field"] for cause in done.body["details"]["causes"]] == [".spec.count"]


async def test_an_object_without_the_number_has_no_scale_until_it_gets_one(api: Api, group: Group) -> None:
    assert (await api.post(group.place(), group.a_widget("x", spec={}))).code == 201
    path = f"{group.place()}/x/scale"
    found = await api.get(path)
    assert (found.code, found.body["reason"]) == (500, "InternalError")
    assert 'the spec replicas field ".spec.count" does not exist' in found.body["message"]
    assert (await api.patch(path, {"spec": {"replicas": 2}})).code == 200
    assert (await api.get(path)).body["spec"] == {"replicas": 2}


async def test_what_is_not_there_has_no_scale(api: Api, group: Group) -> None:
    assert (await api.get(f"{group.place()}/nobody/scale")).code == 404
    assert (await api.patch(f"{group.place()}/nobody/scale", {"spec": {"replicas": 2}})).code == 404
    assert (await api.get(f"{api.secrets}/x/scale")).code == 404


async def test_discovery_names_the_scale(api: Api, group: Group) -> None:
    listed = (await api.get(f"/apis/{group.name}/v1")).body["resources"]
    found = next(resource for resource in listed if resource["name"] == "widgets/scale")
    assert {name: found[name] for name in ("group", "version", "kind")} == {
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
    }
    assert sorted(found["verbs"]) == ["get", "patch", "update"]


async def test_kubectl_scales(api: Api, group: Group, kubectl: Kubectl) -> None:
    resource = f"widgets.{group.name}/w"
    assert "scaled" in kubectl("scale", resource, "--replicas=7")
    assert (await api.get(f"{group.place()}/w")).body["spec"]["count"] == 7
    refused = kubectl.run("scale", resource, "--replicas=8", "--current-replicas=3")
    assert refused.returncode != 0
    assert "Expected replicas to be 3" in refused.stderr
    assert (await api.get(f"{group.place()}/w")).body["spec"]["count"] == 7
    assert "scaled" in kubectl("scale", resource, "--replicas=0", "--current-replicas=7")


async def test_our_machine_sets_and_the_workloads_of_kubernetes_can_be_scaled(
    api: Api, kubectl: Kubectl
) -> None:
    labels = {"app": "w"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    places = {
        "/apis/machine.openshift.io/v1beta1": ("machinesets", "MachineSet", {"selector": {}, "template": {}}),
        "/apis/apps/v1": (
            "deployments",
            "Deployment",
            {"selector": {"matchLabels": labels}, "template": template},
        ),
    }
    for base, (plural, kind, spec) in places.items():
        collection = f"{base}/namespaces/{api.namespace}/{plural}"
        body = {
            "apiVersion": base.removeprefix("/apis/"),
            "kind": kind,
            "metadata": {"name": "w"},
            "spec": {**spec, "replicas": 0},
        }
        made = await api.post(collection, body)
        assert made.code == 201, made.body
        assert "scaled" in kubectl("scale", f"{plural}/w", "--replicas=2", "--current-replicas=0")
        assert (await api.get(f"{collection}/w")).body["spec"]["replicas"] == 2
        assert (await api.get(f"{collection}/w/scale")).body["spec"] == {"replicas": 2}
    scale = (await api.get(f"/apis/apps/v1/namespaces/{api.namespace}/deployments/w/scale")).body
    assert scale["status"]["selector"] == "app=w"
