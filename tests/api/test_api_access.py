"""Who may do what."""

from __future__ import annotations

from kubernetes_api import Api, a_host


async def test_without_a_token_or_with_a_wrong_one_nobody_is_served(api: Api) -> None:
    for header in ("", "Bearer wrong", "Basic YTpi", "Bearer "):
        answer = await api.get(api.hosts, headers={"Authorization": header})
        assert (answer.code, answer.body["reason"]) == (401, "Unauthorized"), header


async def test_anybody_may_ask_whether_the_server_lives_and_which_it_is(api: Api) -> None:
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        assert (await api.get(path, headers={"Authorization": ""})).code == 200


async def test_the_reader_sees_everything_but_secrets_and_changes_nothing(api: Api, reader: Api) -> None:
    await api.new_host("h1")
    await api.post(api.secrets, {"metadata": {"name": "s"}})
    assert (await reader.get(api.hosts)).code == 200
    assert (await reader.get(api.host("h1"))).code == 200
    metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    for answer in (
        await reader.get(api.secrets),
        await reader.get(f"{api.secrets}/s"),
        await reader.get(f"{api.secrets}/s", accept=metadata),
        await reader.get(api.secrets, watch="true"),
        await reader.get("/api/v1/secrets"),
        await reader.post(api.hosts, a_host("h2")),
        await reader.patch(api.host("h1"), {"spec": {"online": True}}),
        await reader.patch(f"{api.host('h1')}/status", {"status": {}}),
        await reader.put(api.host("h1"), a_host("h1")),
        await reader.delete(api.host("h1")),
        await reader.delete(api.hosts),
    ):
        assert (answer.code, answer.body["reason"]) == (403, "Forbidden"), answer.body


async def test_one_can_ask_who_one_is_and_what_one_may(api: Api, reader: Api) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await reader.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert answer.body["status"]["userInfo"]["username"] == "ingot:read-only"
    for who, verb, may in ((api, "delete", True), (reader, "delete", False), (reader, "list", True)):
        question = {
            "spec": {"resourceAttributes": {"verb": verb, "resource": "baremetalhosts", "group": "metal3.io"}}
        }
        answer = await who.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", question)
        assert answer.body["status"]["allowed"] is may
