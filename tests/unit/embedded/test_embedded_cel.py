"""CEL in the embedded API: what an expression sees, what it may cost, and what it cannot do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from running_server import WIDGETS, served, widget_crd

from ingot.embedded.server.errors import Cause
from ingot.embedded.server.kinds.cel import definitions
from ingot.embedded.server.kinds.cel.conditions import problem
from ingot.embedded.server.kinds.cel.expressions import EvaluationFailed, InvalidExpression, compiled
from ingot.embedded.server.kinds.cel.rules import broken, place_of
from ingot.embedded.server.kinds.cel.syntax import Typed
from ingot.embedded.server.kinds.cel.values import escaped, seen
from ingot.embedded.server.kinds.definitions import words

Json = dict[str, Any]

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
TIME = {"type": "string", "format": "date-time"}


def an_object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def ruled(schema: Json, *rules: str | Json) -> Json:
    written = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    return {**schema, "x-kubernetes-validations": written}


def evaluated(text: str, value: Any, schema: Json | None = None) -> Any:
    types = None if schema is None else {"self": Typed(schema)}
    data = value if schema is None else seen(value, schema)
    return compiled(text, ("self",), types).evaluate({"self": data})


def test_a_server_without_rules_does_not_load_the_library() -> None:
    code = "import sys, ingot.embedded.server; sys.exit(any('cel_expr' in name for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("plain", "plain"),
        ("a.b", "a__dot__b"),
        ("a-b/c", "a__dash__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("in", "__in__"),
        ("namespace", "__namespace__"),
        ("int", "int"),
        ("1st", ""),
        ("ü", ""),
        ("", ""),
    ],
)
def test_a_field_has_a_name_that_an_expression_can_write(name: str, identifier: str) -> None:
    assert escaped(name) == identifier


def test_an_expression_sees_what_the_schema_names_and_nothing_else() -> None:
    schema = an_object(a=NUMBER, n={"type": "number"}, d={"type": "string", "format": "date"})
    value = {"a": 1.0, "n": 2, "d": "2026-01-02", "hidden": 1}
    assert seen(value, schema) == {"a": 1, "n": 2.0, "d": "2026-01-02T00:00:00Z"}
    whole = {"metadata": {"name": "x", "labels": {"a": "b"}}, "kind": "K", "spec": {"a": 1}}
    assert seen(whole, an_object(spec=an_object(a=NUMBER)), root=True) == {
        "kind": "K",
        "metadata": {"name": "x"},
        "spec": {"a": 1},
    }


@pytest.mark.parametrize(
    "text",
    [
        "self.t.getFullYear() == 2026",
        "self.list[0] > timestamp('2025-01-01T00:00:00Z')",
        "self.list.all(t, t.getFullYear() == 2026) && self.list.exists(t, t == self.t)",
        "self.map['k'] == self.t && self.map.k == self.t && self.map.all(k, self.map[k] == self.t)",
        "[self.t, self.t] == [self.t, self.t] && {'x': self.t}.x == self.t && {'x': self.t}['x'] == self.t",
        "self.inner.map(i, i.t).all(t, t.getFullYear() == 2026)",
        "(self.t < self.t ? 1.5 : 2.5) > 2.0 && has(self.t) && !has(self.none)",
        "duration('1h') == self.t - timestamp('2026-01-01T00:00:00Z')",
        "string(self.t) == '2026-01-01T01:00:00Z'",
    ],
)
def test_a_time_is_a_time_wherever_it_is(text: str) -> None:
    schema = an_object(
        t=TIME,
        none=TIME,
        list={"type": "array", "items": TIME},
        map={"type": "object", "additionalProperties": TIME},
        inner={"type": "array", "items": an_object(t=TIME)},
    )
    t = "2026-01-01T01:00:00Z"
    assert evaluated(text, {"t": t, "list": [t], "map": {"k": t}, "inner": [{"t": t}]}, schema) is True


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("self.x == 1", "x"),
        ("has(self.x)", "x"),
        ("self.o.x == 1", "x"),
        ("self.list.all(e, e.x == 1)", "x"),
        ("self.list[0].x == 1", "x"),
        ("self.list.exists(e, self.list.all(f, f.n == e.x))", "x"),
        ("[1].all(i, self.x == i)", "x"),
        ("{'k': self.x}.k == 1", "x"),
        ("self.n.x == 1", "x"),
        ("self.map.k.x == 1", "x"),
    ],
)
def test_a_field_that_the_schema_does_not_have_is_named(text: str, field: str) -> None:
    schema = an_object(
        n=NUMBER,
        o=an_object(n=NUMBER),
        list={"type": "array", "items": an_object(n=NUMBER)},
        map={"type": "object", "additionalProperties": an_object(n=NUMBER)},
    )
    with pytest.raises(InvalidExpression, match=f"undefined field '{field}'"):
        compiled(text, ("self",), {"self": Typed(schema)})


@pytest.mark.parametrize(
    "text",
    [
        "self.free.anything == 1 || true",
        "self.either.x == 1 || true",
        "self.map.anything == 'x' || true",
        "[{'x': 1}].all(e, e.x == 1)",
        "self.list.map(e, {'x': e.n})[0].x == 1 || true",
    ],
)
def test_what_nobody_knows_the_fields_of_is_not_asked_for_them(text: str) -> None:
    schema = an_object(
        free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        either={"x-kubernetes-int-or-string": True},
        map={"type": "object", "additionalProperties": TEXT},
        list={"type": "array", "items": an_object(n=NUMBER)},
    )
    assert compiled(text, ("self",), {"self": Typed(schema)}).type in ("bool", "dyn")


def test_an_expression_that_would_go_on_for_long_is_given_up() -> None:
    numbers = list(range(1000))
    with pytest.raises(EvaluationFailed, match="cost limit exceeded"):
        evaluated("self.all(x, self.all(y, self.all(z, x + y + z >= 0)))", numbers)
    assert evaluated("self.all(x, x >= 0)", numbers) is True


NAMES = [f"name-{number}" for number in range(9000)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("self.all(x, x in self)", NAMES),
        ("self.all(x, self.exists(y, y in self))", NAMES[:3000]),
        ("self.all(x, self.indexOf(x) >= 0)", NAMES),
        ("sets.equivalent(self, self)", NAMES),
        ("self.list.all(x, !self.text.contains(x))", {"list": NAMES, "text": "-" * 1_000_000}),
        ("self.list.all(x, !self.text.matches(x))", {"list": NAMES, "text": "-" * 1_000_000}),
    ],
)
def test_an_expression_that_searches_a_lot_again_and_again_is_given_up(text: str, value: Any) -> None:
    with pytest.raises(EvaluationFailed, match="cost limit exceeded"):
        evaluated(text, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("self.all(x, x in self)", NAMES[:2000]),
        ("self.all(x, x.matches('^name-[0-9]+$') && x.size() < 100)", NAMES),
        ("self.list.all(x, x.contains('name'))", {"list": NAMES, "text": "-" * 1_000_000}),
        ("self.all(x, x.startsWith('name') || x in ['a', 'b'])", NAMES),
        ("self.all(x, 'a' in x.tags)", [{"tags": ["a"]}] * 9000),
        ("self.all(x, x.ports.sum() < 10)", [{"ports": [1, 2, 3]}] * 2000),
        ("self.list.exists(x, self.text.contains(x))", {"list": NAMES[:20], "text": "-name-3" * 100_000}),
        ("sets.equivalent(self, self) && self.indexOf('name-7') == 7", NAMES[:500]),
    ],
)
def test_large_lists_and_texts_can_be_looked_through(text: str, value: Any) -> None:
    assert evaluated(text, value) is True


def test_what_all_rules_of_a_write_cost_is_limited() -> None:
    """What is not asked any more does not get in unseen."""
    rules = [f"size(self) > {number}" for number in range(30)]
    place = place_of(an_object(list=ruled({"type": "array", "items": NUMBER}, *rules)), root=True)
    assert place is not None
    found = broken(place, {"list": [1] * 100_000}, None, [])
    assert [(cause.reason, cause.message.rpartition(": ")[2]) for cause in found] == [
        (
            "FieldValueInvalid",
            "validation failed due to running out of cost budget, no further validation rules will be run",
        )
    ]
    assert broken(place, {"list": [1] * 1000}, None, []) == []


async def test_a_change_made_while_the_rules_of_a_large_object_are_asked_is_not_lost(tmp_path: Path) -> None:
    """That takes a while, in which others have their turn; so the decision may have to be taken again."""
    item = ruled(an_object(name=TEXT, n=NUMBER), "self.n > 0", "self.name.startsWith('name')")
    definition = widget_crd(properties={"list": {"type": "array", "items": item}, "small": NUMBER})
    async with served(tmp_path, crds=[definition]) as api:
        items = [{"name": name, "n": 1} for name in NAMES[:500]]
        body = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w"},
            "spec": {"list": items},
        }
        assert (await api.call("POST", WIDGETS, body))[0] == 201

        async def patched(spec: Json | None = None, **labels: str) -> int:
            change = {"spec": spec or {}, "metadata": {"labels": labels}}
            return (await api.call("PATCH", f"{WIDGETS}/w", change))[0]

        larger = [{**item, "n": 2} for item in items]
        changes = [patched({"list": larger}), *(patched(**{f"l{number}": "x"}) for number in range(5))]
        assert await asyncio.gather(*changes) == [200] * 6
        _, made = await api.call("GET", f"{WIDGETS}/w")
        assert sorted(made["metadata"]["labels"]) == ["l0", "l1", "l2", "l3", "l4"]
        assert made["spec"]["list"] == larger
        items[7]["n"] = 0
        assert await patched({"list": items}) == 422


def test_elements_of_long_lists_are_compared_with_those_of_the_same_keys() -> None:
    item = ruled(an_object(name=TEXT, zone=TEXT, n=NUMBER), "self.n >= oldSelf.n")
    keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "zone"]}
    place = place_of(an_object(list={"type": "array", "items": item, **keys}), root=True)
    assert place is not None
    # Looking for each among all would be 9 * 10**6 comparisons.
    before = [{"name": f"{number}", "n": 5} for number in range(3000)]
    after = [{**item, "n": 4 if item["name"] == "777" else 6} for item in reversed(before)]
    (found,) = broken(place, {"list": after}, {"list": before}, [])
    assert found.field == f"list[{3000 - 1 - 777}]"
    assert broken(place, {"list": [{"name": "777", "zone": "b", "n": 1}]}, {"list": before}, []) == []


def test_an_expression_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidExpression, match="too long"):
        compiled("true || " * 5000 + "true", ("self",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("self.a.find('x') == ''", "undeclared reference to 'find'"),
        ("format.dns1123Label().validate(self.a) == optional.none()", "undeclared reference"),
        ("self.m.all(k, v, v == k)", "undeclared reference"),
        ("authorizer.path('/').check('get').allowed()", "undeclared reference to 'authorizer'"),
    ],
)
def test_what_is_not_offered_is_named_when_it_is_written(text: str, said: str) -> None:
    schema = ruled(an_object(a=TEXT, m={"type": "object", "additionalProperties": TEXT}), text)
    (found,) = definitions.problems(schema, "spec.validation.openAPIV3Schema")
    assert found.field == "spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule"
    assert said in found.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("url('a b').getHost() == ''", "URL parse error"),
        ("quantity('much') == quantity('1')", "quantities must match"),
        ("quantity('1500m').asInteger() == 1", "cannot convert value to integer"),
        ("ip('10.0.0.256').family() == 4", "parse error"),
        ("cidr('10.0.0.0').prefixLength() == 8", "parse error"),
        ("semver('one').major() == 1", "not a semantic version"),
        ("[].max() == 1", "max called on empty list"),
        ("quantity('1').family() == 4", "not an IP address"),
        ("ip('::1').isLessThan(quantity('1'))", "only things of one sort"),
        ("cidr('10.0.0.0/8').major() == 1", "not a semantic version"),
        ("self.a", "no such key: a"),
        ("1 / 0 == 1", "division by zero"),
    ],
)
def test_what_has_no_value_says_why(text: str, said: str) -> None:
    with pytest.raises(EvaluationFailed, match=said):
        evaluated(text, {})


def rule_problems(schema: Json, new: Any, *old: Any) -> list[Cause]:
    root = an_object(spec=schema)
    place = place_of(root, root=True)
    assert place is not None
    return broken(place, {"spec": new}, {"spec": old[0]} if old else None, [])


def test_null_is_nothing_and_an_empty_list_is_something() -> None:
    schema = an_object(
        a={**ruled(NUMBER, "self > 10"), "nullable": True},
        l=ruled({"type": "array", "items": NUMBER}, "size(self) > 0"),
    )
    assert rule_problems(schema, {"a": None}) == []
    assert rule_problems(schema, {}) == []
    assert [found.field for found in rule_problems(schema, {"a": 1, "l": []})] == ["spec.a", "spec.l"]


def test_elements_of_a_list_without_keys_are_not_compared_with_earlier_ones() -> None:
    schema = an_object(l={"type": "array", "items": ruled(NUMBER, "self >= oldSelf", "self < 10")})
    assert rule_problems(schema, {"l": [1]}, {"l": [5]}) == []
    # The list as a whole is as it was, but its elements have no identity: they are looked at again.
    assert [found.field for found in rule_problems(schema, {"l": [1, 20]}, {"l": [20]})] == ["spec.l[1]"]


def test_a_word_in_a_text_does_not_make_a_rule_one_about_changes() -> None:
    schema = an_object(a=ruled(TEXT, "self != 'oldSelf'"))
    assert len(rule_problems(schema, {"a": "oldSelf"})) == 1


def test_a_message_that_cannot_be_told_is_replaced() -> None:
    for expression in ("'two\\nlines'", "''", "self.none"):
        rule = {"rule": "self.a > 1", "messageExpression": expression, "message": "said plainly"}
        (found,) = rule_problems(ruled(an_object(a=NUMBER, none=TEXT), rule), {"a": 1})
        assert found.message.endswith("said plainly")


def test_a_rule_over_several_lines_is_told_in_one() -> None:
    (found,) = rule_problems(ruled(an_object(a=NUMBER), "self.a\n  > 1"), {"a": 1})
    assert found.message == 'Invalid value: "object": failed rule: self.a > 1'


def test_a_number_that_is_too_large_for_a_rule_is_told() -> None:
    (found,) = rule_problems(an_object(a=ruled(NUMBER, "self > 1")), {"a": 2**70})
    assert "out of range" in found.message


@pytest.mark.parametrize("written", [7, [7], [{"rule": 7}], [{"rule": "true", "optionalOldSelf": "yes"}]])
def test_rules_that_are_no_rules_are_refused(written: Any) -> None:
    crd = widget_crd(**{"x-kubernetes-validations": written})
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert "x-kubernetes-validations must be a list of rules" in words.misshapen(schema)


def test_a_condition_has_to_be_true_or_false() -> None:
    assert problem("object.metadata.name == 'x' && request.operation == 'CREATE' && oldObject == null") == ""
    assert problem("size(object.metadata.name)") == "must evaluate to bool but got int"
    assert problem("object.").startswith("compilation failed: ERROR: <input>:1:8")
