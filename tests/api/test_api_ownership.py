"""What goes when something else goes: owners, namespaces."""

from __future__ import annotations

from typing import Any

from kubernetes_api import Answer, Api, a_host, eventually


def owned_by(*owners: Answer, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": owner.body["apiVersion"],
            "kind": owner.body["kind"],
            "name": owner.body["metadata"]["name"],
            "uid": owner.body["metadata"]["uid"],
            **more,
        }
        for owner in owners
    ]


async def gone(api: Api, path: str) -> None:
    async def is_gone() -> bool:
        return (await api.get(path)).code == 404

    await eventually(is_gone)


async def secret(api: Api, name: str, owners: list[dict[str, Any]], **metadata: Any) -> Answer:
    answer = await api.post(api.secrets, {"metadata": {"name": name, "ownerReferences": owners, **metadata}})
    assert answer.code == 201, answer.body
    return answer


async def test_a_dependent_goes_with_its_only_owner(api: Api) -> None:
    host = await api.new_host("h1")
    await secret(api, "s", owned_by(host))
    await secret(api, "free", [])
    await api.delete(api.host("h1"))
    await gone(api, f"{api.secrets}/s")
    assert (await api.get(f"{api.secrets}/free")).code == 200


async def test_a_dependent_stays_while_one_owner_is_left(api: Api) -> None:
    first, second = await api.new_host("h1"), await api.new_host("h2")
    await secret(api, "s", owned_by(first, second))
    await api.delete(api.host("h1"))

    async def has_one_owner() -> bool:
        return len((await api.get(f"{api.secrets}/s")).body["metadata"]["ownerReferences"]) == 1

    await eventually(has_one_owner)
    await api.delete(api.host("h2"))
    await gone(api, f"{api.secrets}/s")


async def test_an_owner_is_known_by_its_uid_not_by_its_name(api: Api) -> None:
    first = await api.new_host("h1")
    await api.delete(api.host("h1"))
    await api.new_host("h1")
    await secret(api, "s", owned_by(first))
    await gone(api, f"{api.secrets}/s")


async def test_whole_chains_go(api: Api) -> None:
    host = await api.new_host("h1")
    middle = await secret(api, "middle", owned_by(host))
    middle = await api.get(f"{api.secrets}/middle")
    await secret(api, "last", owned_by(middle))
    await api.delete(api.host("h1"))
    await gone(api, f"{api.secrets}/last")


async def test_orphans_are_set_free_when_that_is_asked_for(api: Api) -> None:
    host = await api.new_host("h1")
    await secret(api, "s", owned_by(host))
    await api.delete(api.host("h1"), {"propagationPolicy": "Orphan"})
    await gone(api, api.host("h1"))
    left = await api.get(f"{api.secrets}/s")
    assert left.code == 200
    assert not left.body["metadata"].get("ownerReferences")


async def test_in_the_foreground_the_owner_waits_for_those_that_block_it(api: Api) -> None:
    host = await api.new_host("h1")
    await secret(api, "s", owned_by(host, blockOwnerDeletion=True), finalizers=["x.y/z"])
    answer = await api.delete(api.host("h1"), {"propagationPolicy": "Foreground"})
    assert "foregroundDeletion" in answer.body["metadata"]["finalizers"]

    async def is_going() -> bool:
        return "deletionTimestamp" in (await api.get(f"{api.secrets}/s")).body["metadata"]

    await eventually(is_going)
    assert (await api.get(api.host("h1"))).code == 200
    await api.patch(f"{api.secrets}/s", {"metadata": {"finalizers": None}})
    await gone(api, api.host("h1"))


async def test_a_deleted_namespace_is_emptied_and_goes_when_the_last_finalizer_does(api: Api) -> None:
    name = f"{api.namespace}-x"
    place = f"/apis/metal3.io/v1alpha1/namespaces/{name}/baremetalhosts"
    await api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    await api.post(place, a_host("held", finalizers=["x.y/z"]))
    await api.post(f"/api/v1/namespaces/{name}/secrets", {"metadata": {"name": "s"}})
    answer = await api.delete(f"/api/v1/namespaces/{name}")
    assert answer.body["status"]["phase"] == "Terminating"
    await gone(api, f"/api/v1/namespaces/{name}/secrets/s")
    refused = await api.post(place, a_host("late"))
    assert (refused.code, refused.body["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    assert (await api.get(f"/api/v1/namespaces/{name}")).code == 200
    await api.patch(f"{place}/held", {"metadata": {"finalizers": None}})
    await gone(api, f"/api/v1/namespaces/{name}")
