"""The informer against a server that does everything a network and a restart can do."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web
from kube_scripted_api import WIDGET, ScriptedApi, Widget, status

from ingot.api.meta import Key, PartialObjectMetadata
from ingot.kube import Backoff, Change, Client, Informer, metadata_of

Eventually = Callable[[Callable[[], bool]], Awaitable[None]]
QUICK = Backoff(first=0.01, limit=0.1)


def by_size(widget: Widget) -> Iterable[str]:
    return [str(widget.spec.size)]


@asynccontextmanager
async def running(informer: Informer) -> AsyncIterator[Informer]:
    task = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(60):
            await informer.synced()
        yield informer
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), task.exception()


@pytest.fixture
async def informer(api: ScriptedApi, client: Client) -> AsyncIterator[Informer[Widget]]:
    api.put("one", 1)
    api.put("two", 2)
    async with running(Informer(client, WIDGET, backoff=QUICK, indexes={"size": by_size})) as made:
        yield made


def sizes(informer: Informer[Widget]) -> dict[str, int]:
    return {item.metadata.name: item.spec.size for item in informer.items()}


async def test_the_first_list_fills_the_cache_and_is_told_as_initial(api: ScriptedApi, client: Client):
    api.put("one", 1)
    informer = Informer(client, WIDGET)
    told: list[Change[Widget]] = []
    informer.subscribe(told.append)
    async with running(informer):
        found = informer.get(Key("default", "one"))
        assert found is not None
        assert found.spec.size == 1
        assert informer.get(Key("default", "two")) is None
        assert [(change.key.name, change.old, change.initial) for change in told] == [("one", None, True)]


async def test_changes_after_it_are_told_with_old_and_new(
    api: ScriptedApi, informer: Informer[Widget], eventually: Eventually
):
    told: list[Change[Widget]] = []
    informer.subscribe(told.append)
    told.clear()
    api.put("three", 3)
    api.put("one", 11)
    api.remove("two")
    await eventually(lambda: len(told) == 3)
    assert [
        (
            change.key.name,
            change.old and change.old.spec.size,
            change.new and change.new.spec.size,
            change.initial,
        )
        for change in told
    ] == [("three", None, 3, False), ("one", 1, 11, False), ("two", 2, None, False)]


async def test_who_subscribes_late_is_told_what_is_known(informer: Informer[Widget]):
    told: list[Change[Widget]] = []
    informer.subscribe(told.append)
    assert {(change.key.name, change.initial) for change in told} == {("one", True), ("two", True)}


async def test_a_subscriber_that_fails_costs_the_others_nothing(
    api: ScriptedApi, informer: Informer[Widget], eventually: Eventually, caplog: pytest.LogCaptureFixture
):
    def broken(change: Change[Widget]) -> None:
        raise ValueError("a bug")

    told: list[Change[Widget]] = []
    informer.subscribe(broken)
    informer.subscribe(told.append)
    told.clear()
    api.put("three")
    await eventually(lambda: len(told) == 1)
    assert "a subscriber failed on default/three" in caplog.text


async def test_indexes_follow_the_objects(
    api: ScriptedApi, informer: Informer[Widget], eventually: Eventually
):
    assert [item.metadata.name for item in informer.by_index("size", "1")] == ["one"]
    api.put("two", 1)
    await eventually(lambda: len(informer.by_index("size", "1")) == 2)
    assert informer.by_index("size", "2") == []
    api.remove("one")
    await eventually(lambda: [item.metadata.name for item in informer.by_index("size", "1")] == ["two"])


async def test_an_informer_of_metadata_never_sees_values(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    api.put("one", 1)
    informer = Informer(client, metadata_of(WIDGET))
    async with running(informer):
        api.put("two", 2)
        await eventually(lambda: informer.get(Key("default", "two")) is not None)
        assert all(type(item) is PartialObjectMetadata for item in informer.items())
    assert all("as=PartialObjectMetadata" in seen.headers["Accept"] for seen in api.seen)


@pytest.mark.parametrize("how", ["clean", "abort", "midline"])
async def test_a_watch_that_was_cut_goes_on_without_losing_events(
    api: ScriptedApi, informer: Informer[Widget], eventually: Eventually, how: str
):
    for round_number in range(3):
        await eventually(lambda: bool(api.streams))
        api.cut(how)
        api.put("one", 100 + round_number)
        api.put(f"new-{round_number}")
        await eventually(lambda: sizes(informer) == api.sizes())
    assert api.lists == 1


async def test_a_server_that_was_away_is_followed_again(
    api: ScriptedApi, informer: Informer[Widget], eventually: Eventually
):
    await api.stop()
    api.put("one", 5)
    api.remove("two")
    await eventually(lambda: "no connection" in informer.trouble)
    await api.start()
    await eventually(lambda: sizes(informer) == {"one": 5})
    await eventually(lambda: informer.trouble == "")


@pytest.mark.parametrize("as_event", [True, False])
async def test_forgotten_history_leads_to_a_list_that_tells_the_missed_deletes(
    api: ScriptedApi, informer: Informer[Widget], eventually: Eventually, as_event: bool
):
    told: list[Change[Widget]] = []
    informer.subscribe(told.append)
    told.clear()
    api.gone_as_event = as_event
    api.cut()
    api.remove("one")
    api.put("two", 22)
    api.forget()
    await eventually(lambda: sizes(informer) == {"two": 22})
    assert {(change.key.name, change.new is None, change.initial) for change in told} == {
        ("one", True, False),
        ("two", False, False),
    }


async def test_what_a_new_list_shows_unchanged_is_not_told_again(
    api: ScriptedApi, informer: Informer[Widget], eventually: Eventually
):
    told: list[Change[Widget]] = []
    informer.subscribe(told.append)
    told.clear()
    api.cut()
    api.version += 5
    api.forget()
    await eventually(lambda: api.lists == 2)
    api.put("three")
    await eventually(lambda: bool(told))
    assert [change.key.name for change in told] == ["three"]


async def test_a_database_that_began_anew_is_believed(
    api: ScriptedApi, informer: Informer[Widget], eventually: Eventually
):
    api.begin_anew()
    api.put("one", 77)
    await eventually(lambda: sizes(informer) == {"one": 77})


async def test_a_bookmark_spares_the_new_list(
    api: ScriptedApi, informer: Informer[Widget], eventually: Eventually
):
    await eventually(lambda: bool(api.streams))
    api.version += 50
    api.bookmark()
    await eventually(lambda: informer.version == str(api.version))
    api.cut()
    api.forget()
    await eventually(lambda: len(api.requests(watch=True)) >= 2)
    api.put("three", 3)
    await eventually(lambda: sizes(informer) == api.sizes())
    assert api.lists == 1


async def test_lines_of_a_megabyte_arrive_whole(
    api: ScriptedApi, informer: Informer[Widget], eventually: Eventually
):
    for number in range(5):
        api.put("one", number + 10, status={"inventory": "x" * (300_000 * (number + 1))})
    await eventually(lambda: sizes(informer)["one"] == 14)
    assert api.lists == 1


async def test_a_connection_that_died_without_a_word_is_replaced(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    api.put("one", 1)
    informer = Informer(client, WIDGET, backoff=QUICK, watch_seconds=1, silence=0.2)
    async with running(informer):
        await eventually(lambda: bool(api.streams))
        # The server keeps the connection open, never says a word on it, and never ends it.
        api.streams.clear()
        api.put("one", 2)
        await eventually(lambda: sizes(informer) == {"one": 2})


async def test_a_server_that_does_not_answer_a_watch_is_asked_again(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    informer = Informer(client, WIDGET, backoff=QUICK, watch_seconds=1, silence=0.2)
    async with running(informer):
        api.mute = True
        api.cut()
        await eventually(lambda: "keeps still" in informer.trouble)
        api.mute = False
        api.put("one", 2)
        await eventually(lambda: sizes(informer) == {"one": 2})


async def test_refusals_are_told_once_and_tried_until_they_end(
    api: ScriptedApi, client: Client, eventually: Eventually, caplog: pytest.LogCaptureFixture
):
    api.faults += [status(403, "Forbidden", "widgets is forbidden: User cannot list")] * 4
    informer = Informer(client, WIDGET, backoff=QUICK)
    async with running(informer):
        api.put("one", 2)
        await eventually(lambda: sizes(informer) == {"one": 2})
    assert caplog.text.count("cannot list") == 1


async def test_a_kind_that_the_server_does_not_know_is_said_to_be_missing(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    api.faults.append(status(404, "NotFound", "the server could not find the requested resource"))
    api.faults.append(status(404, "NotFound", "the server could not find the requested resource"))
    informer = Informer(client, WIDGET, backoff=Backoff(first=0.2, limit=0.2))
    task = asyncio.create_task(informer.run())
    await eventually(lambda: "Is the CustomResourceDefinition of the kind installed?" in informer.trouble)
    await eventually(lambda: informer.trouble == "")
    task.cancel()
    await asyncio.wait([task])


async def test_a_server_that_asks_for_time_is_given_it(api: ScriptedApi, client: Client):
    async def later(request: web.Request) -> web.Response:
        asked.append(asyncio.get_running_loop().time())
        return await status(429, "TooManyRequests", "starting", Retry_After="1")(request)

    asked: list[float] = []
    api.faults.append(later)
    async with running(Informer(client, WIDGET, backoff=Backoff(first=0.001, limit=0.5), streamed_list=30)):
        waited = asyncio.get_running_loop().time() - asked[0]
    # Also where that is longer than the longest wait of our own.
    assert waited >= 1


async def test_an_object_that_turns_unreadable_leaves_the_cache_until_it_is_mended(
    api: ScriptedApi, informer: Informer[Widget], eventually: Eventually, caplog: pytest.LogCaptureFixture
):
    api.put("one", spec={"size": "large"})
    await eventually(lambda: set(sizes(informer)) == {"two"})
    assert "Widget default/one does not have the shape" in caplog.text
    api.put("one", 3)
    await eventually(lambda: sizes(informer) == {"one": 3, "two": 2})


async def test_many_pages_are_listed_and_then_followed(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    api.streams_lists = "refused"
    for number in range(1100):
        api.put(f"w{number:04}", number)
    # Things change between two pages, behind the list's back.
    api.after_page = lambda: api.put("w0003", api.version)
    async with running(Informer(client, WIDGET, backoff=QUICK)) as informer:
        api.after_page = None
        await eventually(lambda: sizes(informer) == api.sizes())
    assert len(api.requests("GET", watch=False)) == 3
    assert api.lists == 2


async def test_pages_that_expire_are_replaced_by_one_list(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    api.streams_lists = "refused"
    for number in range(600):
        api.put(f"w{number:04}", number)
    api.after_page = api.page_tokens.clear
    async with running(Informer(client, WIDGET, backoff=QUICK)) as informer:
        assert len(list(informer.items())) == 600


class Bulky(Widget):
    """A widget with a part that stays undecoded, and so holds on to the bytes around it until it is told not to."""

    status: msgspec.Raw = msgspec.Raw(b"{}")
    compacted: bool = False

    def compact(self) -> Bulky:
        return msgspec.structs.replace(self, status=self.status.copy(), compacted=True)


async def test_an_undecoded_part_does_not_keep_the_bytes_around_it_alive(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    api.put("listed", status={"inventory": "x"})
    informer = Informer(client, dataclasses.replace(WIDGET, type=Bulky), backoff=QUICK)
    async with running(informer):
        api.put("watched", status={"inventory": "y"})
        await eventually(lambda: informer.get(Key("default", "watched")) is not None)
        found = {item.metadata.name: msgspec.json.decode(item.status) for item in informer.items()}
        assert found == {"listed": {"inventory": "x"}, "watched": {"inventory": "y"}}
        assert all(item.compacted for item in informer.items())


# Lists as streams


async def test_a_list_is_streamed_and_the_same_stream_goes_on(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    for number in range(1100):
        api.put(f"w{number:04}", number)
    informer = Informer(client, WIDGET, backoff=QUICK)
    told: list[Change[Widget]] = []
    informer.subscribe(told.append)
    async with running(informer):
        assert sizes(informer) == api.sizes()
        assert len(told) == 1100
        assert all(change.initial for change in told)
        assert informer.version == str(api.version)
        api.put("w0003", -1)
        await eventually(lambda: sizes(informer)["w0003"] == -1)
        assert not told[-1].initial
    assert len(api.seen) == 1
    assert api.seen[0].query["resourceVersionMatch"] == "NotOlderThan"


async def test_what_changes_while_a_list_is_streamed_belongs_to_it(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    def meanwhile() -> None:
        api.remove("one")
        api.put("two", 22)
        api.put("three", 3)

    api.put("one", 1)
    api.put("two", 2)
    api.while_streaming = meanwhile
    async with running(Informer(client, WIDGET, backoff=QUICK)) as informer:
        assert sizes(informer) == {"two": 22, "three": 3}
        api.while_streaming = None
        # Forgotten history: what the second stream shows and takes back is not told as there.
        api.while_streaming = lambda: api.remove("two")
        api.forget()
        api.version += 1
        api.forget()
        api.cut()
        await eventually(lambda: sizes(informer) == {"three": 3})


@pytest.mark.parametrize("how", ["refused", "ignored"])
async def test_a_server_that_does_not_stream_lists_is_asked_for_pages(
    api: ScriptedApi, client: Client, eventually: Eventually, how: str
):
    api.streams_lists = how
    for number in range(600):
        api.put(f"w{number:04}", number)
    informer = Informer(client, WIDGET, backoff=QUICK, streamed_list=0.5)
    async with running(informer):
        assert sizes(informer) == api.sizes()
        api.remove("w0001")
        api.forget()
        api.cut()
        await eventually(lambda: sizes(informer) == api.sizes())
        await eventually(lambda: informer.trouble == "")
        streamed = [seen for seen in api.seen if "sendInitialEvents" in seen.query]
    assert len(streamed) == 1


async def test_a_streamed_list_that_breaks_is_taken_in_pages_and_the_next_is_streamed_again(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    async def broken(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(
            b'{"type":"ADDED","object":{"metadata":{"name":"ghost","namespace":"default"}}}\n'
        )
        assert request.transport is not None
        request.transport.abort()
        return response

    api.put("one", 1)
    api.faults.append(broken)
    async with running(Informer(client, WIDGET, backoff=QUICK)) as informer:
        await eventually(lambda: sizes(informer) == {"one": 1})
        api.put("two", 2)
        api.forget()
        api.cut()
        await eventually(lambda: sizes(informer) == api.sizes())
        await eventually(lambda: sum("sendInitialEvents" in seen.query for seen in api.seen) == 2)


async def test_a_server_that_keeps_still_is_asked_again_in_pages(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    api.put("one", 1)
    api.mute = True
    informer = Informer(client, WIDGET, backoff=QUICK, streamed_list=0.2)
    task = asyncio.create_task(informer.run())
    await eventually(lambda: len(api.seen) == 2)
    api.mute = False
    task.cancel()
    await asyncio.wait([task])
    assert "sendInitialEvents" not in api.seen[1].query


# Selections


async def test_an_informer_hands_its_selection_on_to_all_that_it_asks(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    where = {"namespace": "rack-3", "labels": "a=b", "fields": "metadata.name!=x"}
    async with running(Informer(client, WIDGET, **where)):
        api.cut()
        await eventually(lambda: len(api.seen) == 3)
    async with running(Informer(client, WIDGET, streamed_list=0, **where)):
        pass
    for seen in api.seen:
        assert seen.path == "/apis/test.ingot.dev/v1/namespaces/rack-3/widgets"
        assert (seen.query["labelSelector"], seen.query["fieldSelector"]) == ("a=b", "metadata.name!=x")


# A history that is younger than ours


@pytest.mark.parametrize("told", [True, False])
async def test_a_restored_backup_is_believed_and_newer_entries_are_dropped(
    api: ScriptedApi, informer: Informer[Widget], eventually: Eventually, told: bool
):
    api.too_new_is_told = told
    restore = api.backup()
    for size in range(20):
        api.put("one", 100 + size)
    api.put("late", 1)
    await eventually(lambda: sizes(informer) == api.sizes())
    restore()
    await eventually(lambda: sizes(informer) == {"one": 1, "two": 2})
    # And what happens now, at versions that were used before, is followed.
    api.put("one", 7)
    await eventually(lambda: sizes(informer) == {"one": 7, "two": 2})


# Our own writes


async def test_the_answer_to_our_own_write_is_in_the_cache_at_once(
    api: ScriptedApi, client: Client, informer: Informer[Widget], eventually: Eventually
):
    told: list[Change[Widget]] = []
    informer.subscribe(told.append)
    told.clear()
    written = await client.patch(WIDGET, Key("default", "one"), {"spec": {"size": 9}})
    informer.observe(written)
    assert sizes(informer)["one"] == 9
    api.put("three")
    await eventually(lambda: "three" in sizes(informer))
    # Its echo in the watch is not told a second time.
    assert [change.key.name for change in told] == ["one", "three"]


async def test_older_events_do_not_undo_our_own_write(
    api: ScriptedApi, client: Client, informer: Informer[Widget], eventually: Eventually
):
    api.streams, held = [], api.streams
    for size in (50, 51, 52):
        api.put("one", size)
    informer.observe(await client.patch(WIDGET, Key("default", "one"), {"spec": {"size": 99}}))
    seen: list[int] = []
    informer.subscribe(lambda change: seen.append(change.new.spec.size if change.new else -1))
    seen.clear()
    api.streams = held
    api.put("two", 3)
    await eventually(lambda: sizes(informer)["two"] == 3)
    assert seen == [3]
    assert sizes(informer)["one"] == 99


async def test_the_answer_to_a_write_does_not_bring_back_what_was_deleted_since(
    api: ScriptedApi, client: Client, informer: Informer[Widget], eventually: Eventually
):
    written = await client.patch(WIDGET, Key("default", "one"), {"spec": {"size": 9}})
    api.remove("one")
    await eventually(lambda: "one" not in sizes(informer))
    informer.observe(written)
    assert "one" not in sizes(informer)


async def test_taking_off_the_last_finalizer_removes_the_entry(
    api: ScriptedApi, client: Client, informer: Informer[Widget], eventually: Eventually
):
    marked = {"deletionTimestamp": "2026-11-15T00:00:00Z", "deletionGracePeriodSeconds": 0}
    api.put("one", 1, metadata={**marked, "finalizers": ["x"]})
    await eventually(lambda: bool((one := informer.get(Key("default", "one"))) and one.metadata.finalizers))
    informer.observe(await client.patch(WIDGET, Key("default", "one"), {"metadata": {"finalizers": None}}))
    assert informer.get(Key("default", "one")) is None
