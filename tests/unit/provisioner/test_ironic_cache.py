"""The node cache: whatever order events and answers come in, it ends with what is true."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingot.provisioner.ironic.cache import NodeCache
from ingot.provisioner.ironic.model import Node

A = Node(uuid="a", name="ns~a", provision_state="enroll")


def test_a_read_that_began_before_an_event_does_not_undo_it():
    cache = NodeCache()
    cache.learned(A, cache.moment())
    began = cache.moment()
    cache.pushed("a", "ns~a", {"provision_state": "active"})
    assert not cache.learned(A, began)
    assert cache.get("a").provision_state == "active"


def test_a_removed_node_is_not_brought_back_by_an_old_list():
    cache = NodeCache()
    cache.learned(A, cache.moment())
    began = cache.moment()
    cache.removed("a")
    cache.learned(A, began)
    assert cache.get("a") is None
    assert cache.by_name("ns~a") is None


def test_a_list_removes_what_it_does_not_hold_but_not_what_came_after_it_began():
    cache = NodeCache()
    cache.learned(A, cache.moment())
    began = cache.moment()
    late = Node(uuid="b", name="ns~b")
    cache.learned(late, cache.moment())
    assert cache.listed(set(), began) == [A]
    assert cache.by_name("ns~b") == late


def test_an_event_without_fields_makes_the_entry_doubted_until_it_is_read():
    cache = NodeCache()
    cache.learned(A, cache.moment())
    cache.pushed("a", "ns~a", {})
    assert cache.is_doubted("a")
    cache.learned(A, cache.moment())
    assert not cache.is_doubted("a")


def test_an_event_that_shows_ironic_at_work_ends_the_doubt_and_one_that_shows_it_at_rest_may_be_old():
    cache = NodeCache()
    cache.learned(A, cache.moment())
    cache.doubt("a")
    cache.pushed("a", "ns~a", {"provision_state": "enroll"})
    assert cache.is_doubted("a")
    cache.pushed("a", "ns~a", {"provision_state": "verifying"})
    assert not cache.is_doubted("a")
    cache.doubt("a")
    cache.pushed("a", "ns~a", {"provision_state": "manageable", "target_power_state": "power on"})
    assert not cache.is_doubted("a")


def test_a_read_holds_until_something_is_heard_of_the_node_or_asked_of_it():
    cache = NodeCache()
    for spoil in (
        lambda: cache.pushed("a", "ns~a", {"provision_state": "active"}),
        lambda: cache.pushed("a", "ns~a", {}),
        lambda: cache.doubt("a"),
        cache.doubt_all,
        lambda: cache.removed("a"),
    ):
        began = cache.moment()
        cache.learned(A, began)
        assert cache.is_as_read("a", began)
        assert cache.uuid_of("ns~a") == cache.uuid_of("a") == "a"
        spoil()
        assert not cache.is_as_read("a", began)
    assert cache.uuid_of("ns~a") == ""


def test_a_read_that_began_before_something_was_asked_does_not_say_what_came_of_it():
    cache = NodeCache()
    cache.learned(A, cache.moment())
    began = cache.moment()
    cache.doubt("a")
    cache.learned(A, began)
    assert cache.is_doubted("a")
    cache.learned(A, cache.moment())
    assert not cache.is_doubted("a")


def test_an_event_with_a_field_of_the_wrong_kind_makes_the_entry_doubted():
    cache = NodeCache()
    cache.learned(A, cache.moment())
    cache.pushed("a", None, {"provision_state": 7})
    assert cache.get("a") == A
    assert cache.is_doubted("a")


def test_a_read_older_than_an_event_about_an_unknown_node_is_doubted():
    cache = NodeCache()
    began = cache.moment()
    assert cache.pushed("a", "ns~a", {"provision_state": "active"}) is None
    cache.learned(A, began)
    assert cache.is_doubted("a")


def test_a_renamed_node_is_found_by_its_new_name_only():
    cache = NodeCache()
    cache.learned(A, cache.moment())
    cache.pushed("a", "ns~new", {"provision_state": "active"})
    assert cache.by_name("ns~a") is None
    assert cache.by_name("ns~new").uuid == "a"


# The law


@dataclass
class World:
    """Ironic, the line its events travel on, reads that are under way, and the cache at the other end."""

    truth: dict[str, Node] = field(default_factory=dict)
    line: list[tuple[str, Node | None]] = field(default_factory=list)
    reads: list[tuple[int, str, Node | None]] = field(default_factory=list)
    lists: list[tuple[int, dict[str, Node]]] = field(default_factory=list)
    cache: NodeCache = field(default_factory=NodeCache)

    def save(self, uuid: str, state: str) -> None:
        self.truth[uuid] = Node(uuid=uuid, name=f"ns~{uuid}", provision_state=state)
        self.line.append((uuid, self.truth[uuid]))

    def delete(self, uuid: str) -> None:
        if self.truth.pop(uuid, None):
            self.line.append((uuid, None))

    def deliver(self) -> None:
        if self.line:
            uuid, node = self.line.pop(0)
            if node is None:
                self.cache.removed(uuid)
            else:
                self.cache.pushed(uuid, node.name, {"provision_state": node.provision_state})

    def begin_read(self, uuid: str) -> None:
        self.reads.append((self.cache.moment(), uuid, self.truth.get(uuid)))

    def end_read(self) -> None:
        if self.reads:
            began, uuid, node = self.reads.pop(0)
            if node is None:
                self.cache.removed(uuid)
            else:
                self.cache.learned(node, began)

    def begin_list(self) -> None:
        self.lists.append((self.cache.moment(), dict(self.truth)))

    def end_list(self) -> None:
        if self.lists:
            began, nodes = self.lists.pop(0)
            for node in nodes.values():
                self.cache.learned(node, began)
            self.cache.listed(set(nodes), began)

    def believed(self) -> dict[str, Node]:
        return {node.uuid: node for node in self.cache}


UUIDS = st.sampled_from(["a", "b", "c"])
STATES = st.sampled_from(["enroll", "manageable", "active"])
ACTIONS = st.one_of(
    st.tuples(st.just("save"), UUIDS, STATES),
    st.tuples(st.just("delete"), UUIDS),
    st.tuples(st.just("begin_read"), UUIDS),
    st.tuples(st.sampled_from(["deliver", "end_read", "begin_list", "end_list"])),
)


def lived(actions: list[tuple]) -> World:
    world = World()
    for name, *arguments in actions:
        getattr(world, name)(*arguments)
    while world.line:
        world.deliver()
    while world.reads:
        world.end_read()
    while world.lists:
        world.end_list()
    return world


@settings(max_examples=200, deadline=None)
@given(st.lists(ACTIONS, max_size=40))
def test_after_any_history_one_list_makes_the_cache_true(actions):
    world = lived(actions)
    world.begin_list()
    world.end_list()
    assert world.believed() == world.truth


@settings(max_examples=200, deadline=None)
@example([("save", "c", "manageable"), ("begin_read", "c"), ("begin_read", "c"), ("save", "c", "enroll")])
@given(st.lists(ACTIONS, max_size=40))
def test_what_is_known_and_not_doubted_is_true_once_all_events_have_arrived(actions):
    world = lived(actions)
    for uuid, node in world.believed().items():
        if not world.cache.is_doubted(uuid):
            assert node == world.truth.get(uuid)


@settings(max_examples=200, deadline=None)
@given(st.lists(ACTIONS, max_size=40))
def test_the_index_of_names_agrees_with_the_nodes(actions):
    cache = lived(actions).cache
    for node in cache:
        assert cache.by_name(node.name) == node
