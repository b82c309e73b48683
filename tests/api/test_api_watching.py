"""Watches: what happens is seen, in order, once."""

from __future__ import annotations

import asyncio

from kubernetes_api import Api, a_status

METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


async def version_of(api: Api) -> str:
    return (await api.get(api.hosts)).version


async def test_a_watch_tells_of_creation_change_and_deletion_in_order(api: Api) -> None:
    stream = await api.watch(api.hosts, resourceVersion=await version_of(api))
    await api.new_host("h1")
    await api.patch(api.host("h1"), {"spec": {"online": True}})
    await api.patch(f"{api.host('h1')}/status", {"status": a_status()})
    await api.delete(api.host("h1"))
    events = [await stream.next() for _ in range(4)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    assert events[1]["object"]["spec"]["online"] is True
    assert events[3]["object"]["status"]["provisioning"]["state"] == "available"


async def test_a_watch_without_a_version_begins_with_what_is_there(api: Api) -> None:
    await api.new_host("h1")
    await api.new_host("h2")
    stream = await api.watch(api.hosts)
    assert await stream.names(2) == [("ADDED", "h1"), ("ADDED", "h2")]
    await api.new_host("h3")
    assert await stream.names(1) == [("ADDED", "h3")]


async def test_an_idle_watch_gets_its_headers_at_once(api: Api) -> None:
    async with asyncio.timeout(60):
        stream = await api.watch(api.hosts, resourceVersion=await version_of(api))
    assert stream.response.status == 200


async def test_a_watch_resumed_from_a_version_misses_nothing_and_repeats_nothing(api: Api) -> None:
    start = await version_of(api)
    for number in range(5):
        await api.new_host(f"h{number}")
    first = await api.watch(api.hosts, resourceVersion=start)
    seen = [await first.next() for _ in range(2)]
    first.response.close()
    second = await api.watch(api.hosts, resourceVersion=seen[-1]["object"]["metadata"]["resourceVersion"])
    assert await second.names(3) == [("ADDED", "h2"), ("ADDED", "h3"), ("ADDED", "h4")]


async def test_with_a_selector_objects_come_and_go_as_they_begin_and_cease_to_match(api: Api) -> None:
    await api.new_host("h1")
    stream = await api.watch(api.hosts, resourceVersion=await version_of(api), labelSelector="rack=a")
    await api.new_host("h2")
    await api.patch(api.host("h1"), {"metadata": {"labels": {"rack": "a"}}})
    await api.patch(api.host("h1"), {"spec": {"online": True}})
    await api.patch(api.host("h1"), {"metadata": {"labels": {"rack": "b"}}})
    await api.delete(api.host("h1"))
    await api.new_host("h3", labels={"rack": "a"})
    await api.delete(api.host("h3"))
    assert await stream.names(5) == [
        ("ADDED", "h1"),
        ("MODIFIED", "h1"),
        ("DELETED", "h1"),
        ("ADDED", "h3"),
        ("DELETED", "h3"),
    ]


async def test_a_watch_of_one_name_sees_only_that(api: Api) -> None:
    stream = await api.watch(
        api.hosts, resourceVersion=await version_of(api), fieldSelector="metadata.name=h2"
    )
    await api.new_host("h1")
    await api.new_host("h2")
    assert await stream.names(1) == [("ADDED", "h2")]


async def test_a_watch_of_one_namespace_sees_no_other(api: Api) -> None:
    stream = await api.watch(api.secrets, resourceVersion=(await api.get(api.secrets)).version)
    await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": f"s-{api.namespace}"}})
    await api.post(api.secrets, {"metadata": {"name": "ours"}})
    await api.delete(f"/api/v1/namespaces/default/secrets/s-{api.namespace}")
    assert await stream.names(1) == [("ADDED", "ours")]


async def test_initial_events_end_with_a_bookmark_that_says_so(api: Api) -> None:
    await api.new_host("h1")
    stream = await api.watch(
        api.hosts, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"
    )
    assert await stream.names(1) == [("ADDED", "h1")]
    mark = await stream.next()
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    await api.new_host("h2")
    assert await stream.names(1) == [("ADDED", "h2")]


async def test_initial_events_need_to_say_how_the_version_is_meant(api: Api) -> None:
    assert (await api.get(api.hosts, watch="true", sendInitialEvents="true")).code == 422


async def test_a_watch_ends_by_itself_when_its_time_is_up(api: Api) -> None:
    stream = await api.watch(
        api.hosts, resourceVersion=await version_of(api), timeoutSeconds=1, allowWatchBookmarks="true"
    )
    async with asyncio.timeout(60):
        rest = await stream.response.read()
    # Whoever asked for bookmarks may get a last one; nothing else happened.
    assert all(b"BOOKMARK" in line for line in rest.splitlines())


async def test_a_watch_can_show_metadata_only(api: Api) -> None:
    stream = await api.watch(api.secrets, accept=METADATA)
    await api.post(api.secrets, {"metadata": {"name": "s"}, "stringData": {"k": "hidden"}})
    event = await stream.next()
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert "data" not in event["object"]


async def test_a_table_watch_announces_its_columns_once(api: Api) -> None:
    await api.new_host("h1")
    await api.new_host("h2")
    stream = await api.watch(api.hosts, accept=TABLE)
    first, second = await stream.next(), await stream.next()
    assert first["object"]["kind"] == "Table"
    assert first["object"]["columnDefinitions"]
    assert not second["object"].get("columnDefinitions")
    assert second["object"]["rows"][0]["cells"][0] == "h2"


async def test_many_watchers_all_see_all(api: Api) -> None:
    start = await version_of(api)
    streams = [await api.watch(api.hosts, resourceVersion=start) for _ in range(20)]
    for number in range(10):
        await api.new_host(f"h{number}")
    wanted = [("ADDED", f"h{number}") for number in range(10)]
    assert all([await stream.names(10) == wanted for stream in streams])
