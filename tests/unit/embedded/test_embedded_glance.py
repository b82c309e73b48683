"""A glance at an object shows the same cells as reading all of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.embedded.server.documents import decode, encode
from ingot.embedded.server.kinds.columns import of_crd
from ingot.embedded.server.kinds.glance import glance

PATHS = (".spec", ".spec.a", ".spec.a.b", ".spec.c", ".status.when", ".metadata.labels.x")
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", "2026-11-16T00:00:00Z"])
NAMES = st.sampled_from(["a", "b", "c", "when", "labels", "x", "other"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.sampled_from(["spec", "status", "metadata", "kind"]), VALUES, max_size=4)


def columns(*paths: str) -> Any:
    kinds = {".status.when": "date", ".spec.c": "integer"}
    return of_crd([{"name": path, "type": kinds.get(path, "string"), "jsonPath": path} for path in paths])


@given(document=DOCUMENTS, paths=st.lists(st.sampled_from(PATHS), unique=True))
def test_the_cells_are_those_of_the_whole_object(document: dict[str, Any], paths: list[str]) -> None:
    shown = columns(*paths)
    body = encode(document)
    assert [c.read(glance(shown)(body)) for c in shown] == [c.read(decode(body)) for c in shown]


@pytest.mark.parametrize(
    "path", [".status.conditions[?(@.type=='Ready')].status", ".spec.items[0]", ".spec.*"]
)
def test_a_column_that_is_no_plain_path_needs_the_whole_object(path: str) -> None:
    body = encode({"spec": {"items": [1]}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    assert glance(columns(".spec.a", path))(body) == decode(body)


def test_what_no_column_shows_is_not_read() -> None:
    body = encode({"spec": {"a": {"b": 1, "large": [0] * 100}}, "status": {"large": [0] * 100}})
    assert glance(columns(".spec.a.b"))(body) == {"spec": {"a": {"b": 1}}}
