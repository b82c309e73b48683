"""Creating, reading, changing and deleting objects."""

from __future__ import annotations

import asyncio
import base64

from kubernetes_api import HOSTS, JSON_PATCH, STRATEGIC, Api, a_host, a_status


async def test_a_created_object_has_identity_version_generation_and_defaults(api: Api) -> None:
    made = await api.new_host("h1", labels={"rack": "a"})
    metadata = made.body["metadata"]
    assert all(metadata[name] for name in ("uid", "resourceVersion", "creationTimestamp"))
    assert metadata["generation"] == 1
    assert metadata["namespace"] == api.namespace
    assert made.body["spec"]["automatedCleaningMode"] == "metadata"
    assert (await api.get(api.host("h1"))).body == made.body


async def test_the_same_name_cannot_be_created_twice(api: Api) -> None:
    await api.new_host("h1")
    again = await api.post(api.hosts, a_host("h1"))
    assert (again.code, again.body["reason"]) == (409, "AlreadyExists")
    assert again.body["details"]["name"] == "h1"


async def test_of_many_who_create_one_name_at_once_exactly_one_wins(api: Api) -> None:
    answers = await asyncio.gather(*(api.post(api.hosts, a_host("h1")) for _ in range(12)))
    assert sorted(answer.code for answer in answers) == [201] + [409] * 11


async def test_a_generated_name_has_the_prefix_and_is_new_each_time(api: Api) -> None:
    body = {**a_host("x"), "metadata": {"generateName": "rack-"}}
    names = {(await api.post(api.hosts, body)).body["metadata"]["name"] for _ in range(5)}
    assert len(names) == 5
    assert all(name.startswith("rack-") and len(name) > 5 for name in names)


async def test_what_is_not_there_is_a_status_with_reason_not_found(api: Api) -> None:
    for answer in (
        await api.get(api.host("nobody")),
        await api.patch(api.host("nobody"), {"spec": {"online": True}}),
        await api.delete(api.host("nobody")),
    ):
        assert (answer.code, answer.body["kind"], answer.body["reason"]) == (404, "Status", "NotFound")
        assert answer.body["message"] == 'baremetalhosts.metal3.io "nobody" not found'


async def test_a_namespace_must_exist_before_something_is_created_in_it(api: Api) -> None:
    answer = await api.post(f"{HOSTS}/namespaces/not-there/baremetalhosts", a_host("h1"))
    assert (answer.code, answer.body["message"]) == (404, 'namespaces "not-there" not found')


async def test_a_name_that_is_no_dns_name_is_refused_with_its_field(api: Api) -> None:
    for name in ("Rack", "a_b", "-a", "a/b", "a" * 254):
        answer = await api.post(api.hosts, a_host(name))
        assert answer.code == 422, name
        assert answer.body["details"]["causes"][0]["field"] == "metadata.name"


async def test_metadata_of_the_wrong_type_is_a_bad_request(api: Api) -> None:
    answer = await api.post(api.hosts, a_host("h1", labels={"a": 1}))
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


async def test_labels_that_are_no_labels_are_refused(api: Api) -> None:
    for labels in ({"a b": "x"}, {"a": "x y"}, {"a": "x" * 64}):
        answer = await api.post(api.hosts, a_host("h1", labels=labels))
        assert (answer.code, answer.body["details"]["causes"][0]["field"]) == (422, "metadata.labels")


async def test_the_schema_names_every_wrong_field(api: Api) -> None:
    spec = {"online": "yes", "automatedCleaningMode": "always", "bmc": {"address": "ipmi://10.0.0.1"}}
    answer = await api.post(api.hosts, a_host("h1", spec=spec))
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    causes = {cause["field"]: cause["reason"] for cause in answer.body["details"]["causes"]}
    assert causes == {
        "spec.online": "FieldValueTypeInvalid",
        "spec.automatedCleaningMode": "FieldValueNotSupported",
        "spec.bmc.credentialsName": "FieldValueRequired",
    }


async def test_unknown_fields_are_refused_warned_about_or_dropped_as_the_client_likes(api: Api) -> None:
    body = a_host("h1", spec={"online": False, "onlin": True})
    strict = await api.post(api.hosts, body, fieldValidation="Strict")
    assert strict.code == 400
    assert 'unknown field "spec.onlin"' in strict.body["message"]
    warned = await api.post(api.hosts, body, fieldValidation="Warn")
    assert warned.code == 201
    assert 'unknown field \\"spec.onlin\\"' in warned.headers["Warning"]
    assert "onlin" not in warned.body["spec"]
    ignored = await api.post(api.hosts, {**body, "metadata": {"name": "h2"}}, fieldValidation="Ignore")
    assert ignored.code == 201
    assert "Warning" not in ignored.headers


async def test_a_dry_run_answers_as_if_and_changes_nothing(api: Api) -> None:
    assert (await api.post(api.hosts, a_host("h1"), dryRun="All")).code == 201
    assert (await api.get(api.host("h1"))).code == 404
    made = await api.new_host("h1")
    patched = await api.patch(api.host("h1"), {"spec": {"online": True}}, dryRun="All")
    assert patched.body["spec"]["online"] is True
    assert (await api.delete(api.host("h1"), dryRun="All")).code == 200
    assert (await api.get(api.host("h1"))).body == made.body


# Changing


async def test_the_generation_moves_when_the_spec_changes_and_only_then(api: Api) -> None:
    await api.new_host("h1")
    labelled = await api.patch(api.host("h1"), {"metadata": {"labels": {"a": "b"}}})
    status = await api.patch(f"{api.host('h1')}/status", {"status": a_status()})
    assert (labelled.body["metadata"]["generation"], status.body["metadata"]["generation"]) == (1, 1)
    changed = await api.patch(api.host("h1"), {"spec": {"online": True}})
    assert changed.body["metadata"]["generation"] == 2


async def test_a_patch_that_changes_nothing_keeps_the_version(api: Api) -> None:
    made = await api.new_host("h1")
    assert (await api.patch(api.host("h1"), {"spec": {"online": False}})).version == made.version
    put = await api.put(api.host("h1"), made.body)
    assert (put.code, put.version) == (200, made.version)


async def test_the_status_and_the_rest_are_written_apart(api: Api) -> None:
    made = await api.post(api.hosts, {**a_host("h1"), "status": a_status()})
    assert "status" not in made.body
    await api.patch(api.host("h1"), {"status": a_status()})
    assert "status" not in (await api.get(api.host("h1"))).body
    both = {"spec": {"online": True}, "metadata": {"labels": {"a": "b"}}, "status": a_status()}
    answer = await api.patch(f"{api.host('h1')}/status", both)
    assert answer.body["status"]["provisioning"]["state"] == "available"
    assert answer.body["spec"]["online"] is False
    assert "labels" not in answer.body["metadata"]
    read = await api.get(f"{api.host('h1')}/status")
    assert read.body == answer.body


async def test_a_write_based_on_an_old_version_is_a_conflict(api: Api) -> None:
    made = await api.new_host("h1")
    moved = await api.patch(api.host("h1"), {"spec": {"online": True}})
    stale = {"metadata": {"resourceVersion": made.version}, "spec": {"online": False}}
    for answer in (
        await api.patch(api.host("h1"), stale),
        await api.patch(f"{api.host('h1')}/status", {**stale, "status": a_status()}),
        await api.put(api.host("h1"), made.body),
    ):
        assert (answer.code, answer.body["reason"]) == (409, "Conflict")
        assert "the object has been modified" in answer.body["message"]
    fresh = {"metadata": {"resourceVersion": moved.version}, "spec": {"online": False}}
    assert (await api.patch(api.host("h1"), fresh)).code == 200


async def test_of_many_who_write_on_the_same_version_exactly_one_wins(api: Api) -> None:
    made = await api.new_host("h1")
    patches = [
        api.patch(
            api.host("h1"), {"metadata": {"resourceVersion": made.version, "labels": {"winner": str(i)}}}
        )
        for i in range(12)
    ]
    assert sorted(answer.code for answer in await asyncio.gather(*patches)) == [200] + [409] * 11


async def test_counting_with_read_and_conditional_write_loses_nothing(api: Api) -> None:
    await api.new_host("h1", annotations={"n": "0"})

    async def add_one() -> None:
        while True:
            host = (await api.get(api.host("h1"))).body
            value = str(int(host["metadata"]["annotations"]["n"]) + 1)
            patch = {
                "metadata": {
                    "resourceVersion": host["metadata"]["resourceVersion"],
                    "annotations": {"n": value},
                }
            }
            if (await api.patch(api.host("h1"), patch)).code == 200:
                return

    await asyncio.gather(*(add_one() for _ in range(10)))
    assert (await api.get(api.host("h1"))).body["metadata"]["annotations"]["n"] == "10"


async def test_a_put_replaces_everything_but_what_the_server_owns(api: Api) -> None:
    made = await api.new_host("h1", labels={"a": "b"})
    body = a_host("h1", spec={"online": True}, resourceVersion=made.version, uid=made.body["metadata"]["uid"])
    answer = await api.put(api.host("h1"), body)
    assert answer.code == 200
    assert "labels" not in answer.body["metadata"]
    assert answer.body["metadata"]["creationTimestamp"] == made.body["metadata"]["creationTimestamp"]
    assert answer.body["metadata"]["generation"] == 2


async def test_a_put_of_a_custom_kind_must_name_the_version_it_replaces(api: Api) -> None:
    await api.new_host("h1")
    answer = await api.put(api.host("h1"), a_host("h1"))
    assert answer.code == 422
    assert "must be specified for an update" in answer.body["message"]


async def test_a_put_for_another_uid_is_a_conflict(api: Api) -> None:
    made = await api.new_host("h1")
    body = a_host("h1", resourceVersion=made.version, uid="00000000-0000-0000-0000-000000000000")
    assert (await api.put(api.host("h1"), body)).code == 409


async def test_a_document_may_not_name_another_place_than_its_url(api: Api) -> None:
    made = await api.new_host("h1")
    assert (await api.post(api.hosts, a_host("h2", namespace="default"))).code == 400
    assert (await api.put(api.host("h1"), a_host("h2", resourceVersion=made.version))).code == 400


async def test_a_null_in_a_merge_patch_removes_and_lists_are_replaced(api: Api) -> None:
    await api.new_host("h1", labels={"a": "1", "b": "2"}, finalizers=["x.y/one"])
    answer = await api.patch(api.host("h1"), {"metadata": {"labels": {"a": None}, "finalizers": ["x.y/two"]}})
    assert answer.body["metadata"]["labels"] == {"b": "2"}
    assert answer.body["metadata"]["finalizers"] == ["x.y/two"]
    await api.patch(api.host("h1"), {"metadata": {"finalizers": None}})


async def test_a_json_patch_is_applied_whole_or_not_at_all(api: Api) -> None:
    await api.new_host("h1", labels={"a": "1"})
    good = [
        {"op": "test", "path": "/metadata/labels/a", "value": "1"},
        {"op": "replace", "path": "/spec/online", "value": True},
        {"op": "add", "path": "/metadata/labels/x.y~1z", "value": "2"},
    ]
    answer = await api.patch(api.host("h1"), good, JSON_PATCH)
    assert answer.body["metadata"]["labels"] == {"a": "1", "x.y/z": "2"}
    bad = [
        {"op": "replace", "path": "/spec/online", "value": False},
        {"op": "test", "path": "/metadata/labels/a", "value": "other"},
    ]
    assert (await api.patch(api.host("h1"), bad, JSON_PATCH)).code == 422
    assert (await api.get(api.host("h1"))).body["spec"]["online"] is True


async def test_strategic_patches_are_for_built_in_kinds(api: Api) -> None:
    await api.new_host("h1")
    assert (await api.patch(api.host("h1"), {"spec": {"online": True}}, STRATEGIC)).code == 415
    await api.post(
        api.secrets, {"metadata": {"name": "s", "finalizers": ["x.y/one"]}, "stringData": {"a": "1"}}
    )
    patch = {
        "metadata": {"finalizers": ["x.y/two"], "$deleteFromPrimitiveList/finalizers": ["x.y/one"]},
        "data": {"b": base64.b64encode(b"2").decode()},
    }
    answer = await api.patch(f"{api.secrets}/s", patch, STRATEGIC)
    assert answer.code == 200
    assert set(answer.body["data"]) == {"a", "b"}
    assert answer.body["metadata"]["finalizers"] == ["x.y/two"]
    await api.patch(f"{api.secrets}/s", {"metadata": {"finalizers": None}})


async def test_an_unknown_patch_type_is_refused(api: Api) -> None:
    await api.new_host("h1")
    assert (await api.patch(api.host("h1"), {}, "application/json")).code == 415


# Deleting


async def test_a_deleted_object_is_gone_and_its_name_is_free_again(api: Api) -> None:
    made = await api.new_host("h1")
    answer = await api.delete(api.host("h1"))
    assert (answer.code, answer.body["status"]) == (200, "Success")
    assert (await api.get(api.host("h1"))).code == 404
    assert (await api.new_host("h1")).body["metadata"]["uid"] != made.body["metadata"]["uid"]


async def test_a_finalizer_holds_an_object_until_it_is_taken_off(api: Api) -> None:
    await api.new_host("h1", finalizers=["x.y/z"])
    answer = await api.delete(api.host("h1"))
    assert answer.code == 200
    assert answer.body["metadata"]["deletionTimestamp"]
    again = await api.delete(api.host("h1"))
    assert again.body["metadata"]["deletionTimestamp"] == answer.body["metadata"]["deletionTimestamp"]
    more = await api.patch(api.host("h1"), {"metadata": {"finalizers": ["x.y/z", "x.y/new"]}})
    assert (more.code, more.body["details"]["causes"][0]["field"]) == (422, "metadata.finalizers")
    kept = await api.patch(api.host("h1"), {"metadata": {"deletionTimestamp": None, "labels": {"a": "b"}}})
    assert kept.body["metadata"]["deletionTimestamp"]
    last = await api.patch(api.host("h1"), {"metadata": {"finalizers": []}})
    assert last.code == 200
    assert (await api.get(api.host("h1"))).code == 404


async def test_a_delete_can_insist_on_the_very_object_that_was_seen(api: Api) -> None:
    made = await api.new_host("h1")
    uid = {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}}
    old = {"preconditions": {"resourceVersion": "1"}}
    for options in (uid, old):
        answer = await api.delete(api.host("h1"), options)
        assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    right = {"preconditions": {"uid": made.body["metadata"]["uid"], "resourceVersion": made.version}}
    assert (await api.delete(api.host("h1"), right)).code == 200


async def test_a_collection_can_be_deleted_by_selector(api: Api) -> None:
    await api.new_host("h1", labels={"rack": "a"})
    await api.new_host("h2", labels={"rack": "b"})
    assert (await api.delete(api.hosts, labelSelector="rack=a")).code == 200
    left = (await api.get(api.hosts)).body["items"]
    assert [item["metadata"]["name"] for item in left] == ["h2"]


# Secrets and namespaces


async def test_a_secret_turns_plain_text_into_data_and_gets_a_type(api: Api) -> None:
    body = {"metadata": {"name": "s"}, "data": {"a": "MQ==", "b": "MQ=="}, "stringData": {"b": "two"}}
    made = await api.post(api.secrets, body)
    assert made.body["type"] == "Opaque"
    assert made.body["data"] == {"a": "MQ==", "b": "dHdv"}
    assert "stringData" not in made.body


async def test_a_secret_that_is_not_base64_is_a_bad_request(api: Api) -> None:
    answer = await api.post(api.secrets, {"metadata": {"name": "s"}, "data": {"a": "not base64!"}})
    assert answer.code == 400


async def test_the_type_of_a_secret_and_immutable_data_stay(api: Api) -> None:
    await api.post(api.secrets, {"metadata": {"name": "s"}, "immutable": True, "data": {"a": "MQ=="}})
    assert (await api.patch(f"{api.secrets}/s", {"type": "other"})).code == 422
    assert (await api.patch(f"{api.secrets}/s", {"data": {"a": "Mg=="}})).code == 422


async def test_the_first_namespaces_are_there_and_cannot_be_deleted(api: Api) -> None:
    for name in ("default", "kube-system"):
        assert (await api.get(f"/api/v1/namespaces/{name}")).body["status"]["phase"] == "Active"
        assert (await api.delete(f"/api/v1/namespaces/{name}")).code == 403


async def test_bad_bodies_are_bad_requests(api: Api) -> None:
    for body in (b"{", b"[]", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"metadata": []}'):
        answer = await api.post(api.hosts, body)
        assert (answer.code, answer.body["kind"], answer.body["reason"]) == (400, "Status", "BadRequest"), (
            body[:20]
        )


async def test_a_body_beyond_the_limit_is_too_large(api: Api) -> None:
    body = a_host("h1", annotations={"a": "x" * (4 * 1024 * 1024)})
    answer = await api.post(api.hosts, body)
    assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_body_of_another_kind_or_version_is_refused(api: Api) -> None:
    kind = await api.post(api.hosts, {**a_host("h1"), "kind": "HardwareData"})
    assert (kind.code, kind.body["reason"]) == (422, "Invalid")
    assert [(c["field"], c["message"]) for c in kind.body["details"]["causes"]] == [
        ("kind", 'Invalid value: "HardwareData": must be BareMetalHost')
    ]
    version = await api.post(api.hosts, {**a_host("h1"), "apiVersion": "metal3.io/v1"})
    assert (version.code, version.body["message"]) == (
        400,
        "the API version in the data (metal3.io/v1) does not match the expected API version (metal3.io/v1alpha1)",
    )
    built_in = await api.post(
        api.secrets, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}}
    )
    assert (built_in.code, built_in.body["reason"]) == (400, "BadRequest")
    assert built_in.body["message"].startswith('ConfigMap in version "v1" cannot be handled as a Secret')
