"""Built-in kinds: what is filled in, what is refused, what cannot be changed, what is shown."""

from __future__ import annotations

from typing import Any

import pytest
from built_in_kinds import a_service, core, fields_of, of_group
from kubernetes_api import MERGE, STRATEGIC, Api, Kubectl

RBAC = "rbac.authorization.k8s.io"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def rbac(plural: str) -> str:
    return f"/apis/{RBAC}/v1/{plural}"


# Services


async def test_a_service_says_how_it_is_reached_even_if_its_creator_did_not(api: Api) -> None:
    made = await api.post(core(api, "services"), a_service(selector={"app": "web"}))
    assert made.code == 201, made.body
    spec = made.body["spec"]
    assert spec["type"] == "ClusterIP"
    assert spec["sessionAffinity"] == "None"
    assert spec["internalTrafficPolicy"] == "Cluster"
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert len(spec["clusterIPs"]) == 1
    assert spec["clusterIP"] == spec["clusterIPs"][0]


async def test_who_changes_a_service_need_not_repeat_its_address(api: Api) -> None:
    made = await api.post(core(api, "services"), a_service())
    changed = await api.put(f"{core(api, 'services')}/s", a_service(ports=[{"port": 81}]))
    assert changed.code == 200, changed.body
    assert changed.body["spec"]["clusterIP"] == made.body["spec"]["clusterIP"]
    assert changed.body["spec"]["ports"][0]["targetPort"] == 81


REFUSED_SERVICES = [
    ({"ports": []}, "spec.ports"),
    ({"ports": [{"port": 0}]}, "spec.ports[0].port"),
    ({"ports": [{"port": 70000}]}, "spec.ports[0].port"),
    ({"ports": [{"port": 80, "targetPort": "No_Name"}]}, "spec.ports[0].targetPort"),
    ({"ports": [{"port": 80, "protocol": "X"}]}, "spec.ports[0].protocol"),
    ({"type": "Elsewhere"}, "spec.type"),
    ({"type": "ExternalName"}, "spec.externalName"),
    ({"externalTrafficPolicy": "Local"}, "spec.externalTrafficPolicy"),
]


async def test_a_service_that_nobody_could_use_is_refused(api: Api) -> None:
    for spec, field in REFUSED_SERVICES:
        answer = await api.post(core(api, "services"), a_service(**spec))
        assert (answer.code, answer.body["reason"]) == (422, "Invalid"), answer.body
        assert field in fields_of(answer), answer.body


async def test_ports_of_one_service_are_told_apart_by_name(api: Api) -> None:
    answer = await api.post(core(api, "services"), a_service(ports=[{"port": 80}, {"port": 81}]))
    assert fields_of(answer) == {"spec.ports[0].name", "spec.ports[1].name"}


async def test_the_name_of_a_service_begins_with_a_letter(api: Api) -> None:
    answer = await api.post(core(api, "services"), a_service("1st"))
    assert (answer.code, fields_of(answer)) == (422, {"metadata.name"})


# ConfigMaps and Secrets


@pytest.mark.parametrize("plural", ["configmaps", "secrets"])
async def test_what_is_immutable_stays_as_it_is(api: Api, plural: str) -> None:
    place = f"{core(api, plural)}/c"
    await api.post(core(api, plural), {"metadata": {"name": "c"}, "data": {"a": "Yg=="}, "immutable": True})
    for patch in (
        {"data": {"a": "Yw=="}},
        {"immutable": False},
        {"immutable": None},
        {"data": {"b": "Yw=="}},
    ):
        answer = await api.patch(place, patch)
        assert (answer.code, answer.body["reason"]) == (422, "Invalid"), patch
    assert (await api.patch(place, {"metadata": {"labels": {"a": "b"}}})).code == 200


REFUSED_CONFIG_MAPS = [
    ({"data": {"no spaces": "x"}}, 422, "data[no spaces]"),
    ({"data": {"..": "x"}}, 422, "data[..]"),
    ({"data": {"a": "x"}, "binaryData": {"a": "eA=="}}, 422, "data[a]"),
    ({"data": {"a": 1}}, 400, ""),
    ({"data": ["a"]}, 400, ""),
    ({"binaryData": {"a": "no base64!"}}, 400, ""),
    ({"data": {"a": "x" * 1_100_000}}, 422, "[]"),
]


async def test_a_config_map_that_makes_no_sense_is_refused(api: Api) -> None:
    for body, code, field in REFUSED_CONFIG_MAPS:
        answer = await api.post(core(api, "configmaps"), {"metadata": {"name": "c"}, **body})
        assert answer.code == code, answer.body
        if field:
            assert field in fields_of(answer), answer.body


@pytest.mark.parametrize(
    ("type_", "needed"),
    [
        ("kubernetes.io/tls", {"data[tls.crt]", "data[tls.key]"}),
        ("kubernetes.io/basic-auth", {"data[username]", "data[password]"}),
        ("kubernetes.io/ssh-auth", {"data[ssh-privatekey]"}),
        ("kubernetes.io/dockerconfigjson", {"data[.dockerconfigjson]"}),
    ],
)
async def test_a_secret_holds_what_its_type_promises(api: Api, type_: str, needed: set[str]) -> None:
    answer = await api.post(core(api, "secrets"), {"metadata": {"name": "s"}, "type": type_})
    assert (answer.code, fields_of(answer)) == (422, needed)


async def test_a_refused_secret_is_not_quoted(api: Api) -> None:
    secret = {
        "metadata": {"name": "s"},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": "hunter2"},
    }
    answer = await api.post(core(api, "secrets"), secret)
    assert answer.code == 422
    assert "hunter2" not in str(answer.body)
    assert "aHVudGVyMg" not in str(answer.body)


async def test_secrets_can_be_selected_by_type(api: Api) -> None:
    await api.post(core(api, "secrets"), {"metadata": {"name": "a"}, "type": "example.org/mine"})
    await api.post(core(api, "secrets"), {"metadata": {"name": "b"}})
    found = await api.get(core(api, "secrets"), fieldSelector="type=example.org/mine")
    assert [item["metadata"]["name"] for item in found.body["items"]] == ["a"]


# Events


async def test_an_event_of_an_old_recorder_is_seen_by_new_readers(api: Api) -> None:
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": api.namespace},
        "reason": "Why",
        "message": "what happened",
        "type": "Normal",
        "count": 2,
        "source": {"component": "somebody"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
    }
    assert (await api.post(core(api, "events"), event)).code == 201
    seen = (await api.get(f"{of_group(api, 'events.k8s.io', 'events')}/e")).body
    assert (seen["apiVersion"], seen["note"], seen["regarding"]["name"]) == (
        "events.k8s.io/v1",
        "what happened",
        "p",
    )
    assert seen["deprecatedCount"] == 2
    assert seen["deprecatedSource"] == {"component": "somebody"}
    assert seen["deprecatedFirstTimestamp"] == "2026-01-01T00:00:00Z"


def new_style(namespace: str, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "n"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": namespace},
        "eventTime": "2026-01-01T00:00:00.123456Z",
        "reportingController": "example.org/somebody",
        "reportingInstance": "somebody-1",
        "action": "Trying",
        "reason": "Why",
        "note": "what happened",
        "type": "Warning",
        **more,
    }


async def test_an_event_of_a_new_recorder_is_seen_by_old_readers(api: Api, kubectl: Kubectl) -> None:
    made = await api.post(of_group(api, "events.k8s.io", "events"), new_style(api.namespace))
    assert made.code == 201, made.body
    seen = (await api.get(f"{core(api, 'events')}/n")).body
    assert (seen["apiVersion"], seen["message"]) == ("v1", "what happened")
    assert seen["involvedObject"]["name"] == "p"
    assert (seen["reportingComponent"], seen["eventTime"]) == (
        "example.org/somebody",
        "2026-01-01T00:00:00.123456Z",
    )
    assert "what happened" in kubectl("events")


async def test_both_groups_select_events_by_their_own_names(api: Api) -> None:
    await api.post(of_group(api, "events.k8s.io", "events"), new_style(api.namespace))
    for place, name in (
        (core(api, "events"), "involvedObject.name"),
        (of_group(api, "events.k8s.io", "events"), "regarding.name"),
    ):
        for value, count in (("p", 1), ("q", 0)):
            found = await api.get(place, fieldSelector=f"{name}={value},reason=Why")
            assert len(found.body["items"]) == count, (place, value)


@pytest.mark.parametrize(
    "missing", ["eventTime", "reportingController", "reportingInstance", "action", "reason"]
)
async def test_a_new_recorder_has_to_say_who_it_is(api: Api, missing: str) -> None:
    event = new_style(api.namespace)
    del event[missing]
    answer = await api.post(of_group(api, "events.k8s.io", "events"), event)
    assert answer.code == 422
    assert missing in fields_of(answer)


async def test_events_live_in_the_namespace_of_what_they_are_about(api: Api) -> None:
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "elsewhere"},
    }
    answer = await api.post(core(api, "events"), event)
    assert (answer.code, fields_of(answer)) == (422, {"involvedObject.namespace"})


# Nodes, leases, storage


async def test_a_node_registers_with_its_status_and_is_cordoned(api: Api, kubectl: Kubectl) -> None:
    name = f"node-{api.namespace}"
    node = {
        "metadata": {"name": name, "labels": {"node-role.kubernetes.io/worker": ""}},
        "status": {
            "capacity": {"cpu": 2, "memory": "4096Mi"},
            "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}],
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.2.3"},
        },
    }
    try:
        made = await api.post("/api/v1/nodes", node)
        assert made.code == 201, made.body
        assert made.body["status"]["allocatable"] == {"cpu": "2", "memory": "4Gi"}
        kubectl("cordon", name)
        line = kubectl("get", "node", name, "--no-headers", "-o", "wide").split()
        assert line[1:3] == ["Ready,SchedulingDisabled", "worker"]
        assert "10.1.2.3" in line
        conditions = {"conditions": [{"type": "Ready", "status": "False", "reason": "Gone"}]}
        told = await api.patch(f"/api/v1/nodes/{name}/status", {"status": conditions}, STRATEGIC)
        assert told.body["status"]["addresses"] == [{"type": "InternalIP", "address": "10.1.2.3"}]
        assert kubectl("get", "node", name, "--no-headers").split()[1] == "NotReady,SchedulingDisabled"
    finally:
        await api.delete(f"/api/v1/nodes/{name}")


async def test_leases_of_nodes_have_a_place_from_the_start(api: Api) -> None:
    place = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    lease = {
        "metadata": {"name": api.namespace},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 40},
    }
    assert (await api.post(place, lease)).code == 201
    assert (await api.delete(f"{place}/{api.namespace}")).code == 200


REFUSED_LEASES = [
    ({"leaseDurationSeconds": 0}, 422),
    ({"leaseTransitions": -1}, 422),
    ({"renewTime": "2026-01-01T00:00:00Z"}, 400),
    ({"renewTime": "yesterday"}, 400),
    ({"holderIdentity": 7}, 400),
]


async def test_a_lease_that_cannot_be_is_refused(api: Api) -> None:
    for spec, code in REFUSED_LEASES:
        answer = await api.post(
            of_group(api, "coordination.k8s.io", "leases"), {"metadata": {"name": "l"}, "spec": spec}
        )
        assert answer.code == code, answer.body


def a_claim(**spec: Any) -> dict[str, Any]:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    return {"metadata": {"name": "v"}, "spec": {"storageClassName": "no-such-class", **asked, **spec}}


async def test_a_claim_waits_for_storage_and_stays_what_it_is(api: Api) -> None:
    place = core(api, "persistentvolumeclaims")
    made = await api.post(place, a_claim())
    assert made.code == 201, made.body
    assert made.body["status"] == {"phase": "Pending"}
    assert made.body["spec"]["volumeMode"] == "Filesystem"
    assert made.body["spec"]["resources"]["requests"]["storage"] == "1Gi"
    grown = await api.patch(f"{place}/v", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    assert (grown.code, fields_of(grown)) == (422, {"spec"})


REFUSED_CLAIMS = [
    ({"accessModes": []}, "spec.accessModes"),
    ({"accessModes": ["Sometimes"]}, "spec.accessModes"),
    ({"resources": {}}, "spec.resources[storage]"),
    ({"resources": {"requests": {"storage": "0"}}}, "spec.resources[storage]"),
    ({"volumeMode": "Cloud"}, "spec.volumeMode"),
]


async def test_a_claim_for_nothing_is_refused(api: Api) -> None:
    for spec, field in REFUSED_CLAIMS:
        answer = await api.post(core(api, "persistentvolumeclaims"), a_claim(**spec))
        assert answer.code == 422
        assert field in fields_of(answer), answer.body


# Roles


async def test_roles_are_kept_with_the_names_clusters_give_them(api: Api) -> None:
    name = f"system:{api.namespace}:Some-Role"
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    try:
        assert (
            await api.post(rbac("clusterroles"), {"metadata": {"name": name}, "rules": rules})
        ).code == 201
        assert (await api.get(f"{rbac('clusterroles')}/{name}")).body["rules"] == rules
    finally:
        await api.delete(f"{rbac('clusterroles')}/{name}")


async def test_what_a_binding_gives_cannot_be_changed(api: Api) -> None:
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "u"}],
    }
    place = of_group(api, RBAC, "rolebindings")
    made = await api.post(place, binding)
    assert made.body["subjects"] == [{"kind": "User", "apiGroup": RBAC, "name": "u"}]
    assert made.body["roleRef"]["apiGroup"] == RBAC
    changed = await api.patch(f"{place}/b", {"roleRef": {"name": "other"}}, MERGE)
    assert (changed.code, fields_of(changed)) == (422, {"roleRef"})


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"verbs": []}, "rules[0].verbs"),
        ({"apiGroups": []}, "rules[0].apiGroups"),
        ({"resources": []}, "rules[0].resources"),
        ({"nonResourceURLs": ["/x"]}, "rules[0].nonResourceURLs"),
    ],
)
async def test_a_rule_that_allows_nothing_is_refused(api: Api, rule: dict[str, Any], field: str) -> None:
    whole = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], **rule}
    answer = await api.post(of_group(api, RBAC, "roles"), {"metadata": {"name": "r"}, "rules": [whole]})
    assert answer.code == 422
    assert field in fields_of(answer)


# What is shown


COLUMNS = [
    ("/api/v1/pods", "Name Ready Status Restarts Age IP Node Nominated Node Readiness Gates"),
    ("/api/v1/services", "Name Type Cluster-IP External-IP Port(s) Age Selector"),
    ("/api/v1/configmaps", "Name Data Age"),
    ("/api/v1/secrets", "Name Type Data Age"),
    ("/api/v1/serviceaccounts", "Name Secrets Age"),
    ("/apis/apps/v1/deployments", "Name Ready Up-to-date Available Age Containers Images Selector"),
    (
        "/apis/apps/v1/daemonsets",
        "Name Desired Current Ready Up-to-date Available Node Selector Age Containers Images Selector",
    ),
    ("/apis/batch/v1/jobs", "Name Status Completions Duration Age Containers Images Selector"),
    ("/apis/networking.k8s.io/v1/ingresses", "Name Class Hosts Address Ports Age"),
    ("/apis/coordination.k8s.io/v1/leases", "Name Holder Age"),
    (f"/apis/{RBAC}/v1/rolebindings", "Name Role Age Users Groups ServiceAccounts"),
    (f"/apis/{RBAC}/v1/roles", "Name Created At"),
]


async def test_lists_have_the_columns_people_know(api: Api) -> None:
    for place, columns in COLUMNS:
        table = (await api.get(place, accept=TABLE, limit="1")).body
        assert " ".join(column["name"] for column in table["columnDefinitions"]) == columns, place


async def test_kubectl_creates_every_kind_it_has_words_for(api: Api, kubectl: Kubectl) -> None:
    for words in (
        "configmap c --from-literal=a=b",
        "secret generic s --from-literal=a=b",
        "serviceaccount a",
        "deployment d --image=example.org/x:1 --replicas=0 --port=80",
        "job j --image=example.org/x:1",
        "service clusterip v --tcp=80:8080",
        "service externalname e --external-name=example.org",
        "ingress i --rule=example.org/x=v:80",
        "role r --verb=get --resource=pods",
        "rolebinding b --role=r --user=u",
    ):
        assert "created" in kubectl("create", *words.split()), words
    assert kubectl("get", "deployment", "d", "-o", "jsonpath={.spec.replicas}") == "0"
    ports = kubectl("get", "service", "v", "-o", "jsonpath={.spec.ports[0].targetPort}")
    assert ports == "8080"


async def test_kubectl_explains_the_parts_of_a_pod(kubectl: Kubectl) -> None:
    text = kubectl("explain", "deployment.spec.template.spec.containers.readinessProbe.httpGet")
    assert "port" in text
    assert "DESCRIPTION" in text


# Protobuf


def of_type(api_version: bytes, kind: bytes, raw: bytes = b"") -> bytes:
    def field(number: int, value: bytes) -> bytes:
        return bytes([number << 3 | 2, len(value)]) + value

    return b"k8s\x00" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


BROKEN_PROTOBUF = [
    b"",
    b"garbage",
    b"k8s\x00",
    b"k8s\x00\xff\xff\xff",
    of_type(b"v1", b"ConfigMap")[:-6],
    of_type(b"v1", b"ConfigMap", b"\x0a\xff"),
    of_type(b"v1", b"ConfigMap", b"\x0a\x05abc"),
    of_type(b"v1", b"Secret"),
]


async def test_broken_protobuf_is_refused_like_other_nonsense(api: Api) -> None:
    for body in BROKEN_PROTOBUF:
        answer = await api.post(core(api, "configmaps"), body, type_="application/vnd.kubernetes.protobuf")
        assert (answer.code, answer.body["reason"]) == (400, "BadRequest"), (body, answer.body)


async def test_protobuf_without_a_name_is_an_object_without_one(api: Api) -> None:
    body = of_type(b"v1", b"ConfigMap")
    answer = await api.post(core(api, "configmaps"), body, type_="application/vnd.kubernetes.protobuf")
    assert (answer.code, fields_of(answer)) == (422, {"metadata.name"})
