"""Reading bodies: YAML's words and limits, fields that are there twice, objects that are too deep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from running_server import WIDGETS, served, widget_crd

from ingot.embedded.server.face import yamls
from ingot.embedded.server.face.bodies import repeated_fields

# YAML


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("yes", True),
        ("Off", False),
        ("y", True),
        ("'yes'", "yes"),
        ("!!str yes", "yes"),
        ('!!int "3"', 3),
        ("12", 12),
        ("-12", -12),
        ("+12", 12),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", 15),
        ("0b101", 5),
        ("08", 8),
        ("1.5", 1.5),
        ("1e3", 1000),
        (".5", 0.5),
        ("1.", 1),
        ("2026-01-01", "2026-01-01"),
        ("1.2.3", "1.2.3"),
        ("1:30", "1:30"),
        ("0xZZ", "0xZZ"),
        ("99999999999999999999", 1e20),
        ("1_000.5", 1000.5),
        ("_1", "_1"),
        # What fits in no number is text.
        ("0x_", "0x_"),
        ("1e999", "1e999"),
        ("0x1ffffffffffffffff", "0x1ffffffffffffffff"),
        ("9" * 400, "9" * 400),
        ("-" + "9" * 5000, "-" + "9" * 5000),
        ("- 1\n- [a, {b: c}]", [1, ["a", {"b": "c"}]]),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("base: &b {x: 1, z: 1}\nd: {<<: *b, z: 2}", {"base": {"x": 1, "z": 1}, "d": {"x": 1, "z": 2}}),
        ("1: a\ntrue: b\n1.5: c\n~: d", {"1": "a", "true": "b", "1.5": "c", "null": "d"}),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("# only a comment", None),
        ("a: 1\n---\nb: 2", {"a": 1}),
    ],
)
def test_yaml_is_read_in_the_words_of_kubernetes(text: str, value: Any) -> None:
    read = yamls.read(text.encode()).value
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1", "line 2: did not find expected"),
        ("a: b: c", "line 1"),
        ("a: *nobody", "unknown anchor 'nobody' referenced"),
        ("{[1]: 2}", "a key of a map is not plain"),
        ("a: .inf", "cannot be said in JSON"),
        ("a: .nan", "cannot be said in JSON"),
        ("{<<: 1}", "map merge requires map"),
        ("[" * 200 + "]" * 200, "exceeded max depth"),
        ("\x00", "yaml:"),
    ],
)
def test_what_cannot_be_json_is_told_where(text: str, words: str) -> None:
    with pytest.raises(yamls.NotYaml, match=words):
        yamls.read(text.encode())


def test_aliases_are_copies_and_their_number_has_a_limit() -> None:
    read = yamls.read(b"a: &x {b: 1}\nc: *x").value
    assert read["a"] is not read["c"]
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    with pytest.raises(yamls.NotYaml, match="excessive aliasing"):
        yamls.read("\n".join(lines).encode())


def test_an_alias_of_what_it_is_in_is_no_endless_loop() -> None:
    with pytest.raises(yamls.NotYaml, match="unknown anchor"):
        yamls.read(b"a: &x [*x]")


def test_keys_that_are_there_twice_are_told_by_line_and_the_last_one_counts() -> None:
    read = yamls.read(b"a: 1\nb: {c: 1, c: 2}\na: 3")
    assert read.value == {"b": {"c": 2}, "a": 3}
    assert read.repeated == ['line 2: key "c" already set in map', 'line 3: key "a" already set in map']


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_whatever_is_written_as_yaml_is_read_back(value: Any) -> None:
    # Quoted, because some words are more to Kubernetes than they are to the writer.
    assert yamls.read(yaml.safe_dump(value, default_style='"').encode()).value == value


words = st.sampled_from(
    ["y", "Y", "n", "on", "~", "0o7", "1e3", "08", "-.5", "1E+5", "1_000", ".inf", "", "0x1F"]
)


@given(
    st.recursive(json_values | words, lambda inner: st.dictionaries(words, inner, max_size=3), max_leaves=4)
)
def test_whatever_the_server_writes_as_yaml_is_read_back_by_readers_like_it(value: Any) -> None:
    assert yamls.read(yamls.written(json.dumps(value).encode())).value == value


def test_a_document_that_is_too_deep_for_the_writer_of_yaml_is_written_as_json_which_is_yaml() -> None:
    deep = b'{"a":' * 600 + b"1" + b"}" * 600
    assert yamls.written(deep) == deep
    assert yamls.written(b'{"a":{"b":1}}') == b"a:\n  b: 1\n"


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_bytes_bring_the_yaml_reader_down(data: bytes) -> None:
    try:
        read = yamls.read(data)
    except yamls.NotYaml as error:
        assert str(error).startswith("yaml:")  # noqa: PT017 (both outcomes are fine, an accident is not)
    else:
        json.dumps(read.value)


# What is there twice


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('{"a":1,"a":2}', ["a"]),
        ('{"a" :1, "a" : 2}', ["a"]),
        ('{"a":{"b":[{"c":1,"c":1}]}}', ["a.b[0].c"]),
        ('{"a":{"x":1},"b":{"x":1}}', []),
        ('{"a":"\\":\\":","b":1}', []),
        ('{"a":"x","a":"\\":"}', ["a"]),
        ('{"a":1,"a":2,"a":3}', ["a", "a"]),
        ("[]", []),
    ],
)
def test_fields_that_are_there_twice_are_found_by_their_path(body: str, found: list[str]) -> None:
    assert repeated_fields(body.encode(), json.loads(body)) == [f'duplicate field "{path}"' for path in found]


@given(json_values, st.sampled_from([None, 1]), st.booleans())
def test_a_document_without_repetition_has_none_however_it_is_written(
    value: Any, indent: int | None, ascii_: bool
) -> None:
    assert repeated_fields(json.dumps(value, indent=indent, ensure_ascii=ascii_).encode(), value) == []


# A server that is sent too much of it


@pytest.mark.parametrize("type_", ["application/json", "application/apply-patch+yaml"])
async def test_an_object_that_is_nested_too_deeply_is_refused(tmp_path: Path, type_: str) -> None:
    free = {"free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    deep: Any = "x"
    for _ in range(900):
        deep = {"a": deep}
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"free": deep},
    }
    method, path = ("POST", WIDGETS) if type_.endswith("json") else ("PATCH", f"{WIDGETS}/w?fieldManager=m")
    async with (
        served(tmp_path, crds=[widget_crd(properties=free)]) as api,
        api.session.request(
            method, api.url + path, data=json.dumps(widget).encode(), headers={"Content-Type": type_}
        ) as response,
    ):
        assert response.status == 400
        assert "nested too deeply" in (await response.json())["message"]
