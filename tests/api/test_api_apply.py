"""Server-side apply and managedFields: who owns which field, what a conflict is, what goes when nobody wants it any more."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from defined_kinds import a_group, a_version
from kubernetes_api import MERGE, STRATEGIC, Answer, Api, Kubectl, a_host, a_status, eventually

APPLY = "application/apply-patch+yaml"


def a_config_map(name: str = "c", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def config_map(api: Api, name: str = "c") -> str:
    return f"/api/v1/namespaces/{api.namespace}/configmaps/{name}"


async def apply(api: Api, path: str, config: Any, manager: str = "one", **kw: Any) -> Answer:
    return await api.patch(path, config, APPLY, fieldManager=manager, **kw)


async def applied(api: Api, path: str, config: Any, manager: str = "one", **kw: Any) -> Answer:
    answer = await apply(api, path, config, manager, **kw)
    assert answer.code in (200, 201), answer.body
    return answer


def owners(answer: Answer) -> dict[tuple[str, str, str], Any]:
    """Who owns what: manager, operation and subresource → fields."""
    return {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"]
        for entry in answer.body["metadata"].get("managedFields", [])
    }


# Applying


async def test_applying_creates_what_is_not_there_and_owns_what_it_says(api: Api) -> None:
    made = await apply(api, config_map(api), a_config_map(a="1"))
    assert made.code == 201
    (entry,) = made.body["metadata"]["managedFields"]
    assert entry.pop("time").endswith("Z")
    assert entry == {
        "manager": "one",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
    }


async def test_applying_the_same_again_changes_nothing(api: Api) -> None:
    made = await applied(api, config_map(api), a_config_map(a="1"))
    again = await applied(api, config_map(api), a_config_map(a="1"))
    assert (again.code, again.version) == (200, made.version)
    assert again.body == made.body


async def test_what_a_manager_no_longer_applies_goes_unless_somebody_else_owns_it(api: Api) -> None:
    await applied(api, config_map(api), a_config_map(a="1", b="1", c="1"))
    await applied(api, config_map(api), a_config_map(b="1"), "two")
    now = await applied(api, config_map(api), a_config_map(a="1"))
    assert now.body["data"] == {"a": "1", "b": "1"}
    assert owners(now) == {
        ("one", "Apply", ""): {"f:data": {"f:a": {}}},
        ("two", "Apply", ""): {"f:data": {"f:b": {}}},
    }


async def test_what_nobody_applied_stays(api: Api) -> None:
    await api.post(config_map(api).rpartition("/")[0], a_config_map(a="1"))
    await applied(api, config_map(api), a_config_map(b="1"))
    now = await applied(api, config_map(api), {**a_config_map(), "data": None})
    assert now.body["data"] == {"a": "1"}


async def test_a_conflict_names_manager_and_field_and_changes_nothing(api: Api) -> None:
    await applied(api, config_map(api), a_config_map(a="1"))
    await api.patch(config_map(api), {"data": {"b": "1"}}, fieldManager="editor")
    before = await api.get(config_map(api))
    one = await apply(api, config_map(api), a_config_map(b="2"), "two")
    assert (one.code, one.body["reason"]) == (409, "Conflict")
    assert one.body["message"] == 'Apply failed with 1 conflict: conflict with "editor" using v1: .data.b'
    assert one.body["details"]["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "editor" using v1',
            "field": ".data.b",
        }
    ]
    two = await apply(api, config_map(api), a_config_map(a="2", b="2"), "two")
    assert two.body["message"] == (
        'Apply failed with 2 conflicts: conflicts with "editor" using v1:\n- .data.b\nconflicts with "one":\n- .data.a'
    )
    assert (await api.get(config_map(api))).body == before.body


async def test_who_insists_takes_the_field_over(api: Api) -> None:
    await applied(api, config_map(api), a_config_map(a="1", b="1"))
    now = await applied(api, config_map(api), a_config_map(a="2"), "two", force="true")
    assert now.body["data"] == {"a": "2", "b": "1"}
    assert owners(now) == {
        ("one", "Apply", ""): {"f:data": {"f:b": {}}},
        ("two", "Apply", ""): {"f:data": {"f:a": {}}},
    }


async def test_the_same_value_is_no_conflict_but_shared(api: Api) -> None:
    await applied(api, config_map(api), a_config_map(a="1"))
    now = await applied(api, config_map(api), a_config_map(a="1"), "two")
    assert set(owners(now)) == {("one", "Apply", ""), ("two", "Apply", "")}
    left = await applied(api, config_map(api), {**a_config_map(), "data": {}}, "two")
    assert left.body["data"] == {"a": "1"}


async def test_a_dry_run_tells_what_would_be(api: Api) -> None:
    would = await apply(api, config_map(api), a_config_map(a="1"), dryRun="All")
    assert (would.code, would.body["data"]) == (201, {"a": "1"})
    assert (await api.get(config_map(api))).code == 404


async def test_a_version_in_the_configuration_is_a_precondition(api: Api) -> None:
    made = await applied(api, config_map(api), a_config_map(a="1"))
    config = a_config_map(a="2")
    config["metadata"]["resourceVersion"] = made.version
    await applied(api, config_map(api), config)
    config["data"]["a"] = "3"
    late = await apply(api, config_map(api), config)
    assert (late.code, late.body["reason"]) == (409, "Conflict")


async def test_defaults_and_what_the_server_says_belong_to_nobody(api: Api) -> None:
    made = await applied(api, api.host("h1"), a_host("h1", spec={"online": True}))
    assert made.body["spec"]["automatedCleaningMode"] == "metadata"
    assert owners(made) == {("one", "Apply", ""): {"f:spec": {"f:online": {}}}}


async def test_the_status_is_applied_at_its_own_place_and_owned_apart(api: Api) -> None:
    await applied(api, api.host("h1"), a_host("h1", spec={"online": True}))
    config = {"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": {"name": "h1"}}
    now = await applied(
        api,
        f"{api.host('h1')}/status",
        {**config, "spec": {"online": False}, "status": a_status("available")},
    )
    assert now.body["spec"]["online"] is True
    assert now.body["status"]["provisioning"]["state"] == "available"
    assert owners(now)[("one", "Apply", "")] == {"f:spec": {"f:online": {}}}
    assert owners(now)[("one", "Apply", "status")]["f:status"]["f:poweredOn"] == {}
    ignored = await applied(
        api, api.host("h1"), {**a_host("h1", spec={"online": True}), "status": {"errorCount": 7}}
    )
    assert ignored.body["status"]["errorCount"] == 0
    assert (await apply(api, f"{api.host('h2')}/status", {**a_host("h2"), "status": {}})).code == 404


# Lists and maps


async def test_lists_are_merged_as_their_schema_says(api: Api) -> None:
    text = {"type": "string"}
    spec: dict[str, Any] = {
        "whole": {"type": "array", "items": text},
        "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {
                "type": "object",
                "required": ["port"],
                "properties": {
                    "port": {"type": "integer"},
                    "protocol": {"type": "string", "default": "TCP"},
                    "name": text,
                },
            },
        },
        "one": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    async with a_group(api) as group:
        await group.define(a_version(spec=spec))
        path = f"{group.place()}/w"

        async def says(manager: str, **parts: Any) -> Answer:
            return await apply(api, path, group.a_widget("w", spec=parts), manager)

        await says("one", set=["a", "b"], ports=[{"port": 80, "name": "web"}], free={"x": {"y": [1]}})
        now = await says("two", set=["c", "b"], ports=[{"port": 80, "protocol": "UDP"}], free={"x": {"z": 1}})
        assert now.body["spec"]["set"] == ["a", "c", "b"]
        assert now.body["spec"]["ports"] == [
            {"port": 80, "protocol": "TCP", "name": "web"},
            {"port": 80, "protocol": "UDP"},
        ]
        assert now.body["spec"]["free"] == {"x": {"y": [1], "z": 1}}
        assert owners(now)[("two", "Apply", "")]["f:spec"] == {
            "f:free": {"f:x": {".": {}, "f:z": {}}},
            "f:ports": {'k:{"port":80,"protocol":"UDP"}': {".": {}, "f:port": {}, "f:protocol": {}}},
            "f:set": {'v:"b"': {}, 'v:"c"': {}},
        }
        now = await says("two", set=["b"])
        assert now.body["spec"]["set"] == ["a", "b"]
        assert [port["protocol"] for port in now.body["spec"]["ports"]] == ["TCP"]
        await says("one", set=["a", "b"], whole=["1", "2"], one={"x": "1"})
        for conflict, field in (
            (await says("two", whole=["1"]), ".spec.whole"),
            (await says("two", one={}), ".spec.one"),
        ):
            assert [cause["field"] for cause in conflict.body["details"]["causes"]] == [field]
        twice = await says("two", set=["x", "x"])
        assert twice.code == 500
        assert "duplicate entries for key" in twice.body["message"]


async def test_what_becomes_one_value_has_one_owner(api: Api) -> None:
    parts: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
    async with a_group(api) as group:
        await group.define(a_version(spec={"m": parts}))
        path = f"{group.place()}/w"
        await applied(api, path, group.a_widget("w", spec={"m": {"a": "1"}}))
        changed = (await api.get(group.definition())).body["spec"]
        schema = changed["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"]["properties"]["m"]["x-kubernetes-map-type"] = "atomic"
        patch = {"spec": {"versions": changed["versions"]}}
        assert (await api.patch(group.definition(), patch)).code == 200

        async def is_one() -> bool:
            config = group.a_widget("w", spec={"m": {"b": "1"}})
            answer = await apply(api, path, config, "two", dryRun="All")
            causes = answer.body.get("details", {}).get("causes", [])
            return [(cause["field"], cause["message"]) for cause in causes] == [
                (".spec.m", 'conflict with "one"')
            ]

        await eventually(is_one)


async def test_containers_of_a_deployment_are_known_by_name(api: Api) -> None:
    path = f"/apis/apps/v1/namespaces/{api.namespace}/deployments/d"

    def a_deployment(*containers: dict[str, Any]) -> dict[str, Any]:
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": list(containers)}},
            },
        }

    await applied(api, path, a_deployment({"name": "main", "image": "i:1"}))
    await applied(api, path, a_deployment({"name": "side", "image": "s:1"}), "two")
    now = await applied(api, path, a_deployment({"name": "main", "image": "i:2"}))
    images = {found["name"]: found["image"] for found in now.body["spec"]["template"]["spec"]["containers"]}
    assert images == {"main": "i:2", "side": "s:1"}
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s:2"}]}}}}
    patched = await api.patch(path, patch, STRATEGIC, fieldManager="patcher")
    fields = owners(patched)[("patcher", "Update", "")]
    assert fields == {
        "f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"side"}': {"f:image": {}}}}}}
    }


# Every other write


async def test_a_creator_owns_what_it_wrote_and_the_defaults_too(api: Api) -> None:
    made = await api.post(
        api.hosts, a_host("h1", spec={"online": True}, labels={"a": "b"}), fieldManager="maker"
    )
    assert owners(made) == {
        ("maker", "Update", ""): {
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {".": {}, "f:automatedCleaningMode": {}, "f:online": {}},
        }
    }


async def test_without_a_name_the_user_agent_is_the_manager(api: Api) -> None:
    made = await api.post(api.hosts, a_host("h1"), headers={"User-Agent": "robot/1.2 (linux)"})
    assert [manager for manager, _, _ in owners(made)] == ["robot"]


async def test_who_changes_a_field_owns_it_alone_and_who_removes_it_owns_nothing(api: Api) -> None:
    await applied(api, api.host("h1"), a_host("h1", spec={"online": True, "description": "x"}))
    now = await api.patch(
        api.host("h1"), {"spec": {"online": False, "description": None}}, fieldManager="editor"
    )
    assert owners(now) == {("editor", "Update", ""): {"f:spec": {"f:online": {}}}}


async def test_a_write_that_changes_nothing_leaves_no_trace(api: Api) -> None:
    made = await api.post(api.hosts, a_host("h1", spec={"online": True}), fieldManager="maker")
    same = await api.patch(api.host("h1"), {"spec": {"online": True}}, fieldManager="other")
    assert same.body == made.body
    put = await api.put(api.host("h1"), made.body, fieldManager="other")
    assert put.body == made.body


async def test_a_status_write_is_recorded_apart(api: Api) -> None:
    await api.post(api.hosts, a_host("h1"), fieldManager="maker")
    status = f"{api.host('h1')}/status"
    await api.patch(status, {"status": a_status("inspecting")}, fieldManager="operator")
    now = await api.patch(status, {"status": {"errorCount": 3}}, fieldManager="other")
    found = owners(now)
    assert found[("other", "Update", "status")] == {"f:status": {"f:errorCount": {}}}
    assert "f:errorCount" not in found[("operator", "Update", "status")]["f:status"]
    assert "f:status" not in found[("maker", "Update", "")]


async def test_one_empty_entry_clears_the_record_and_the_next_apply_starts_it_anew(api: Api) -> None:
    await api.post(api.hosts, a_host("h1", spec={"online": True}), fieldManager="maker")
    cleared = await api.patch(api.host("h1"), {"metadata": {"managedFields": [{}]}})
    assert owners(cleared) == {}
    silent = await api.patch(api.host("h1"), {"spec": {"online": False}}, fieldManager="other")
    assert owners(silent) == {}
    now = await applied(api, api.host("h1"), a_host("h1", spec={"online": False}))
    assert set(owners(now)) == {("one", "Apply", ""), ("before-first-apply", "Update", "")}


async def test_who_does_not_send_the_record_or_sends_nonsense_does_not_change_it(api: Api) -> None:
    made = await api.post(api.hosts, a_host("h1", spec={"online": True}), fieldManager="maker")
    for sent in (None, [{"manager": "x", "operation": "Zap"}]):
        body = json.loads(json.dumps(made.body))
        body["metadata"].pop("managedFields")
        body["metadata"].pop("resourceVersion")
        if sent is not None:
            body["metadata"]["managedFields"] = sent
        body["metadata"]["resourceVersion"] = (await api.get(api.host("h1"))).version
        now = await api.put(api.host("h1"), body, fieldManager="other")
        assert owners(now) == owners(made)


async def test_many_updaters_become_one_after_ten(api: Api) -> None:
    await api.post(config_map(api).rpartition("/")[0], a_config_map(a="1"), fieldManager="maker")
    for number in range(12):
        now = await api.patch(config_map(api), {"data": {f"k{number:02}": "1"}}, fieldManager=f"m{number:02}")
    found = owners(now)
    assert len(found) == 10
    assert ("ancient-changes", "Update", "") in found


# What is refused


@pytest.mark.parametrize(
    ("config", "code", "words"),
    [
        ({"kind": "ConfigMap", "metadata": {"name": "c"}}, 400, "invalid object type: /, Kind=ConfigMap"),
        ({**a_config_map(), "apiVersion": "v2"}, 400, "invalid object type: /v2, Kind=ConfigMap"),
        ({**a_config_map(), "metadata": {"name": "c", "managedFields": []}}, 400, "must be nil"),
        ({**a_config_map(), "metadata": {"name": "x"}}, 400, "does not match the name on the URL"),
        ({**a_config_map(), "dat": {}}, 500, ".dat: field not declared in schema"),
        ({**a_config_map(), "data": {"a": 1}}, 500, ".data.a: expected string"),
        ([1], 400, "error decoding YAML"),
    ],
)
async def test_a_configuration_that_is_none_is_refused(api: Api, config: Any, code: int, words: str) -> None:
    answer = await apply(api, config_map(api), config)
    assert (answer.code, answer.body["code"]) == (code, code)
    assert words in answer.body["message"]
    assert (await api.get(config_map(api))).code == 404


async def test_apply_needs_a_manager_and_only_apply_can_insist(api: Api) -> None:
    nameless = await api.patch(config_map(api), a_config_map(a="1"), APPLY)
    assert (nameless.code, nameless.body["reason"]) == (422, "Invalid")
    assert nameless.body["details"]["causes"][0]["field"] == "fieldManager"
    forced = await api.patch(config_map(api), {}, MERGE, force="true")
    assert [cause["field"] for cause in forced.body["details"]["causes"]] == ["force"]
    long = await apply(api, config_map(api), a_config_map(a="1"), "m" * 129)
    assert (long.code, long.body["reason"]) == (422, "Invalid")


# kubectl


def test_kubectl_applies_on_the_server_and_tells_conflicts(api: Api, kubectl: Kubectl) -> None:
    manifest = yaml.safe_dump(a_host("h1", spec={"online": True, "description": "first"}))
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", "-", stdin=manifest)
    kubectl("patch", "bmh", "h1", "--type=merge", "-p", '{"spec":{"description":"other"}}')
    done = kubectl.run("apply", "--server-side", "-f", "-", stdin=manifest)
    assert done.returncode == 1
    assert 'conflict with "kubectl-patch" using metal3.io/v1alpha1: .spec.description' in done.stderr
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest)
    shown = kubectl("get", "bmh", "h1", "-o", "yaml", "--show-managed-fields")
    assert "f:description" in shown
    assert "managedFields" not in kubectl("get", "bmh", "h1", "-o", "yaml")


def test_kubectl_goes_from_client_side_to_server_side_apply_without_a_conflict(
    api: Api, kubectl: Kubectl
) -> None:
    kubectl(
        "apply", "-f", "-", stdin=yaml.safe_dump(a_host("h1", spec={"online": True, "description": "first"}))
    )
    kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump(a_host("h1", spec={"online": False})))
    found = json.loads(kubectl("get", "bmh", "h1", "-o", "json", "--show-managed-fields"))
    assert found["spec"]["online"] is False
    assert "description" not in found["spec"]
    managers = {(entry["manager"], entry["operation"]) for entry in found["metadata"]["managedFields"]}
    assert ("kubectl", "Apply") in managers
    assert ("kubectl-client-side-apply", "Update") not in managers
    annotation = found["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert json.loads(annotation)["spec"] == {"online": False}


def test_kubectl_shows_what_an_apply_would_change(api: Api, kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump(a_host("h1", spec={"online": True})))
    changed = yaml.safe_dump(a_host("h1", spec={"online": False}))
    done = kubectl.run("diff", "--server-side", "-f", "-", stdin=changed)
    assert done.returncode == 1, done.stderr
    assert "-  online: true" in done.stdout
    assert "+  online: false" in done.stdout
    same = kubectl.run(
        "diff", "--server-side", "-f", "-", stdin=yaml.safe_dump(a_host("h1", spec={"online": True}))
    )
    assert (same.returncode, same.stdout) == (0, "")
