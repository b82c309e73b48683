"""Questions about who may do what, and their answers."""

from __future__ import annotations

from typing import Any

import pytest
from built_in_kinds import fields_of
from kubernetes_api import Api, Kubectl

AUTHORIZATION = "/apis/authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
LIST_PODS = {"verb": "list", "resource": "pods"}
READ_SECRETS = {"verb": "get", "resource": "secrets"}


async def asked(api: Api, plural: str, spec: dict[str, Any], *, root: str = AUTHORIZATION) -> Any:
    answer = await api.post(f"{root}/{plural}", {"spec": spec})
    assert answer.code == 201, answer.body
    return answer.body["status"]


async def test_one_is_told_what_one_may(api: Api, reader: Api) -> None:
    for who, wanted, may in (
        (api, READ_SECRETS, True),
        (api, {"verb": "*", "resource": "*", "group": "*"}, True),
        (reader, LIST_PODS, True),
        (reader, READ_SECRETS, False),
        (reader, {"verb": "watch", "resource": "secrets"}, False),
        (reader, {"verb": "get", "resource": "*"}, False),
        (reader, {"verb": "create", "resource": "pods"}, False),
        (reader, {"verb": "*", "resource": "*", "group": "*"}, False),
    ):
        status = await asked(who, "selfsubjectaccessreviews", {"resourceAttributes": wanted})
        assert status["allowed"] is may, wanted


async def test_paths_that_are_no_resources_can_be_asked_about(api: Api, reader: Api) -> None:
    for who, verb, may in ((api, "post", True), (reader, "get", True), (reader, "post", False)):
        spec = {"nonResourceAttributes": {"path": "/openapi/v3", "verb": verb}}
        assert (await asked(who, "selfsubjectaccessreviews", spec))["allowed"] is may


@pytest.mark.parametrize(
    ("groups", "wanted", "may"),
    [
        (["system:masters"], READ_SECRETS, True),
        (["ingot:readers"], LIST_PODS, True),
        (["ingot:readers"], READ_SECRETS, False),
        (["somebody"], LIST_PODS, False),
        ([], LIST_PODS, False),
    ],
)
async def test_others_may_what_their_groups_may(
    api: Api, groups: list[str], wanted: dict[str, Any], may: bool
) -> None:
    spec = {"user": "jane", "groups": groups, "resourceAttributes": wanted}
    assert (await asked(api, "subjectaccessreviews", spec))["allowed"] is may
    local = {**spec, "resourceAttributes": {**wanted, "namespace": api.namespace}}
    inside = f"namespaces/{api.namespace}/localsubjectaccessreviews"
    assert (await asked(api, inside, local))["allowed"] is may


@pytest.mark.parametrize(
    ("plural", "spec", "field"),
    [
        ("selfsubjectaccessreviews", {}, "spec.resourceAttributes"),
        (
            "selfsubjectaccessreviews",
            {"resourceAttributes": LIST_PODS, "nonResourceAttributes": {"path": "/", "verb": "get"}},
            "spec.nonResourceAttributes",
        ),
        ("subjectaccessreviews", {"resourceAttributes": LIST_PODS}, "spec.user"),
        (
            "namespaces/default/localsubjectaccessreviews",
            {"user": "jane", "resourceAttributes": LIST_PODS},
            "spec.resourceAttributes.namespace",
        ),
    ],
)
async def test_half_a_question_is_refused(api: Api, plural: str, spec: dict[str, Any], field: str) -> None:
    answer = await api.post(f"{AUTHORIZATION}/{plural}", {"spec": spec})
    assert (answer.code, fields_of(answer)) == (422, {field})


async def test_a_question_of_the_wrong_shape_is_no_question(api: Api) -> None:
    place = f"{AUTHORIZATION}/selfsubjectaccessreviews"
    for body in ({"spec": {"resourceAttributes": "pods"}}, {"apiVersion": "v1", "kind": "Pod", "spec": {}}):
        answer = await api.post(place, body)
        assert (answer.code, answer.body["reason"]) == (400, "BadRequest"), body
    typo = {"spec": {"resourceAtributes": LIST_PODS}}
    assert (await api.post(place, typo, fieldValidation="Strict")).code == 400


async def test_only_the_admin_may_ask_about_others(reader: Api) -> None:
    spec = {"user": "jane", "resourceAttributes": LIST_PODS}
    for place, body in (
        (f"{AUTHORIZATION}/subjectaccessreviews", {"spec": spec}),
        (f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews", {"spec": spec}),
        (f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": "x"}}),
    ):
        answer = await reader.post(place, body)
        assert (answer.code, answer.body["reason"]) == (403, "Forbidden"), place


async def test_reviews_are_posted_and_never_read(api: Api) -> None:
    assert (await api.get(f"{AUTHORIZATION}/subjectaccessreviews")).code == 405
    assert (await api.post(f"{AUTHORIZATION}/localsubjectaccessreviews", {"spec": {}})).code == 404


async def test_a_token_is_known_or_it_is_not(api: Api) -> None:
    token = api.session.headers["Authorization"].removeprefix("Bearer ")
    known = await asked(api, "tokenreviews", {"token": token}, root=AUTHENTICATION)
    assert known["authenticated"] is True
    assert known["user"]["username"] == "ingot:admin"
    unknown = await asked(api, "tokenreviews", {"token": "made up"}, root=AUTHENTICATION)
    assert not unknown.get("authenticated")
    assert unknown["error"]
    assert (await api.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {}})).code == 400


async def test_all_one_may_in_a_namespace_can_be_listed(api: Api, reader: Api) -> None:
    spec = {"namespace": api.namespace}
    everything = await asked(api, "selfsubjectrulesreviews", spec)
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in everything["resourceRules"]
    readable = await asked(reader, "selfsubjectrulesreviews", spec)
    core = [rule for rule in readable["resourceRules"] if rule["apiGroups"] == [""]]
    named = {resource for rule in core for resource in rule["resources"]}
    assert {"pods", "configmaps", "events"} <= named
    assert not {"secrets", "*"} & named
    assert (await api.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {}})).code == 400


async def test_kubectl_asks_and_understands(api: Api, kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "delete", "pods").strip() == "yes"
    assert "ingot:admin" in kubectl("auth", "whoami")
    assert "*.*" in kubectl("auth", "can-i", "--list")
    other = kubectl.run("auth", "can-i", "delete", "pods", "--as=jane", "--as-group=ingot:readers")
    assert other.stdout.split()[0] == "no"


async def test_the_admin_can_act_as_somebody_else_and_then_may_no_more_than_they(
    api: Api, reader: Api
) -> None:
    place = f"/api/v1/namespaces/{api.namespace}/configmaps"
    as_jane = {"Impersonate-User": "jane", "Impersonate-Group": "ingot:readers"}
    assert (await api.get(place, headers=as_jane)).code == 200
    refused = await api.post(place, {"metadata": {"name": "c"}}, headers=as_jane)
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    assert '"jane"' in refused.body["message"]
    assert (await api.get(place, headers={"Impersonate-User": "nobody"})).code == 403
    pretending = await reader.get(place, headers={"Impersonate-User": "ingot:admin"})
    assert (pretending.code, pretending.body["reason"]) == (403, "Forbidden")
