"""The sender against a receiver that misbehaves: nothing is lost, nothing blocks, nothing raises."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from push_receiver import Misbehaviour, PushReceiver, answers, hangs_up, stays_silent, talks_nonsense

from ingot_ironic.message import Event
from ingot_ironic.receiver import Address
from ingot_ironic.sender import Pace, Sender

QUICK = Pace(heartbeat=0.2, first_pause=0.01, longest_pause=0.05)
CALM = Pace(heartbeat=600, first_pause=0.01, longest_pause=0.05)
PATCHES = {"save_hook": True, "fast_key": False}

SenderFactory = Callable[..., Sender]


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[PushReceiver]:
    made = PushReceiver(tmp_path)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def sender_to(operator: PushReceiver) -> Iterator[SenderFactory]:
    made: list[Sender] = []

    def make(pace: Pace = CALM, timeout: float = 10.0, ca_file: Path | None = None) -> Sender:
        address = Address(operator.url, str(ca_file or operator.ca_file), str(operator.token_file), timeout)
        made.append(Sender(address, lambda: PATCHES, pace))
        return made[-1]

    yield make
    for sender in made:
        sender.stop()


def state(uuid: str, value: str) -> Event:
    return Event(uuid, f"ns~{uuid}", {"provision_state": value})


def wait_for_events(operator: PushReceiver, count: int) -> None:
    operator.wait_for(lambda: len(operator.events) >= count, f"{count} events")


def test_a_sender_says_hello_and_then_what_it_is_told(
    operator: PushReceiver, sender_to: SenderFactory
) -> None:
    sender = sender_to()
    sender.start()
    operator.wait_for(lambda: bool(operator.taken), "a hello")
    sender.tell(state("a", "verifying"))
    wait_for_events(operator, 1)
    hello, first = operator.taken
    assert hello == {"sender": sender.name, "first": 1, "gap": False, "patches": PATCHES, "events": []}
    assert first["first"] == 1
    assert first["events"] == [
        {"seq": 1, "uuid": "a", "name": "ns~a", "deleted": False, "fields": {"provision_state": "verifying"}}
    ]


def test_events_are_numbered_without_gaps_over_one_connection(
    operator: PushReceiver, sender_to: SenderFactory
) -> None:
    sender = sender_to()
    for number in range(20):
        sender.tell(state(f"n{number}", "available"))
        wait_for_events(operator, number + 1)
    assert [event["seq"] for event in operator.events] == list(range(1, 21))
    assert all(
        message["first"] == message["events"][0]["seq"] for message in operator.taken if message["events"]
    )
    assert operator.connections == 1


@pytest.mark.parametrize(
    "misbehaviour",
    [answers(500), answers(200), answers(302), answers(503, b"x" * 200_000), hangs_up, talks_nonsense],
    ids=["500", "200", "302", "long-503", "hangs-up", "nonsense"],
)
def test_what_was_not_taken_is_sent_again_unchanged(
    operator: PushReceiver, sender_to: SenderFactory, misbehaviour: Misbehaviour
) -> None:
    sender = sender_to()
    sender.tell(state("a", "deploying"))
    wait_for_events(operator, 1)
    before = len(operator.bodies)
    operator.script.extend([misbehaviour, misbehaviour])
    sender.tell(state("b", "active"))
    wait_for_events(operator, 2)
    tries = operator.bodies[before:]
    assert len(tries) >= 3
    assert len(set(tries)) == 1
    assert [event["seq"] for event in operator.events] == [1, 2]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_message_that_cannot_be_read_is_given_up_and_the_next_one_says_that_something_is_missing(
    operator: PushReceiver, sender_to: SenderFactory, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    sender = sender_to()
    sender.tell(state("a", "deploying"))
    wait_for_events(operator, 1)
    before = len(operator.bodies)
    operator.script.append(answers(status))
    sender.tell(state("b", "active"))
    # At once, and not at the next heartbeat, which is ten minutes away.
    operator.wait_for(lambda: any(message["gap"] for message in operator.taken), "a word of the gap")
    assert len(operator.bodies) == before + 2
    assert operator.taken[-1] | {"sender": ""} == {
        "sender": "",
        "first": 3,
        "gap": True,
        "patches": PATCHES,
        "events": [],
    }
    sender.tell(state("c", "active"))
    wait_for_events(operator, 2)
    assert [(event["uuid"], event["seq"]) for event in operator.events] == [("a", 1), ("c", 3)]
    assert f"answered {status}" in caplog.text


def test_a_token_that_is_no_token_is_not_shown(
    operator: PushReceiver, sender_to: SenderFactory, caplog: pytest.LogCaptureFixture
) -> None:
    right = operator.token.reveal()
    for wrong in ("hunter2\nhunter3", "", "hunter2ü"):
        caplog.clear()
        operator.token_file.write_text(wrong, encoding="utf-8")
        sender = sender_to()
        sender.tell(state("a", "active"))
        operator.wait_for(lambda: "does not hold a token" in caplog.text, "a word in the log")
        assert "hunter" not in caplog.text
        sender.stop()
    operator.token_file.write_text(right)
    sender_to().tell(state("a", "active"))
    wait_for_events(operator, 1)


def test_a_receiver_that_does_not_answer_costs_the_caller_nothing(
    operator: PushReceiver, sender_to: SenderFactory
) -> None:
    sender, go_on = sender_to(timeout=600), threading.Event()
    operator.script.append(stays_silent(go_on))
    sender.start()
    operator.wait_for(lambda: len(operator.bodies) == 1, "the silent exchange")
    for number in range(1000):
        sender.tell(state(f"n{number}", "active"))
    assert (len(operator.bodies), operator.taken) == (1, []), "all was told while the receiver was silent"
    go_on.set()
    wait_for_events(operator, 1000)
    assert [event["seq"] for event in operator.events] == list(range(1, 1001))


def test_a_receiver_that_never_answers_is_tried_again_on_a_new_connection(
    operator: PushReceiver, sender_to: SenderFactory
) -> None:
    sender, go_on = sender_to(timeout=0.3), threading.Event()
    operator.script.append(stays_silent(go_on))
    sender.tell(state("a", "active"))
    wait_for_events(operator, 1)
    assert operator.connections >= 2
    go_on.set()


def test_a_rotated_token_is_found_in_its_file(operator: PushReceiver, sender_to: SenderFactory) -> None:
    sender = sender_to(Pace(heartbeat=600, first_pause=600, longest_pause=600))
    sender.tell(state("a", "active"))
    wait_for_events(operator, 1)
    operator.rotate_token("another-token")
    sender.tell(state("b", "active"))
    wait_for_events(operator, 2)  # at once: a pause would last ten minutes


def test_a_token_that_is_wrong_for_now_is_tried_again_later(
    operator: PushReceiver, sender_to: SenderFactory
) -> None:
    right = operator.token.reveal()
    operator.token_file.write_text("wrong")
    sender = sender_to()
    sender.tell(state("a", "active"))
    operator.wait_for(lambda: len(operator.bodies) >= 3, "refusals")
    assert operator.taken == []
    operator.token_file.write_text(right)
    wait_for_events(operator, 1)


def test_a_connection_closed_while_idle_is_not_a_failure(
    operator: PushReceiver, sender_to: SenderFactory, caplog: pytest.LogCaptureFixture
) -> None:
    operator.close_after_each = True
    sender = sender_to(Pace(heartbeat=600, first_pause=600, longest_pause=600))
    for number in range(3):
        sender.tell(state(f"n{number}", "active"))
        wait_for_events(operator, number + 1)
    assert caplog.records == []


def test_a_receiver_that_appears_later_hears_what_was_told_meanwhile(
    operator: PushReceiver, sender_to: SenderFactory, caplog: pytest.LogCaptureFixture
) -> None:
    operator.stop()
    sender = sender_to()
    with caplog.at_level(logging.WARNING):
        sender.tell(state("a", "verifying"))
        operator.wait_for(lambda: bool(caplog.records), "a word in the log")
        sender.tell(state("a", "manageable"))
        operator.start()
        wait_for_events(operator, 1)
        operator.wait_for(lambda: "again" in caplog.text, "the good news in the log")
    assert operator.events[-1]["fields"] == {"provision_state": "manageable"}
    assert len(caplog.records) == 2, "one word when it begins, one when it ends"
    assert "manageable" not in caplog.text


def test_a_receiver_of_another_ca_gets_nothing(
    operator: PushReceiver, sender_to: SenderFactory, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = PushReceiver(tmp_path / "stranger")
    sender = sender_to(ca_file=stranger.ca_file)
    sender.tell(state("a", "active"))
    operator.wait_for(lambda: "CERTIFICATE_VERIFY_FAILED" in caplog.text, "a refusal in the log")
    assert operator.bodies == []


def test_files_that_are_missing_do_not_end_the_sender(
    operator: PushReceiver, sender_to: SenderFactory, caplog: pytest.LogCaptureFixture
) -> None:
    token = operator.token_file.read_text()
    operator.token_file.unlink()
    sender = sender_to()
    sender.tell(state("a", "active"))
    operator.wait_for(lambda: "No such file" in caplog.text, "a word in the log")
    operator.token_file.write_text(token)
    wait_for_events(operator, 1)


def test_silence_is_broken_by_empty_messages(operator: PushReceiver, sender_to: SenderFactory) -> None:
    sender_to(QUICK).start()
    operator.wait_for(lambda: len(operator.taken) >= 4, "heartbeats")
    assert operator.events == []
    assert {message["first"] for message in operator.taken} == {1}


FORKING = """
import json, os, sys, time
from ingot_ironic.message import Event
from ingot_ironic.receiver import Address
from ingot_ironic.sender import Sender
sender = Sender(Address(*sys.argv[1:4]), dict)
if os.fork() == 0:
    # The child says nothing by itself at first; it is heard all the same.
    print(json.dumps(sender.name), flush=True)
    time.sleep(600)
os.wait()
"""


def test_a_forked_worker_has_a_name_of_its_own_and_is_heard_before_it_has_anything_to_say(
    operator: PushReceiver,
) -> None:
    sources = str(Path(__file__).parents[3] / "ironic-plugin" / "src")
    master = subprocess.Popen(
        [sys.executable, "-c", FORKING, operator.url, str(operator.ca_file), str(operator.token_file)],
        env={"PYTHONPATH": sources},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert master.stdout is not None
    try:
        name = json.loads(master.stdout.readline())
        operator.wait_for(lambda: bool(operator.taken), "the worker's hello")
        assert {message["sender"] for message in operator.taken} == {name}
        assert f"-{master.pid}-" not in name
    finally:
        os.killpg(master.pid, signal.SIGKILL)
        master.wait()
        master.stdout.close()


FORKING_TWICE = """
import os, sys, threading
from ingot_ironic.message import Event
from ingot_ironic.receiver import Address
from ingot_ironic.sender import Sender
sender = Sender(Address(*sys.argv[1:4]), dict)
if os.fork() == 0:
    if os.fork() == 0:
        sender.tell(Event("a", "ns~a", {"provision_state": "active"}))
        sender.start()
        print([thread.name for thread in threading.enumerate()], flush=True)
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
"""


def test_what_a_worker_forks_says_nothing_and_starts_no_thread(operator: PushReceiver) -> None:
    sources = str(Path(__file__).parents[3] / "ironic-plugin" / "src")
    done = subprocess.run(
        [sys.executable, "-c", FORKING_TWICE, operator.url, str(operator.ca_file), str(operator.token_file)],
        env={"PYTHONPATH": sources},
        stdout=subprocess.PIPE,
        timeout=120,
        check=True,
    )
    assert done.stdout.decode().strip() == "['MainThread']"
    assert operator.events == []
