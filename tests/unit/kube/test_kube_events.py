"""The event recorder: thrifty, patient, never in the way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import pytest
from kube_scripted_api import WIDGET, ScriptedApi, Widget, hang_up, status

from ingot.api.meta import ObjectMeta, ObjectReference
from ingot.kube import Client, EventRecorder
from ingot.kube.similar import SimilarMessages

Eventually = Callable[[Callable[[], bool]], Awaitable[None]]


def widget(name: str = "one", namespace: str = "rack") -> Widget:
    return Widget(
        api_version="test.ingot.dev/v1",
        kind="Widget",
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"uid-of-{name}", resource_version="5"),
    )


def say(recorder: EventRecorder, message: str = "registered with the back end", **more) -> None:
    recorder.record(more.pop("about", widget()), type="Normal", reason="Registered", message=message, **more)


async def test_an_event_says_what_happened_to_whom_and_who_says_so(api: ScriptedApi, client: Client):
    related = ObjectReference(kind="Machine", name="m", namespace="rack")
    async with EventRecorder(client) as recorder:
        say(recorder, related=related)
    (event,) = api.events()
    assert event["metadata"]["namespace"] == "rack"
    assert event["metadata"]["name"].startswith("registered-")
    assert event["involvedObject"] == {
        "apiVersion": "test.ingot.dev/v1",
        "kind": "Widget",
        "name": "one",
        "namespace": "rack",
        "uid": "uid-of-one",
        "resourceVersion": "5",
    }
    assert (event["type"], event["reason"], event["message"]) == (
        "Normal",
        "Registered",
        "registered with the back end",
    )
    assert event["source"] == {"component": "metal3-baremetal-controller"}
    assert event["reportingComponent"] == "metal3.io/baremetal-controller"
    assert event["related"]["name"] == "m"
    assert event["count"] == 1
    assert datetime.fromisoformat(event["firstTimestamp"]) == datetime.fromisoformat(event["lastTimestamp"])


async def test_the_same_again_raises_the_count(api: ScriptedApi, client: Client, eventually: Eventually):
    async with EventRecorder(client) as recorder:
        say(recorder)
        await eventually(lambda: len(api.events()) == 1)
        say(recorder)
        say(recorder)
        await eventually(lambda: api.events()[0]["count"] == 3)
        say(recorder)
    assert [event["count"] for event in api.events()] == [4]


async def test_another_message_object_or_type_is_another_event(api: ScriptedApi, client: Client):
    async with EventRecorder(client) as recorder:
        say(recorder)
        say(recorder, "something else")
        say(recorder, about=widget("two"))
        recorder.record(widget(), type="Warning", reason="Registered", message="registered with the back end")
    assert len(api.events()) == 4


async def test_an_event_that_has_expired_is_made_anew(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    async with EventRecorder(client) as recorder:
        say(recorder)
        await eventually(lambda: len(api.events()) == 1)
        api.objects.clear()
        say(recorder)
        await eventually(lambda: len(api.events()) == 1)
        assert api.events()[0]["count"] == 1


async def test_events_about_cluster_wide_objects_live_in_default(api: ScriptedApi, client: Client):
    async with EventRecorder(client) as recorder:
        say(recorder, about=widget(namespace=""))
    assert api.events()[0]["metadata"]["namespace"] == "default"


async def test_a_server_that_is_away_for_a_while_gets_the_event_later(api: ScriptedApi, client: Client):
    api.faults += [status(503, "ServiceUnavailable"), hang_up]
    async with EventRecorder(client) as recorder:
        say(recorder)
    assert len(api.events()) == 1


async def test_an_event_whose_answer_was_lost_is_not_written_twice(api: ScriptedApi, client: Client):
    lost = asyncio.Event()

    async def lose_the_answer() -> None:
        if not lost.is_set():
            lost.set()
            # The server carries it out, but the client hears a failure.
            body = api.seen[-1].body
            api._store("events", widget().key._replace(name=body["metadata"]["name"]), body)
            raise RuntimeError("500 on purpose")

    api.before_answer = lose_the_answer
    async with EventRecorder(client) as recorder:
        say(recorder)
    assert len(api.events()) == 1
    assert len(api.requests("POST")) == 2


async def test_what_the_api_refuses_is_dropped_with_a_line_in_the_log(
    api: ScriptedApi, client: Client, caplog: pytest.LogCaptureFixture
):
    api.faults.append(status(403, "Forbidden", "namespace is being terminated"))
    async with EventRecorder(client) as recorder:
        say(recorder, "first")
        say(recorder, "second")
    assert [event["message"] for event in api.events()] == ["second"]
    assert "event Registered for rack/one is not recorded" in caplog.text


async def test_the_queue_is_bounded_and_recording_never_waits(
    api: ScriptedApi, client: Client, caplog: pytest.LogCaptureFixture
):
    hold = asyncio.Event()
    api.before_answer = hold.wait
    recorder = EventRecorder(client, drain=120, longest_queue=1000)
    for number in range(1200):
        say(recorder, f"event {number}", about=widget(f"w{number}"))
    assert caplog.text.count("1000 others wait to be written") == 1
    hold.set()
    api.before_answer = None
    await recorder.close()
    assert 1000 <= len(api.events()) <= 1008


async def test_events_of_many_objects_are_written_side_by_side_and_those_of_one_in_order(
    api: ScriptedApi, client: Client
):
    hold, under_way = asyncio.Event(), 0

    async def slowly() -> None:
        nonlocal under_way
        under_way += 1
        await hold.wait()

    api.before_answer = slowly
    async with EventRecorder(client) as recorder:
        for number in range(20):
            say(recorder, "hello", about=widget(f"w{number}"))
        async with asyncio.timeout(60):
            while under_way < 4:  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.01)
        for number in range(20):
            say(recorder, "hello", about=widget(f"w{number}"))
        hold.set()
        api.before_answer = None
    assert len(api.events()) == 20
    assert {event["count"] for event in api.events()} == {2}


async def much_asked(
    api: ScriptedApi, client: Client, eventually: Eventually
) -> tuple[asyncio.Event, list[asyncio.Task[Widget]]]:
    """Twelve requests that are not answered until the event is set."""
    hold = asyncio.Event()
    api.before_answer = hold.wait
    many = [asyncio.create_task(client.create(WIDGET, widget(f"made-{number}"))) for number in range(12)]
    await eventually(lambda: len(api.seen) == 12)
    return hold, many


async def test_while_much_is_asked_of_the_api_events_wait_but_for_warnings(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    hold, many = await much_asked(api, client, eventually)
    async with EventRecorder(client) as recorder:
        for number in range(20):
            say(recorder, "hello", about=widget(f"w{number}"))
        await eventually(lambda: len(api.seen) == 13)
        assert client.under_way == 13
        recorder.record(widget("burning"), type="Warning", reason="Fire", message="it is on fire")
        await eventually(lambda: len(api.seen) > 13)
        assert api.seen[13].body["reason"] == "Fire"
        hold.set()
        api.before_answer = None
        await asyncio.gather(*many)
        await eventually(lambda: len(api.events()) == 21)


async def test_a_desk_that_fills_up_is_emptied_whatever_else_is_asked_for(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    hold, many = await much_asked(api, client, eventually)
    async with EventRecorder(client, longest_queue=10) as recorder:
        for number in range(10):
            say(recorder, "hello", about=widget(f"w{number}"))
        await eventually(lambda: len(api.seen) > 13)
        hold.set()
        await asyncio.gather(*many)


async def test_closing_without_a_server_does_not_hang(api: ScriptedApi, client: Client):
    await api.stop()
    recorder = EventRecorder(client, drain=0.2)
    say(recorder)
    async with asyncio.timeout(60):
        await recorder.close()


async def test_a_closed_recorder_takes_nothing_and_does_not_raise(
    api: ScriptedApi, client: Client, caplog: pytest.LogCaptureFixture
):
    recorder = EventRecorder(client)
    await recorder.close()
    say(recorder)
    assert "closed" in caplog.text


async def test_a_very_long_message_is_cut(api: ScriptedApi, client: Client):
    async with EventRecorder(client) as recorder:
        say(recorder, "x" * 5000)
    assert len(api.events()[0]["message"]) == 1024


async def test_ever_new_words_for_one_matter_become_one_event(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    async with EventRecorder(client) as recorder:
        for attempt in range(10):
            say(recorder, f"attempt {attempt} failed")
        await eventually(lambda: len(api.events()) == 10)
        for attempt in range(10, 15):
            say(recorder, f"attempt {attempt} failed")
            await eventually(lambda attempt=attempt: any(str(attempt) in e["message"] for e in api.events()))
        # What is told apart stays apart: another object, and words that were there before.
        say(recorder, "attempt 12 failed", about=widget("two"))
        say(recorder, "attempt 3 failed")
    found = {event["message"]: event["count"] for event in api.events()}
    assert found["(combined from similar events): attempt 14 failed"] == 5
    assert found["attempt 12 failed"] == 1
    assert found["attempt 3 failed"] == 2
    assert len(api.events()) == 12


def test_words_are_counted_anew_after_a_quiet_while():
    similar: SimilarMessages[str] = SimilarMessages(most=2, window=100)
    assert [similar.is_one_too_many("a", word, 0) for word in ("one", "two", "three", "two")] == [
        False,
        False,
        True,
        False,
    ]
    assert similar.is_one_too_many("a", "four", 99)
    assert not similar.is_one_too_many("b", "four", 99)
    assert similar.is_one_too_many("a", "five", 150)
    assert not similar.is_one_too_many("a", "six", 300)
