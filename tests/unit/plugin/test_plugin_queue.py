"""The events that wait: one for each node, bounded, and honest about what was dropped."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ingot_ironic.message import Event
from ingot_ironic.queue import EventQueue

NOW = 0.0


def test_changes_of_one_node_become_one_event() -> None:
    queue = EventQueue()
    queue.put(Event("a", "ns~a", {"provision_state": "verifying", "power_state": None}))
    queue.put(Event("b", "ns~b", {"provision_state": "active"}))
    queue.put(Event("a", "ns~a", {"provision_state": "manageable"}))
    batch = queue.take(NOW)
    assert [event.uuid for event in batch.events] == ["a", "b"]
    assert batch.events[0].fields == {"provision_state": "manageable", "power_state": None}
    assert queue.take(NOW).events == ()


def test_a_wish_to_look_again_outlives_fields_that_come_before_or_after() -> None:
    fields, look = Event("a", "n", {"power_state": "power on"}), Event("a", None)
    assert look.after(fields) == Event("a", "n", None)
    assert fields.after(look) == Event("a", "n", None)


def test_a_deleted_node_is_deleted_whatever_was_said_before() -> None:
    gone = Event("a", None, deleted=True)
    assert gone.after(Event("a", "n", {"power_state": "power on"})) == Event("a", "n", None, deleted=True)


def test_a_node_made_again_under_the_same_uuid_is_looked_at() -> None:
    again = Event("a", "n", {"provision_state": "enroll"}).after(Event("a", "n", deleted=True))
    assert again == Event("a", "n", None, deleted=False)


def test_too_many_nodes_drop_the_oldest_and_say_so_once() -> None:
    queue = EventQueue(room=3)
    for uuid in "abcde":
        queue.put(Event(uuid, None, {"health": "OK"}))
    first = queue.take(NOW)
    assert ("".join(event.uuid for event in first.events), first.gap) == ("cde", True)
    queue.put(Event("f"))
    assert queue.take(NOW).gap is False


def test_a_batch_is_bounded_and_the_rest_follows() -> None:
    queue = EventQueue(batch_size=2)
    for uuid in "abc":
        queue.put(Event(uuid))
    assert [len(queue.take(NOW).events) for _ in range(3)] == [2, 1, 0]


puts = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(["x", "y", "z"]), st.integers(0, 9)), max_size=40
)


@settings(deadline=None)
@given(puts=puts, room=st.integers(1, 6), batch_size=st.integers(1, 4))
def test_who_hears_all_batches_knows_the_last_value_of_everything_unless_told_of_a_gap(
    puts: list[tuple[str, str, int]], room: int, batch_size: int
) -> None:
    queue = EventQueue(room=room, batch_size=batch_size)
    truth: dict[tuple[str, str], int] = {}
    known: dict[tuple[str, str], int] = {}
    gap = False

    def hear() -> int:
        nonlocal gap
        batch = queue.take(NOW)
        gap = gap or batch.gap
        for event in batch.events:
            known.update({(event.uuid, field): value for field, value in (event.fields or {}).items()})
        return len(batch.events)

    for number, (uuid, field, value) in enumerate(puts):
        truth[uuid, field] = value
        queue.put(Event(uuid, None, {field: value}))
        if number % 7 == 6:
            hear()
    while hear():
        pass
    assert gap or known == truth
