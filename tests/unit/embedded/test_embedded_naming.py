"""Names of kinds, the order of versions, and scales: the pure rules behind definitions."""

from __future__ import annotations

from typing import Any

import pytest
from running_server import widget_crd

from ingot.embedded.server.kinds.definitions import family_of, naming
from ingot.embedded.server.kinds.registry import Registry, version_priority
from ingot.embedded.server.kinds.scale import Scale, label_selector_text, scale_of, scaled

NAMES = {
    "plural": "widgets",
    "singular": "widget",
    "kind": "Widget",
    "listKind": "WidgetList",
    "shortNames": ["wd"],
}
NOBODY = naming.taken([])


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        ({"plural": "widgets"}, "PluralConflict"),
        ({"plural": "widget"}, "SingularConflict"),
        ({"shortNames": ["wd"]}, "ShortNamesConflict"),
        ({"plural": "wd"}, "ShortNamesConflict"),
        ({"kind": "Widget"}, "KindConflict"),
        ({"listKind": "Widget"}, "KindConflict"),
        ({"kind": "WidgetList"}, "ListKindConflict"),
        ({"kind": "widgets"}, ""),
        ({"plural": "Widget"}, ""),
    ],
)
def test_a_name_that_somebody_has_is_not_given_again(theirs: dict[str, Any], reason: str) -> None:
    _, found, sentence = naming.accepted(NAMES, {}, naming.taken([theirs]))
    assert found == reason
    assert ("is already in use" in sentence) is bool(reason)


def test_a_definition_keeps_what_it_has_where_it_cannot_have_what_it_asks_for() -> None:
    wanted = {**NAMES, "singular": "gadget", "shortNames": ["wd", "gd"], "categories": ["things"]}
    others = naming.taken([{"singular": "gadget"}])
    names, reason, _ = naming.accepted(wanted, NAMES, others)
    assert reason == "SingularConflict"
    assert names == {**NAMES, "shortNames": ["wd", "gd"], "categories": ["things"]}


def test_short_names_that_are_no_longer_wanted_are_given_back() -> None:
    wanted = {name: value for name, value in NAMES.items() if name != "shortNames"}
    assert naming.accepted(wanted, NAMES, NOBODY) == (wanted, "", "")


def test_a_kind_that_is_established_stays_so_whatever_names_it_asks_for() -> None:
    first = {"spec": {"names": NAMES}, "status": {}}
    status = naming.status_of(first, NOBODY)
    assert naming.is_true({"status": status}, naming.ESTABLISHED)
    asks = {"spec": {"names": {**NAMES, "shortNames": ["taken"]}}, "status": status}
    later = naming.status_of(asks, naming.taken([{"shortNames": ["taken"]}]))
    assert naming.is_true({"status": later}, naming.ESTABLISHED)
    assert not naming.is_true({"status": later}, naming.NAMES_ACCEPTED)
    assert later["acceptedNames"]["shortNames"] == ["wd"]


def test_a_condition_keeps_its_time_as_long_as_its_status_stays() -> None:
    then = {"type": "A", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "then"}
    (same,) = naming.with_condition([then], "A", "True", "Other", "words")
    assert (same["lastTransitionTime"], same["reason"]) == ("then", "Other")
    (turned,) = naming.with_condition([then], "A", "False", "R", "m")
    assert turned["lastTransitionTime"] != "then"
    assert [found["type"] for found in naming.with_condition([then], "B", "True", "R", "m")] == ["A", "B"]


def test_versions_are_preferred_as_kubernetes_prefers_them() -> None:
    best_first = [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta3",
        "v3beta1",
        "v12alpha1",
        "v11alpha2",
        "foo1",
        "foo10",
    ]
    any_order = sorted(best_first)
    assert sorted(any_order, key=version_priority) == best_first


def test_a_registry_finds_what_is_defined_and_counts_its_changes() -> None:
    registry = Registry()
    family = family_of(widget_crd())
    before = registry.revision
    registry.undefine("widgets.example.com")
    assert registry.revision == before
    registry.define("widgets.example.com", family)
    assert registry.revision == before + 1
    assert registry.at("example.com", "v1", "widgets") is family.home
    assert registry.named("example.com/v7", "Widget") is family.home
    registry.undefine("widgets.example.com")
    assert registry.at("example.com", "v1", "widgets") is None
    assert registry.named("example.com/v1", "Widget") is None
    assert registry.homes() == ()


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({}, ""),
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        ({"matchExpressions": [{"key": "k", "operator": "In", "values": ["y", "x"]}]}, "k in (x,y)"),
        ({"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["x"]}]}, "k notin (x)"),
        (
            {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "k", "operator": "Exists"}]},
            "a=1,k",
        ),
        ({"matchExpressions": [{"key": "k", "operator": "DoesNotExist"}]}, "!k"),
    ],
)
def test_the_selector_of_a_workload_is_told_in_the_words_of_a_query(selector: Any, text: str) -> None:
    assert label_selector_text({"spec": {"selector": selector}}) == text


def test_scaling_sets_the_wanted_number_and_makes_the_way_to_it() -> None:
    scale = Scale(("spec", "pool", "size"), ("status", "size"))
    document = {"metadata": {"name": "w"}}
    changed = scaled(scale, document, {"spec": {"replicas": 4}})
    assert changed["spec"] == {"pool": {"size": 4}}
    assert scale_of(scale, changed)["spec"] == {"replicas": 4}
    assert scale_of(scale, changed)["status"] == {"replicas": 0}
