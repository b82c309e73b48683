"""The arithmetic of server-side apply: sets of fields, merging, ownership, and the laws that hold whatever is applied."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.embedded.server.writes.apply import (
    APPLY,
    UPDATE,
    Conflicts,
    Entry,
    Managed,
    Manager,
    applied,
    managed_after,
    problems,
    structure_of,
    updated,
)
from ingot.embedded.server.writes.apply import fieldset as fs
from ingot.embedded.server.writes.apply.comparing import compare
from ingot.embedded.server.writes.apply.merging import merge
from ingot.embedded.server.writes.apply.ownership import fields_of

TEXT = {"type": "string"}
STRUCTURE = structure_of(
    {
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "a": TEXT,
                    "map": {"type": "object", "additionalProperties": TEXT},
                    "whole": {
                        "type": "object",
                        "additionalProperties": TEXT,
                        "x-kubernetes-map-type": "atomic",
                    },
                    "list": {"type": "array", "items": TEXT},
                    "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
                    "ports": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                        "items": {
                            "type": "object",
                            "properties": {
                                "port": {"type": "integer"},
                                "protocol": {"type": "string", "default": "TCP"},
                                "name": TEXT,
                            },
                        },
                    },
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        }
    }
)
NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:00:09Z"


def of(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


def applier(name: str) -> Manager:
    return Manager(name, APPLY, "v1")


def updater(name: str) -> Manager:
    return Manager(name, UPDATE, "v1")


class Thing:
    """An object that several managers write to."""

    def __init__(self, spec: Any = None) -> None:
        self.document: dict[str, Any] = of(spec) if spec is not None else {}
        self.entries: list[Entry] = []

    def apply(self, manager: str, spec: Any, *, force: bool = False, time: str = NOW) -> None:
        self.document, self.entries = applied(
            self.document,
            of(spec),
            Managed(copy.deepcopy(self.entries)),
            applier(manager),
            STRUCTURE,
            force=force,
            time=time,
            new=not self.document,
        )

    def update(self, manager: str, spec: Any, time: str = NOW) -> None:
        new = of(spec)
        self.entries = updated(
            self.document, new, Managed(copy.deepcopy(self.entries)), updater(manager), STRUCTURE, time=time
        )
        self.document = new

    @property
    def spec(self) -> Any:
        return self.document.get("spec")

    def owned(self, manager: str) -> set[str]:
        return {
            fs.shown(path)
            for entry in self.entries
            if entry["manager"] == manager
            for path in fs.members(entry["fieldsV1"])
        }


# Sets of fields

steps = st.sampled_from(["f:a", "f:b", 'k:{"n":"x"}', 'v:"y"', "v:1"])
paths = st.lists(steps, min_size=1, max_size=3).map(tuple)
path_sets = st.frozensets(paths, max_size=6)


def set_of(found: frozenset[fs.Path]) -> fs.FieldSet:
    made: fs.FieldSet = {}
    for path in found:
        one: fs.FieldSet = {}
        for step in reversed(path):
            one = {step: one}
        made = fs.union(made, one)
    return made


@given(path_sets)
def test_a_set_holds_what_was_put_into_it_and_reads_back_as_it_was_written(found: frozenset[fs.Path]) -> None:
    made = set_of(found)
    assert set(fs.members(made)) == found
    assert fs.checked(made) == made


@given(path_sets, path_sets)
def test_sets_of_fields_add_and_subtract_like_sets_of_paths(
    one: frozenset[fs.Path], other: frozenset[fs.Path]
) -> None:
    first, second = set_of(one), set_of(other)
    before = copy.deepcopy((first, second))
    assert set(fs.members(fs.union(first, second))) == one | other
    assert set(fs.members(fs.difference(first, second))) == one - other
    assert set(fs.members(fs.intersection(first, second))) == one & other
    assert (first, second) == before


@pytest.mark.parametrize(
    ("given_", "read"),
    [
        ({'k:{"b":1,"a":"x"}': {}}, {'k:{"a":"x","b":1}': {}}),
        ({'v: "x"': {}}, {'v:"x"': {}}),
        ({'v:"<a>"': {}}, {'v:"\\u003ca\\u003e"': {}}),
        ({"f:x": {".": {}, "f:y": {}}}, {"f:x": {".": {}, "f:y": {}}}),
    ],
)
def test_a_step_has_one_spelling(given_: Any, read: Any) -> None:
    assert fs.checked(given_) == read


@pytest.mark.parametrize(
    "given_", [{"x": {}}, {"f": {}}, {"k:[1]": {}}, {"v:{": {}}, {"i:x": {}}, [], {"f:a": 1}]
)
def test_what_is_no_set_of_fields_is_refused(given_: Any) -> None:
    with pytest.raises(fs.NotASet):
        fs.checked(given_)


# What an applier owns


@pytest.mark.parametrize(
    ("spec", "owned"),
    [
        ({"a": "1"}, {"f:a": {}}),
        ({"map": {"x": "1"}}, {"f:map": {"f:x": {}}}),
        ({"map": {}}, {"f:map": {}}),
        ({"whole": {"x": "1"}}, {"f:whole": {}}),
        ({"list": ["1", "2"]}, {"f:list": {}}),
        ({"set": ["b", "a"]}, {"f:set": {'v:"b"': {}, 'v:"a"': {}}}),
        (
            {"ports": [{"port": 80, "name": "x"}]},
            {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}}}},
        ),
        ({"free": {"x": {"y": [1]}}}, {"f:free": {"f:x": {".": {}, "f:y": {}}}}),
        ({"a": None}, {"f:a": {}}),
    ],
)
def test_an_applier_owns_what_it_says(spec: Any, owned: Any) -> None:
    assert fields_of({"spec": spec}, STRUCTURE) == {"f:spec": owned}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"b": "1"}, ".spec.b: field not declared in schema"),
        ({"a": 1}, ".spec.a: expected string, got 1"),
        ({"map": []}, ".spec.map: expected map, got list"),
        ({"set": ["a", "a"]}, '.spec.set: duplicate entries for key [="a"]'),
        (
            {"ports": ["x"]},
            ".spec.ports: element 0: associative list with keys may not have non-map elements",
        ),
        ({"ports": [{"port": "x"}]}, '.spec.ports[port="x",protocol="TCP"].port: expected numeric'),
    ],
)
def test_a_configuration_that_does_not_fit_is_told_where(spec: Any, words: str) -> None:
    (found,) = problems({"spec": spec}, STRUCTURE)
    assert found.startswith(words)


# Merging lists


@pytest.mark.parametrize(
    ("live", "config", "made"),
    [
        ("abc", "", "abc"),
        ("", "ab", "ab"),
        ("abc", "b", "abc"),
        ("abc", "cb", "acb"),
        ("abc", "ba", "bca"),
        ("abc", "dab", "dabc"),
        ("abc", "xcy", "abxcy"),
        ("aXbY", "ba", "XbYa"),
    ],
)
def test_elements_keep_the_order_of_the_configuration_and_their_neighbours(
    live: str, config: str, made: str
) -> None:
    found = merge({"spec": {"set": list(live)}}, {"spec": {"set": list(config)}}, STRUCTURE)
    assert "".join(found["spec"]["set"]) == made


# Stories


def test_what_a_manager_no_longer_applies_goes_and_what_others_own_stays() -> None:
    thing = Thing()
    thing.apply("one", {"a": "1", "map": {"x": "1", "y": "1"}})
    thing.apply("two", {"map": {"y": "1", "z": "1"}})
    thing.apply("one", {"a": "1"})
    assert thing.spec == {"a": "1", "map": {"y": "1", "z": "1"}}
    thing.apply("two", {})
    assert thing.spec == {"a": "1"}


def test_a_field_of_somebody_else_is_a_conflict_unless_the_value_is_the_same_or_it_is_taken_by_force() -> (
    None
):
    thing = Thing()
    thing.apply("one", {"a": "1", "set": ["x"]})
    thing.apply("two", {"a": "1"})
    before = copy.deepcopy((thing.document, thing.entries))
    with pytest.raises(Conflicts) as conflict:
        thing.apply("three", {"a": "2"})
    assert sorted(map(str, conflict.value.found)) == [
        'conflict with "one": .spec.a',
        'conflict with "two": .spec.a',
    ]
    assert (thing.document, thing.entries) == before
    thing.apply("three", {"a": "2"}, force=True)
    assert thing.owned("one") == {'.spec.set[="x"]'}
    assert thing.owned("two") == set()


def test_who_updates_a_field_owns_it_alone_and_a_later_apply_meets_it() -> None:
    thing = Thing()
    thing.apply("one", {"a": "1", "list": ["1"]})
    thing.update("two", {"a": "2", "list": ["1"]})
    assert thing.owned("one") == {".spec.list"}
    assert thing.owned("two") == {".spec.a"}
    with pytest.raises(Conflicts, match=r'"two" using v1: \.spec\.a'):
        thing.apply("one", {"a": "1"})


def test_an_element_of_a_list_is_owned_by_its_key_whatever_its_place() -> None:
    thing = Thing()
    thing.apply("one", {"ports": [{"port": 80, "name": "web"}]})
    thing.apply("two", {"ports": [{"port": 80, "protocol": "UDP"}]})
    thing.apply("two", {"ports": [{"port": 81}]})
    assert thing.spec["ports"] == [{"port": 80, "name": "web"}, {"port": 81}]


def test_a_manager_that_applies_nothing_new_keeps_its_time_and_the_object_as_it_is() -> None:
    thing = Thing()
    thing.apply("one", {"a": "1"})
    before = copy.deepcopy((thing.document, thing.entries))
    thing.apply("one", {"a": "1"}, time=LATER)
    assert (thing.document, thing.entries) == before


def test_what_was_there_before_the_first_apply_has_an_owner_of_its_own() -> None:
    thing = Thing({"a": "1", "list": ["1"]})
    with pytest.raises(Conflicts, match="before-first-apply"):
        thing.apply("one", {"a": "2"})
    thing.apply("one", {"a": "2"}, force=True)
    assert thing.owned("before-first-apply") == {".spec", ".spec.list"}


def test_who_owned_parts_of_what_is_one_value_now_owns_that_value() -> None:
    thing = Thing()
    thing.apply("one", {"a": "1"})
    thing.entries[0]["fieldsV1"] = {"f:spec": {"f:whole": {"f:x": {}}, "f:list": {'v:"1"': {}}, "f:a": {}}}
    thing.apply("two", {})
    assert thing.owned("one") == {".spec.whole", ".spec.list", ".spec.a"}


def test_of_many_updaters_the_oldest_become_one() -> None:
    thing = Thing({"map": {}})
    thing.entries = updated({}, thing.document, Managed(), updater("first"), STRUCTURE, time=NOW)
    for number in range(15):
        thing.update(
            f"m{number:02}",
            {"map": {**thing.spec["map"], f"k{number:02}": "1"}},
            f"2026-01-01T00:01:{number:02}Z",
        )
    assert len(thing.entries) == 10
    assert {".spec.map.k00", ".spec.map.k05"} <= thing.owned("ancient-changes")
    assert thing.owned("m14") == {".spec.map.k14"}


def test_clients_can_edit_the_entries_and_clear_them_but_not_break_them() -> None:
    live = [
        {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    ]
    clears: tuple[list[object], ...] = ([], [{}])
    for sent in (None, "x", [{"manager": "x"}], [{**live[0], "operation": "Zap"}], [1]):
        assert managed_after(live, sent, cleared_by=clears).encoded() == live
    for sent in ([], [{}]):
        assert managed_after(live, sent, cleared_by=clears).encoded() == []
    edited = [{**live[0], "manager": "other", "time": NOW, "fieldsV1": {'k:{"b":1,"a":2}': {}}}]
    (entry,) = managed_after(live, edited, cleared_by=clears).encoded()
    assert (entry["manager"], entry["fieldsV1"]) == ("other", {'k:{"a":2,"b":1}': {}})


# Laws

texts = st.sampled_from(["1", "2"])
specs = st.fixed_dictionaries(
    {},
    optional={
        "a": texts,
        "map": st.dictionaries(st.sampled_from("xyz"), texts, max_size=3),
        "whole": st.dictionaries(st.sampled_from("xy"), texts, max_size=2),
        "list": st.lists(texts, max_size=2),
        # An empty list that is merged by element says nothing, and nobody owns it: it is left out of the laws.
        "set": st.lists(st.sampled_from("abc"), unique=True, min_size=1, max_size=3),
        "ports": st.lists(
            st.fixed_dictionaries({"port": st.sampled_from([80, 81])}, optional={"name": texts}),
            unique_by=lambda port: port["port"],
            min_size=1,
            max_size=2,
        ),
        "free": st.dictionaries(
            st.sampled_from("xy"), texts | st.dictionaries(st.just("z"), texts, max_size=1), max_size=2
        ),
    },
)
names = st.sampled_from(["one", "two", "three"])
writes = st.lists(st.tuples(st.sampled_from(["apply", "update"]), names, specs), max_size=5)


def after(history: Any) -> Thing:
    thing = Thing()
    thing.apply("first", {})
    for how, manager, spec in history:
        if how == "apply":
            thing.apply(manager, spec, force=True)
        else:
            thing.update(manager, spec)
    return thing


def leaves(spec: Any) -> set[fs.Path]:
    return set(fs.members(fields_of({"spec": spec}, STRUCTURE)))


@given(writes, names, specs)
def test_applying_twice_is_applying_once(history: Any, manager: str, spec: Any) -> None:
    thing = after(history)
    thing.apply(manager, spec, force=True)
    once = copy.deepcopy((thing.document, thing.entries))
    thing.apply(manager, spec, time=LATER)
    assert (thing.document, thing.entries) == once


@given(writes, names, specs)
def test_what_is_applied_is_there_or_a_conflict_is_told_and_nothing_changed(
    history: Any, manager: str, spec: Any
) -> None:
    thing = after(history)
    before = copy.deepcopy((thing.document, thing.entries))
    refused = False
    try:
        thing.apply(manager, spec)
    except Conflicts:
        refused = True
    if refused:
        assert (thing.document, thing.entries) == before
        thing.apply(manager, spec, force=True)
    delta = compare(thing.document, merge(thing.document, of(spec), STRUCTURE), STRUCTURE)
    assert not delta, "laying the configuration over the result again changes nothing"


@given(writes, names, specs)
def test_only_what_the_manager_owned_goes(history: Any, manager: str, spec: Any) -> None:
    thing = after(history)
    owned = {
        path
        for entry in thing.entries
        if (entry["manager"], entry["operation"]) == (manager, "Apply")
        for path in fs.members(entry["fieldsV1"])
    }
    before = copy.deepcopy(thing.document)
    thing.apply(manager, spec, force=True)
    gone = set(fs.members(fields_of(before, STRUCTURE))) - set(
        fs.members(fields_of(thing.document, STRUCTURE))
    )
    for path in gone:
        assert any(
            path[: len(other)] == other or other[: len(path)] == path for other in owned | leaves(spec)
        ), path


@given(writes, names)
def test_what_others_own_survives_a_manager_that_lets_go_of_everything(history: Any, manager: str) -> None:
    thing = after(history)
    owned = set(
        fs.members(
            Managed(
                entry
                for entry in thing.entries
                if (entry["manager"], entry["operation"]) != (manager, "Apply")
            ).all_fields()
        )
    )
    there = set(fs.members(fields_of(thing.document, STRUCTURE)))
    # An element or a key that only this manager made takes along what others wrote into it.
    safe = {
        path
        for path in owned & there
        if all(path[:length] in owned for length in range(1, len(path)) if path[:length] in there)
    }
    thing.apply(manager, {})
    assert safe <= set(fs.members(fields_of(thing.document, STRUCTURE)))


@given(writes, names, specs)
def test_nobody_owns_what_is_not_there(history: Any, manager: str, spec: Any) -> None:
    thing = after(history)
    thing.update(manager, spec)
    everything = compare({}, thing.document, STRUCTURE).added
    for entry in thing.entries:
        missing = fs.difference(entry["fieldsV1"], everything)
        assert not missing, (entry["manager"], missing)


@given(writes, specs)
def test_an_update_that_changes_nothing_is_nobodys(history: Any, spec: Any) -> None:
    thing = after(history)
    thing.update("one", spec)
    before = copy.deepcopy(thing.entries)
    thing.update("two", copy.deepcopy(spec), LATER)
    assert thing.entries == before
