"""Rules that a definition brings along, in CEL: what they refuse, and what refuses them."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any

import pytest
from kubernetes_api import Answer, Api, eventually

Json = dict[str, Any]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXT = {"type": "string", "maxLength": 20}
NUMBER = {"type": "integer"}
WHERE = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]"


def rules(*written: str | Json) -> Json:
    return {"x-kubernetes-validations": [{"rule": r} if isinstance(r, str) else r for r in written]}


def definition(group: str, spec: Json, **root: Any) -> Json:
    properties = {
        "spec": spec,
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties, **root}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "versions": [version],
        },
    }


SPEC: Json = {
    "type": "object",
    "properties": {
        "least": {**NUMBER, "default": 1},
        "most": {**NUMBER, "default": 5},
        "word": {**TEXT, "default": "ok"},
        "maybe": TEXT,
        "divisor": NUMBER,
        "fixed": {**NUMBER, "default": 1},
        "share": {"type": "number", **rules("self < 1.5")},
        "when": {"type": "string", "format": "date-time"},
        "until": {"type": "string", "format": "date-time"},
        "pause": {"type": "string", "format": "duration"},
        "data": {"type": "string", "format": "byte", "maxLength": 20},
        "port": {"x-kubernetes-int-or-string": True},
        "odd-name": {**TEXT, **rules("self != 'no'")},
        "in": TEXT,
        "first": {
            **TEXT,
            **rules({"rule": "oldSelf.hasValue() || self == 'first'", "optionalOldSelf": True}),
        },
        "names": {"type": "array", "maxItems": 10, "items": {**TEXT, **rules("self.startsWith('x')")}},
        "counts": {
            "type": "object",
            "maxProperties": 10,
            "additionalProperties": {**NUMBER, **rules("self > 0", "self >= oldSelf")},
        },
        "parts": {
            "type": "array",
            "maxItems": 10,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": TEXT, "size": NUMBER},
                **rules(
                    {"rule": "self.size >= oldSelf.size", "message": "a part only grows"}, "self.size != 13"
                ),
            },
        },
    },
    **rules(
        {"rule": "self.least <= self.most", "message": "least is more than most"},
        {"rule": "self.word != 'bad'", "messageExpression": "'the word is ' + self.word"},
        {"rule": "self.word != 'twice'", "reason": "FieldValueDuplicate", "fieldPath": ".word"},
        {"rule": "self.word != 'never'", "reason": "FieldValueForbidden"},
        {"rule": "self.word != 'needed'", "reason": "FieldValueRequired", "message": "say more"},
        {
            "rule": "self.word != 'plain'",
            "messageExpression": "'no ' + self.maybe",
            "message": "told plainly",
        },
        "self.word != 'bare'",
        {"rule": "self.fixed == oldSelf.fixed", "message": "fixed does not change"},
        "!has(self.divisor) || 10 / self.divisor > 0",
        "!has(self.until) || self.when < self.until",
        "!has(self.when) || self.when > timestamp('2020-01-01T00:00:00Z')",
        "!has(self.pause) || self.pause >= duration('1s')",
        "!has(self.data) || self.data == b'hello'",
        "!has(self.port) || (type(self.port) == int ? self.port > 0 : self.port == 'http')",
        "!has(self.odd__dash__name) || self.odd__dash__name != 'escaped'",
        "!has(self.__in__) || self.__in__ != 'keyword'",
    ),
}


# One definition for all tests, named by its content: to make one takes a cluster a while.
GROUP = f"r{hashlib.sha256(json.dumps(SPEC).encode()).hexdigest()[:8]}.example.com"


@pytest.fixture
async def things(api: Api) -> str:
    """A kind with rules: where its objects are."""
    name_rule = {"rule": "self.metadata.name.startsWith('t')", "message": "its name begins with t"}
    made = await api.post(CRDS, definition(GROUP, SPEC, **rules(name_rule)))
    assert made.code in (201, 409), made.body
    path = f"/apis/{GROUP}/v1/namespaces/{api.namespace}/things"
    await until_taken(api, path)
    return path


async def until_taken(api: Api, path: str) -> None:
    """A cluster serves a kind a moment after it was defined, and takes objects of it another moment later."""

    async def taken() -> bool:
        return (await tried(api, path, {})).code == 201

    await eventually(taken)


def a_thing(path: str, spec: Json, name: str = "t1", **metadata: Any) -> Json:
    return {
        "apiVersion": f"{path.split('/')[2]}/v1",
        "kind": "Thing",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


async def tried(api: Api, path: str, spec: Json, name: str = "t1") -> Answer:
    return await api.post(path, a_thing(path, spec, name), dryRun="All")


def causes(answer: Answer) -> list[tuple[str, str, str]]:
    return [(found["field"], found["reason"], found["message"]) for found in answer.body["details"]["causes"]]


INVALID = "FieldValueInvalid"


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({"least": 9}, ("spec", INVALID, 'Invalid value: "object": least is more than most')),
        ({"word": "bad"}, ("spec", INVALID, 'Invalid value: "object": the word is bad')),
        ({"word": "twice"}, ("spec.word", "FieldValueDuplicate", 'Duplicate value: "object"')),
        ({"word": "never"}, ("spec", "FieldValueForbidden", "Forbidden: failed rule: self.word != 'never'")),
        ({"word": "needed"}, ("spec", "FieldValueRequired", "Required value: say more")),
        ({"word": "plain"}, ("spec", INVALID, 'Invalid value: "object": told plainly')),
        ({"word": "bare"}, ("spec", INVALID, "Invalid value: \"object\": failed rule: self.word != 'bare'")),
        (
            {"divisor": 0},
            (
                "spec",
                INVALID,
                'Invalid value: "object": division by zero evaluating rule: '
                "!has(self.divisor) || 10 / self.divisor > 0",
            ),
        ),
        (
            {"parts": [{"name": "a"}]},
            (
                "spec.parts[0]",
                INVALID,
                'Invalid value: "object": no such key: size evaluating rule: self.size != 13',
            ),
        ),
        (
            {"parts": [{"name": "a", "size": 1}, {"name": "b", "size": 13}]},
            ("spec.parts[1]", INVALID, 'Invalid value: "object": failed rule: self.size != 13'),
        ),
        (
            {"names": ["xa", "b"]},
            ("spec.names[1]", INVALID, "Invalid value: \"string\": failed rule: self.startsWith('x')"),
        ),
        (
            {"counts": {"q": 0}},
            ("spec.counts[q]", INVALID, 'Invalid value: "integer": failed rule: self > 0'),
        ),
        ({"share": 2}, ("spec.share", INVALID, 'Invalid value: "number": failed rule: self < 1.5')),
        (
            {"odd-name": "no"},
            ("spec.odd-name", INVALID, "Invalid value: \"string\": failed rule: self != 'no'"),
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
async def test_an_object_that_breaks_a_rule_is_refused_in_its_words(
    api: Api, things: str, spec: Json, cause: tuple[str, str, str]
) -> None:
    answer = await tried(api, things, spec)
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert causes(answer) == [cause]


@pytest.mark.parametrize(
    ("spec", "accepted"),
    [
        ({"share": 1}, True),
        ({"when": "2026-01-01T00:00:00Z", "until": "2026-01-01T01:00:00+02:00"}, False),
        ({"when": "2026-01-01T00:00:00Z", "until": "2026-01-01T03:00:00+02:00"}, True),
        ({"when": "2019-01-01T00:00:00Z"}, False),
        ({"pause": "1500ms"}, True),
        ({"pause": "1ms"}, False),
        ({"data": "aGVsbG8="}, True),
        ({"data": "aGVsbA=="}, False),
        ({"port": 80}, True),
        ({"port": 0}, False),
        ({"port": "http"}, True),
        ({"port": "other"}, False),
        ({"odd-name": "escaped"}, False),
        ({"in": "keyword"}, False),
        ({"first": "first"}, True),
        ({"first": "second"}, False),
    ],
    ids=str,
)
async def test_values_have_the_types_that_their_formats_say(
    api: Api, things: str, spec: Json, accepted: bool
) -> None:
    answer = await tried(api, things, spec)
    assert answer.code == (201 if accepted else 422), answer.body


async def test_a_rule_about_the_whole_object_sees_its_name(api: Api, things: str) -> None:
    answer = await tried(api, things, {}, name="z1")
    assert causes(answer) == [("<nil>", INVALID, 'Invalid value: "object": its name begins with t')]


async def test_all_rules_that_are_broken_are_told_at_once(api: Api, things: str) -> None:
    answer = await tried(api, things, {"least": 9, "word": "bad", "parts": [{"name": "a", "size": 13}]})
    assert [field for field, _, _ in causes(answer)] == ["spec", "spec", "spec.parts[0]"]


async def test_rules_are_not_asked_about_what_has_the_wrong_type(api: Api, things: str) -> None:
    answer = await tried(api, things, {"least": 9, "word": 7})
    assert [field for field, _, _ in causes(answer)] == ["spec.word", "<nil>"]
    assert "some validation rules were not checked" in causes(answer)[1][2]


async def test_rules_about_a_change_compare_with_what_was_in_the_same_place(api: Api, things: str) -> None:
    parts = [{"name": "a", "size": 5}, {"name": "b", "size": 1}]
    spec = {"fixed": 3, "parts": parts, "counts": {"q": 5}, "first": "first"}
    assert (await api.post(things, a_thing(things, spec))).code == 201

    async def changed(change: Json) -> list[tuple[str, str, str]]:
        answer = await api.patch(f"{things}/t1", {"spec": change}, dryRun="All")
        return causes(answer) if answer.code != 200 else []

    assert await changed({"fixed": 4}) == [
        ("spec", INVALID, 'Invalid value: "object": fixed does not change')
    ]
    moved = [{"name": "b", "size": 1}, {"name": "a", "size": 4}]
    grows = 'Invalid value: "object": a part only grows'
    assert await changed({"parts": moved}) == [("spec.parts[1]", INVALID, grows)]
    assert await changed({"parts": [{"name": "c", "size": 1}, {"name": "a", "size": 6}]}) == []
    assert [field for field, _, _ in await changed({"counts": {"q": 4}})] == ["spec.counts[q]"]
    assert await changed({"counts": {"q": None, "r": 1}}) == []
    assert await changed({"first": "another"}) == []
    assert await changed({"first": None}) == []


async def test_what_broke_a_rule_before_the_rule_came_is_left_in_peace_until_it_changes(api: Api) -> None:
    group = f"g{uuid.uuid4().hex[:8]}.example.com"
    loose = {"type": "object", "properties": {"size": NUMBER, "note": TEXT, "name": TEXT}}
    strict = {
        "type": "object",
        "properties": {"size": NUMBER | rules("self < 10"), "note": TEXT, "name": TEXT},
    }
    path, crd = f"/apis/{group}/v1/namespaces/{api.namespace}/things", f"{CRDS}/things.{group}"
    assert (await api.post(CRDS, definition(group, loose))).code == 201
    await until_taken(api, path)
    assert (await api.post(path, a_thing(path, {"size": 20}, finalizers=["example.com/x"]))).code == 201
    versions = definition(group, strict)["spec"]["versions"]
    assert (await api.patch(crd, {"spec": {"versions": versions}})).code == 200

    async def rule_is_known() -> bool:
        return (await tried(api, path, {"size": 20}, "t2")).code == 422

    await eventually(rule_is_known)
    assert (await api.patch(f"{path}/t1", {"spec": {"note": "x"}})).code == 200
    assert (await api.patch(f"{path}/t1/status", {"status": {"seen": True}})).code == 200
    assert (await api.patch(f"{path}/t1", {"spec": {"size": 30}})).code == 422
    assert (await api.patch(f"{path}/t1", {"metadata": {"finalizers": None}})).code == 200
    await api.delete(crd)


REFUSED: list[tuple[str, Json, str, str, str]] = [
    ("syntax", {"rule": "self."}, ".rule", INVALID, "compilation failed: ERROR: <input>:1:6: Syntax error"),
    (
        "no such field",
        {"rule": "self.nosuch == 1"},
        ".rule",
        INVALID,
        "ERROR: <input>:1:5: undefined field 'nosuch'",
    ),
    ("inside", {"rule": "self.parts.all(p, p.nosuch > 1)"}, ".rule", INVALID, "undefined field 'nosuch'"),
    ("of a number", {"rule": "self.least.x == 1"}, ".rule", INVALID, ""),
    ("no function", {"rule": "nosuch(self.least)"}, ".rule", INVALID, "undeclared reference to 'nosuch'"),
    ("no bool", {"rule": "size(self.word)"}, ".rule", INVALID, "cel expression must evaluate to a bool"),
    ("nothing", {"rule": ""}, ".rule", "FieldValueRequired", "rule is not specified"),
    ("two lines", {"rule": "true", "message": "a\nb"}, ".message", INVALID, "must not contain line breaks"),
    (
        "no text",
        {"rule": "true", "messageExpression": "size(self.word)"},
        ".messageExpression",
        INVALID,
        "messageExpression must evaluate to a string",
    ),
    (
        "no such text",
        {"rule": "true", "messageExpression": "self.nosuch"},
        ".messageExpression",
        INVALID,
        "messageExpression compilation failed",
    ),
    (
        "no reason",
        {"rule": "true", "reason": "Why"},
        ".reason",
        "FieldValueNotSupported",
        '"FieldValueForbidden"',
    ),
    ("no path", {"rule": "true", "fieldPath": ".nosuch"}, ".fieldPath", INVALID, "must be a valid path"),
    ("a path to an element", {"rule": "true", "fieldPath": ".names[0]"}, ".fieldPath", INVALID, "valid path"),
    (
        "nothing before",
        {"rule": "true", "optionalOldSelf": True},
        ".optionalOldSelf",
        INVALID,
        "may not be set if oldSelf is not used",
    ),
]


@pytest.mark.parametrize(
    ("rule", "place", "reason", "words"),
    [pytest.param(*case, id=name) for name, *case in REFUSED],
)
async def test_a_rule_that_cannot_be_asked_refuses_its_definition(
    api: Api, rule: Json, place: str, reason: str, words: str
) -> None:
    group = f"g{uuid.uuid4().hex[:8]}.example.com"
    answer = await api.post(CRDS, definition(group, {**SPEC, **rules(rule)}), dryRun="All")
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    ((field, found, message),) = causes(answer)
    assert (field, found) == (WHERE + place, reason)
    assert words in message


FUNCTIONS = [
    "isURL('https://a/b') && !isURL('a b')",
    "url('https://user@h:8/p%20q?x=1&x=2').getHost() == 'h:8'",
    "url('https://h:8/p').getHostname() == 'h' && url('https://h:8/p').getPort() == '8'",
    "url('https://[::1]:80/p').getHostname() == '::1' && url('/p/q').getEscapedPath() == '/p/q'",
    "url('https://h/p?x=1&x=2').getQuery()['x'] == ['1', '2'] && url('https://h').getScheme() == 'https'",
    "quantity('1k') == quantity('1000') && isQuantity('2Gi') && !isQuantity('2Qi')",
    "quantity('2Gi').isGreaterThan(quantity('2G')) && quantity('1').compareTo(quantity('1000m')) == 0",
    "quantity('1500m').add(quantity('1')).isLessThan(quantity('3')) && quantity('5').sub(2).asInteger() == 3",
    "quantity('3').isInteger() && !quantity('300m').isInteger() && quantity('500m').asApproximateFloat() == 0.5",
    "isIP('10.0.0.1') && !isIP('10.0.0.256') && ip('::1').isLoopback() && ip('10.0.0.1').family() == 4",
    "ip('10.0.0.1').isGlobalUnicast() && ip('169.254.0.1').isLinkLocalUnicast() && ip('0.0.0.0').isUnspecified()",
    "ip.isCanonical('::1') && !ip.isCanonical('0::1') && ip('ff02::1').isLinkLocalMulticast()",
    "isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0/33') && cidr('10.0.0.0/8').containsIP('10.1.2.3')",
    "cidr('10.0.0.0/8').containsIP(ip('10.1.2.3')) && !cidr('10.0.0.0/8').containsCIDR('11.0.0.0/16')",
    "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.0.0.0/8').prefixLength() == 8",
    "cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16')) && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
    "semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && semver('1.10.0').isGreaterThan(semver('1.9.0'))",
    "isSemver('1.0.0') && !isSemver('1.0') && semver('1.2.3').minor() == 2",
    "[1, 3, 2].max() == 3 && [1, 3, 2].min() == 1 && [1, 3, 2].sum() == 6 && [1.5, 2.5].sum() == 4.0",
    "[1, 2, 3].isSorted() && ![2, 1].isSorted() && self.names.isSorted()",
    "self.names.indexOf('x2') == 1 && self.names.lastIndexOf('x1') == 0 && self.names.indexOf('x3') == -1",
    "sets.contains([1, 2, 3], [2]) && sets.equivalent([1, 2], [2, 1, 1]) && !sets.intersects([1], [2])",
    "self.word.split('k') == ['o', ''] && self.names.join('-') == 'x1-x2' && self.word.upperAscii() == 'OK'",
    "'tacocat'.indexOf('c') == 2 && 'hello'.substring(1, 3) == 'el' && ' a '.trim() == 'a'",
    "'hello'.replace('l', 'w') == 'hewwo' && 'hello'.charAt(4) == 'o' && 'aB'.lowerAscii() == 'ab'",
    "'%s is %d'.format(['x', 3]) == 'x is 3' && 'abc'.matches('^[a-c]+$')",
    "duration('90s') > duration('1m') && timestamp('2026-01-02T03:04:05Z').getFullYear() == 2026",
    "optional.of(1).hasValue() && self.?maybe.orValue('none') == 'none' && has(self.least)",
    "self.names.exists(n, n == 'x1') && self.names.exists_one(n, n == 'x2') && self.names.all(n, n != '')",
    "self.names.filter(n, n != 'x1') == ['x2'] && self.names.map(n, n + '!') == ['x1!', 'x2!']",
    "'q' in self.counts && self.counts['q'] == 7 && self.counts.all(k, self.counts[k] > 0) && 7 in [7]",
]


async def test_what_kubernetes_adds_to_the_language_is_there(api: Api) -> None:
    group = f"g{uuid.uuid4().hex[:8]}.example.com"
    path = f"/apis/{group}/v1/namespaces/{api.namespace}/things"
    spec = {**SPEC, **rules(*FUNCTIONS)}
    made = await api.post(CRDS, definition(group, spec))
    assert made.code == 201, made.body
    thing = {"names": ["x1", "x2"], "counts": {"q": 7}}
    answers: list[Answer] = []

    async def answered() -> bool:
        answers.append(await tried(api, path, thing))
        return answers[-1].code in (201, 422)

    await eventually(answered)
    assert answers[-1].code == 201, answers[-1].body["message"]
    await api.delete(f"{CRDS}/things.{group}")
