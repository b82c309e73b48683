"""Who belongs to a MachineSet, who goes first, what new machines are called, and what the status says: rules and laws."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.core import Node
from ingot.api.machine import BareMetalMachineProviderSpec, Machine, MachineSet
from ingot.machines.demands import UnusableSelector
from ingot.machines.machineset.autoscaling import Unclear, hosts_for, hosts_wanted
from ingot.machines.machineset.counting import counted, is_well, status_patch
from ingot.machines.machineset.members import (
    joining,
    leaving,
    new_machine,
    sorted_out,
    too_many,
)
from ingot.machines.machineset.naming import NUMBERS, Numbers, name_of, noted, numbers_of, plan
from ingot.machines.machineset.selecting import members_of, selection, text_of

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
LABELS = {"set": "w"}


def made(type_: type[Any], body: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body), type=type_)


def a_set(**spec: Any) -> MachineSet:
    body = {
        "metadata": {"name": "workers", "namespace": "m", "uid": "set-1", "generation": 4},
        "spec": {
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}},
            **spec,
        },
    }
    found: MachineSet = made(MachineSet, body)
    return found


def owner(uid: str, *, controller: bool = True) -> dict[str, Any]:
    return {
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineSet",
        "name": "any",
        "uid": uid,
        "controller": controller,
    }


def machine(name: str = "m1", *, status: dict[str, Any] | None = None, **metadata: Any) -> Machine:
    body = {
        "metadata": {"name": name, "namespace": "m", "uid": f"uid-{name}", "labels": LABELS, **metadata},
        "status": status or {},
    }
    found: Machine = made(Machine, body)
    return found


def node(*, ready: bool = True, since: datetime | None = NOON) -> Node:
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": since}
    found: Node = made(Node, {"metadata": {"name": "n"}, "status": {"conditions": [condition]}})
    return found


# Selectors


@pytest.mark.parametrize(
    ("selector", "labels", "fits"),
    [
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, {"a": "2"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {"a": "1"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": ""}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {"a": ""}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {"b": ""}, True),
    ],
)
def test_a_selector_means_what_it_means_everywhere(
    selector: dict[str, Any], labels: dict[str, str], fits: bool
) -> None:
    assert selection(a_set(selector=selector).spec.selector, path="spec.selector")(labels) is fits


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"selector": {}}, "every machine in the namespace"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "in", "values": ["1"]}]}}, "'in'"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "at least one value"),
        ({"selector": {"matchLabels": {"a b": "1"}}}, "no label can have this name"),
        ({"selector": {"matchLabels": {"set": "other"}}}, "does not fit the labels"),
    ],
)
def test_a_selector_that_cannot_be_used_is_refused_in_a_sentence(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(UnusableSelector, match=words):
        members_of(a_set(**spec))


def test_a_selector_can_be_said_in_the_words_of_kubectl() -> None:
    found = a_set(
        selector={
            "matchLabels": {"b": "2", "a": "1"},
            "matchExpressions": [
                {"key": "c", "operator": "In", "values": ["y", "x"]},
                {"key": "d", "operator": "NotIn", "values": ["z"]},
                {"key": "e", "operator": "Exists"},
                {"key": "f", "operator": "DoesNotExist"},
            ],
        }
    )
    assert text_of(found.spec.selector) == "a=1,b=2,c in (x,y),d notin (z),e,!f"


# Who belongs


@pytest.mark.parametrize(
    ("metadata", "place"),
    [
        ({"ownerReferences": [owner("set-1")]}, "ours"),
        ({"ownerReferences": [owner("set-1")], "labels": {}}, "strays"),
        ({}, "orphans"),
        ({"ownerReferences": [owner("someone", controller=False)]}, "orphans"),
        ({"labels": {}}, None),
        ({"ownerReferences": [owner("set-2")]}, None),
        ({"ownerReferences": [owner("set-1")], "deletionTimestamp": NOON}, None),
        ({"ownerReferences": [owner("set-1")], "namespace": "other"}, None),
    ],
)
def test_a_machine_is_ours_joins_leaves_or_is_none_of_our_business(
    metadata: dict[str, Any], place: str | None
) -> None:
    found = sorted_out([machine(**metadata)], a_set(), members_of(a_set()))
    places = {name for name in ("ours", "orphans", "strays") if getattr(found, name)}
    assert places == ({place} if place else set())


def test_other_owners_of_a_machine_stay_when_it_joins_and_when_it_leaves() -> None:
    other = owner("someone", controller=False)
    joined = joining(machine(ownerReferences=[other]), a_set())["metadata"]["ownerReferences"]
    assert [(one["uid"], one.get("controller")) for one in joined] == [("someone", False), ("set-1", True)]
    left = leaving(machine(ownerReferences=joined), a_set())["metadata"]["ownerReferences"]
    assert left == [other]


# Who goes first


def at(minute: int) -> dict[str, Any]:
    return {"creationTimestamp": NOON + timedelta(minutes=minute)}


def first(policy: str | None, *machines: Machine, ill: frozenset[str] = frozenset()) -> list[str]:
    found = too_many(
        machines, len(machines), policy=policy, is_well=lambda machine: machine.metadata.name not in ill
    )
    return [machine.metadata.name for machine in found]


@pytest.mark.parametrize(
    ("policy", "order"),
    [(None, ["c", "b", "a"]), ("Newest", ["c", "b", "a"]), ("Oldest", ["a", "b", "c"])],
)
def test_the_policy_says_whether_the_newest_or_the_oldest_go_first(
    policy: str | None, order: list[str]
) -> None:
    assert first(policy, machine("b", **at(2)), machine("a", **at(1)), machine("c", **at(3))) == order


@pytest.mark.parametrize("policy", [None, "Newest", "Oldest", "Random"])
@pytest.mark.parametrize("mark", ["machine.openshift.io/delete-machine", "cluster.x-k8s.io/delete-machine"])
def test_who_is_marked_goes_first_and_who_is_not_well_next(policy: str | None, mark: str) -> None:
    machines = [machine(name, **at(minute)) for minute, name in enumerate("abcde")]
    machines[2] = machine("c", annotations={mark: ""}, **at(2))
    assert first(policy, *machines, ill=frozenset("b"))[:2] == ["c", "b"]


def test_random_is_neither_by_age_nor_different_the_second_time() -> None:
    machines = [machine(f"m{number}", **at(number)) for number in range(20)]
    chosen = first("Random", *machines)
    assert chosen == first("Random", *reversed(machines))
    assert chosen not in (first("Newest", *machines), first("Oldest", *machines))


@pytest.mark.parametrize(
    ("status", "found", "well"),
    [
        ({}, node(), True),
        ({}, node(ready=False), False),
        ({}, None, False),
        ({"errorReason": "InvalidConfiguration"}, node(), False),
        ({"errorMessage": "trouble"}, node(), False),
    ],
)
def test_a_machine_is_well_when_its_node_is_ready_and_nothing_is_wrong(
    status: dict[str, Any], found: Node | None, well: bool
) -> None:
    assert is_well(machine(status=status), found) is well


# New machines


def numbered(text: str, name: str = "workers", uid: str = "set-1") -> MachineSet:
    found: MachineSet = made(
        MachineSet, {"metadata": {"name": name, "uid": uid, "annotations": {NUMBERS: text} if text else {}}}
    )
    return found


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", Numbers(0, 0)),
        ("3", Numbers(3, 3)),
        ("3-5", Numbers(3, 5)),
        ("5-3", Numbers(3, 3)),
        ("three", Numbers(0, 0)),
        ("-3", Numbers(0, 0)),
    ],
)
def test_numbers_are_read_from_what_is_written(text: str, numbers: Numbers) -> None:
    assert numbers_of(numbered(text)) == numbers


@given(begun=st.integers(0, 20), more=st.integers(0, 20))
def test_numbers_that_were_written_are_read_again(begun: int, more: int) -> None:
    numbers = Numbers(begun, begun + more)
    assert numbers_of(numbered(noted(numbers)["metadata"]["annotations"][NUMBERS])) == numbers


@pytest.mark.parametrize(
    ("text", "taken", "count", "after", "numbers"),
    [
        ("", [], 2, Numbers(0, 2), [0, 1]),
        # What was begun and is not there comes first, and what was used is not used again.
        ("3", [0, 1], 2, Numbers(3, 5), [3, 4]),
        ("3-5", [3], 1, Numbers(3, 5), [4]),
        ("3-5", [3], 2, Numbers(3, 6), [4, 5]),
        ("3-5", [3, 4], 1, Numbers(5, 6), [5]),
        ("3-5", [], 1, Numbers(3, 5), [3]),
        # Somebody removed the annotation, or uses one of the names.
        ("", [0, 1, 2], 1, Numbers(0, 4), [3]),
    ],
)
def test_the_next_machines_are_those_that_were_begun_and_then_new_ones(
    text: str, taken: list[int], count: int, after: Numbers, numbers: list[int]
) -> None:
    of = numbered(text)
    found = plan(of, {name_of(of, number) for number in taken}, count)
    assert found == (after, [name_of(of, number) for number in numbers])


@given(name=st.from_regex(r"[a-z][a-z0-9.-]{0,80}[a-z0-9]", fullmatch=True), number=st.integers(0, 10**9))
def test_a_name_fits_into_a_label_and_says_whose_machine_it_is(name: str, number: int) -> None:
    found = name_of(numbered("", name), number)
    assert len(found) <= 63
    assert found.startswith(name[:20].rstrip("-."))
    assert ".-" not in found[len(name[:57].rstrip("-.")) :]


def test_sets_of_the_same_name_one_after_the_other_use_other_names() -> None:
    one, other = (set(plan(numbered("", uid=uid), (), 20)[1]) for uid in ("u1", "u2"))
    assert not one & other


def test_a_new_machine_has_what_the_template_has_and_its_owner() -> None:
    value = {"image": {"url": "u", "checksum": "c"}, "hostSelector": {"matchLabels": {"rack": "3"}}}
    found = a_set(
        template={
            "metadata": {"labels": {"set": "w", "x": "y"}, "annotations": {"note": "z"}, "name": "ignored"},
            "spec": {
                "metadata": {"labels": {"node": "label"}},
                "providerSpec": {"value": value},
                "taints": [{"key": "t", "effect": "NoSchedule"}],
                "lifecycleHooks": {"preDrain": [{"name": "drain.example/x", "owner": "somebody"}]},
            },
        }
    )
    body = new_machine(found, "workers-1")
    assert body["metadata"]["labels"] == {"set": "w", "x": "y"}
    assert body["metadata"]["annotations"] == {"note": "z"}
    assert body["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "MachineSet",
            "name": "workers",
            "uid": "set-1",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert made(Machine, body).spec == found.spec.template.spec
    assert body["spec"]["providerSpec"]["value"] == value


class World:
    """An API with one set and its machines. Those who keep it look, write what they mean to do, and do it, one by one."""

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas
        self.text, self.version = "", 0
        self.live: set[str] = set()
        self.going: set[str] = set()

    def write(self, numbers: Numbers, version: int) -> bool:
        """Guarded by the version, as every patch."""
        if version != self.version:
            return False
        self.text, self.version = noted(numbers)["metadata"]["annotations"][NUMBERS], version + 1
        return True

    def create(self, name: str) -> None:
        if name not in self.live | self.going:
            self.live.add(name)


class Keeper:
    def __init__(self, world: World) -> None:
        self.world = world
        self.seen: tuple[str, int, frozenset[str], int] | None = None
        self.names: list[str] = []
        self.numbers, self.version = Numbers(), -1

    def look(self) -> None:
        world = self.world
        missing = world.replicas - len(world.live)
        self.seen = (world.text, world.version, frozenset(world.live | world.going), missing)
        self.names = []

    def note(self) -> None:
        if self.seen is None:
            return
        text, version, taken, missing = self.seen
        self.seen = None
        self.numbers, names = plan(numbered(text), taken, max(0, missing))
        if self.numbers != numbers_of(numbered(text)):
            if not self.world.write(self.numbers, version):
                return
            version += 1
        self.names, self.version = names, version

    def make(self, which: int) -> None:
        if self.names:
            self.world.create(self.names.pop(which % len(self.names)))
            if not self.names:
                self.world.write(self.numbers.settled, self.version)


@given(
    replicas=st.integers(0, 4),
    acts=st.lists(
        st.tuples(
            st.sampled_from(["look", "note", "make", "make", "die", "delete", "end"]),
            st.integers(0, 2),
            st.integers(0, 9),
        ),
        max_size=80,
    ),
)
def test_however_slow_forgetful_and_many_those_are_who_keep_a_set_it_never_has_a_machine_too_many(
    replicas: int, acts: list[tuple[str, int, int]]
) -> None:
    world = World(replicas)
    keepers = [Keeper(world) for _ in range(3)]
    for act, who, which in acts:
        keeper = keepers[who]
        if act == "look":
            keeper.look()
        elif act == "note":
            keeper.note()
        elif act == "make":
            keeper.make(which)
        elif act == "die":
            keepers[who] = Keeper(world)
        elif act == "delete" and world.live:
            going = sorted(world.live)[which % len(world.live)]
            world.live.discard(going)
            world.going.add(going)
        elif act == "end" and all(one.seen is None for one in keepers):
            # A machine takes longer to go than a request takes on its way.
            world.going -= {name for name in world.going if not any(name in one.names for one in keepers)}
        assert len(world.live) <= replicas
    keeper = Keeper(world)
    while len(world.live) < replicas:
        keeper.look()
        keeper.note()
        while keeper.names:
            keeper.make(0)
    assert len(world.live) == replicas


# The status


def test_the_status_counts_machines_labels_and_nodes() -> None:
    nodes: dict[str, Node | None] = {"a": node(), "b": node(ready=False), "c": None, "d": node()}
    machines = [machine(name, labels={"set": "w"} | ({"x": "y"} if name != "d" else {})) for name in nodes]
    of = a_set(replicas=4, template={"metadata": {"labels": {"set": "w", "x": "y"}}})
    status, next_look = counted(of, machines, lambda machine: nodes[machine.metadata.name], at=NOON)
    assert (status.replicas, status.fully_labeled_replicas) == (4, 3)
    assert (status.ready_replicas, status.available_replicas) == (2, 2)
    assert (status.observed_generation, status.label_selector) == (4, "set=w")
    assert (status.error_reason, next_look) == ("", None)


@pytest.mark.parametrize(
    ("ago", "available", "next_look"), [(59, 0, 1.0), (60, 1, None), (0, 0, 60.0), (-10, 0, 70.0)]
)
def test_a_machine_is_available_once_it_was_ready_for_long_enough(
    ago: int, available: int, next_look: float | None
) -> None:
    found = node(since=NOON - timedelta(seconds=ago))
    status, look = counted(a_set(minReadySeconds=60), [machine()], lambda _: found, at=NOON)
    assert (status.ready_replicas, status.available_replicas, look) == (1, available, next_look)


def test_the_first_status_says_noughts_too_and_the_next_only_what_is_different() -> None:
    of = a_set(replicas=0)
    first, _ = counted(of, [], lambda _: None, at=NOON)
    patch = status_patch(of.status, first)["status"]
    assert {name: value for name, value in patch.items() if value == 0} == dict.fromkeys(
        ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"], 0
    )
    assert status_patch(first, first) == {}
    second, _ = counted(
        made(MachineSet, {**msgspec.to_builtins(of), "status": msgspec.to_builtins(first)}),
        [],
        lambda _: None,
        at=NOON,
        trouble="the selector is wrong",
    )
    told = {"errorReason": "InvalidConfiguration", "errorMessage": "the selector is wrong"}
    assert status_patch(first, second) == {"status": told}
    assert status_patch(second, first) == {"status": dict.fromkeys(told)}


# As many as there are hosts


def host(consumer: str = "", kind: str = "Machine", **labels: str) -> BareMetalHost:
    reference = {
        "kind": kind,
        "apiVersion": "machine.openshift.io/v1beta1",
        "name": consumer,
        "namespace": "m",
    }
    found: BareMetalHost = made(
        BareMetalHost,
        {
            "metadata": {"name": "h", "namespace": "m", "labels": labels},
            "spec": {"online": False, **({"consumerRef": reference} if consumer else {})},
        },
    )
    return found


@pytest.mark.parametrize(
    ("found", "counts"),
    [
        (host(rack="3"), True),
        (host(rack="4"), False),
        (host("ours", rack="3"), True),
        (host("ours", rack="4"), True),
        (host("theirs", rack="3"), False),
        (host("somebody", "HostClaim", rack="3"), False),
    ],
)
def test_a_host_counts_that_is_free_and_will_do_or_that_a_machine_of_the_set_has(
    found: BareMetalHost, counts: bool
) -> None:
    assert _counted([found]) == counts


def test_with_a_host_of_a_machine_that_nobody_knows_nothing_can_be_said() -> None:
    with pytest.raises(Unclear, match="belongs to Machine m/lost, which does not exist"):
        _counted([host(rack="3"), host("lost", rack="3")])


def _counted(hosts: list[BareMetalHost]) -> int:
    spec: BareMetalMachineProviderSpec = made(
        BareMetalMachineProviderSpec, {"hostSelector": {"matchLabels": {"rack": "3"}}}
    )
    machines = {"ours": machine("ours"), "theirs": machine("theirs", labels={"set": "other"})}
    return hosts_for(
        hosts,
        will_do=hosts_wanted(spec),
        fits=members_of(a_set()),
        machine_of=lambda key: machines.get(key.name),
    )
