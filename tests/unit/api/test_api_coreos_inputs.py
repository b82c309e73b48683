"""What a CoreOS host may be told at its first boot; what is wrong is said, and never repeated."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.api.inputs.coreos import ARGUMENTS, COPY_NETWORK, KEYFILES, problem_with

CONFIG = '{"ignition": {"version": "3.4.0"}}'


@pytest.mark.parametrize(
    ("user_data", "meta_data"),
    [
        ("", {}),
        ("\n", {}),
        (CONFIG, {}),
        ('{"ignition": {"version": "3.6.0-experimental"}, "x": 1}', {}),
        (CONFIG, {"coreos_append_karg": ["console=ttyS0,115200n8", "rd.luks.name=ab-cd=root"]}),
        (
            CONFIG,
            {"coreos_append_karg": "quiet ip=10.0.0.2::10.0.0.1:24:h:eth0:none", "name": {"any": "thing"}},
        ),
        (CONFIG, {"coreos_delete_karg": [], "coreos_copy_network": True}),
        (CONFIG, {"coreos_append_karg": None, "coreos_copy_network": "no"}),
        (CONFIG, {"coreos_network_keyfiles": {"eth0.nmconnection": "[connection]\n"}}),
        (CONFIG, {"coreos_network_keyfiles": None}),
    ],
)
def test_what_the_installer_can_use_is_taken(user_data: str, meta_data: dict[str, object]) -> None:
    assert problem_with(user_data, meta_data) is None


@pytest.mark.parametrize(
    ("user_data", "meta_data", "words"),
    [
        ("#cloud-config\nsesame", {}, "is a cloud-config"),
        ("#!/bin/sh\nsesame", {}, "is not JSON"),
        ('"sesame"', {}, "no ignition.version"),
        ("[" * 100_000, {}, "is not JSON"),
        ('{"ignition": "sesame"}', {}, "no ignition.version"),
        ('{"ignition": {"version": 3}}', {}, "no ignition.version"),
        ('{"ignition": {"version": "2.3.0-sesame"}}', {}, "another specification than 3"),
        (CONFIG, {"coreos_append_karg": ["a$(sesame)"]}, "coreos_append_karg"),
        (CONFIG, {"coreos_append_karg": 5}, "neither a list"),
        (CONFIG, {"coreos_delete_karg": ["ok", "--sesame"]}, "coreos_delete_karg"),
        (CONFIG, {"coreos_copy_network": "sesame"}, "neither true nor false"),
        (CONFIG, {"coreos_copy_network": ["sesame"]}, "neither true nor false"),
        (CONFIG, {"coreos_network_keyfiles": "sesame"}, "not a mapping of texts by file names"),
        (CONFIG, {"coreos_network_keyfiles": {"../sesame": ""}}, "not a mapping of texts by file names"),
        (CONFIG, {"coreos_network_keyfiles": {".sesame": ""}}, "not a mapping of texts by file names"),
        (CONFIG, {"coreos_network_keyfiles": {"é" * 128: ""}}, "not a mapping of texts by file names"),
        (CONFIG, {"coreos_network_keyfiles": {"eth0": ["sesame"]}}, "not a mapping of texts by file names"),
    ],
)
def test_what_it_cannot_use_is_said_without_being_repeated(
    user_data: str, meta_data: dict[str, object], words: str
) -> None:
    problem = problem_with(user_data, meta_data)
    assert problem is not None
    assert words in problem
    assert "sesame" not in problem
    assert problem.endswith(".")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["ignition", "version", "x"]), inner)
    ),
    max_leaves=8,
)


@given(
    st.text() | _JSON.map(json.dumps),
    st.dictionaries(st.sampled_from([*ARGUMENTS, COPY_NETWORK, KEYFILES, "x"]), _JSON),
)
def test_anything_is_taken_or_refused_in_a_sentence(user_data: str, meta_data: dict[str, object]) -> None:
    problem = problem_with(user_data, meta_data)
    assert problem is None or problem.startswith(("the user data", "the metadata"))
