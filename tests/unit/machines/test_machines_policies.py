"""Which namespaces may have hosts of which, and how a pattern for their names is read."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.api.core import Namespace
from ingot.api.hostdeploypolicy import HostDeployPolicy
from ingot.api.inputs.name_patterns import NamePattern, UnusablePattern
from ingot.api.meta import ObjectMeta
from ingot.machines.claims.policies import allows, host_namespaces, problem_with


def policy(
    namespace: str = "racks", *, metadata: dict[str, Any] | None = None, **demands: Any
) -> HostDeployPolicy:
    body = {
        "metadata": {"name": "p", "namespace": namespace, **(metadata or {})},
        "spec": {"hostClaimNamespaces": demands},
    }
    return msgspec.convert(body, HostDeployPolicy)


def tenant(name: str = "tenant-1", **labels: str) -> Namespace:
    return Namespace(metadata=ObjectMeta(name=name, labels=labels))


@pytest.mark.parametrize(
    ("demands", "allowed", "refused"),
    [
        ({"names": ["a", "b"]}, [tenant("a"), tenant("b")], [tenant("c"), tenant("aa")]),
        ({"nameMatches": "nant"}, [tenant()], [tenant("other")]),
        (
            {"nameMatches": "^tenant-[0-9]+$"},
            [tenant("tenant-12")],
            [tenant("tenant-x"), tenant("my-tenant-1")],
        ),
        ({"nameMatches": ".*"}, [tenant("a"), tenant("z-9")], []),
        ({"hasLabels": [{"name": "tier"}]}, [tenant(tier="gold"), tenant(tier="")], [tenant()]),
        (
            {"hasLabels": [{"name": "tier", "value": "gold"}]},
            [tenant(tier="gold")],
            [tenant(tier="tin"), tenant()],
        ),
        ({"hasLabels": [{"name": "tier", "value": ""}]}, [tenant(tier="gold")], [tenant()]),
        (
            {"hasLabels": [{"name": "tier", "value": "gold"}, {"name": "paid"}]},
            [tenant(tier="gold", paid="yes")],
            [tenant(tier="gold"), tenant(paid="yes")],
        ),
        (
            {"names": ["tenant-1"], "nameMatches": "1$", "hasLabels": [{"name": "paid"}]},
            [tenant(paid="yes")],
            [tenant(), tenant("tenant-21", paid="yes")],
        ),
        ({"names": ["a"], "nameMatches": "^b"}, [], [tenant("a"), tenant("b")]),
        ({"names": []}, [], [tenant()]),
        ({"names": [], "nameMatches": ".*"}, [], [tenant()]),
    ],
)
def test_every_demand_that_a_policy_makes_has_to_be_met(
    demands: dict[str, Any], allowed: list[Namespace], refused: list[Namespace]
) -> None:
    for namespace in allowed:
        assert allows(policy(**demands), namespace), namespace
    for namespace in refused:
        assert not allows(policy(**demands), namespace), namespace


def test_one_policy_of_several_is_enough_and_speaks_for_its_own_namespace() -> None:
    policies = [
        policy("racks", names=["other"]),
        policy("racks", nameMatches="^tenant"),
        policy("cellar", names=["tenant-1"]),
        policy("attic", names=["other"]),
    ]
    assert host_namespaces(policies, tenant()) == {"racks", "cellar"}


def test_without_a_policy_nobody_may_have_anything() -> None:
    assert host_namespaces([], tenant()) == frozenset()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (policy(), "makes no demand"),
        (HostDeployPolicy(metadata=ObjectMeta(name="p", namespace="racks")), "says nothing"),
        (policy(nameMatches="tenant-("), "a '(' is not closed"),
        (policy(nameMatches="(?=x)", names=["tenant-1"]), "can only be"),
        (policy(names=["tenant-1", "Not OK"]), "no namespace can have this name"),
        (policy(names=["tenant-1"], hasLabels=[{"name": "/"}]), "no label can have this name"),
    ],
)
def test_a_policy_that_cannot_be_used_lets_nobody_and_says_why(found: HostDeployPolicy, words: str) -> None:
    assert words in str(problem_with(found))
    assert not allows(found, tenant())


def test_a_policy_that_is_being_deleted_lets_nobody() -> None:
    going = policy(names=["tenant-1"], metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert not allows(going, tenant())
    assert problem_with(going) is None


# Patterns


@pytest.mark.parametrize(
    ("pattern", "found", "not_found"),
    [
        ("", ["", "a"], []),
        ("a|b", ["xa", "b"], ["c"]),
        ("^(?:a|b-)+$", ["ab-a"], ["", "abc"]),
        ("^a{2}$", ["aa"], ["a", "aaa"]),
        ("^a{2,}$", ["aa", "aaaa"], ["a"]),
        ("^a{1,2}?$", ["a", "aa"], ["aaa"]),
        # Go takes these for text, and no name has braces.
        ("a{,2}", [], ["a", "aa"]),
        ("a{x", [], ["ax"]),
        (r"^\w+$", ["a1"], ["a-1"]),
        (r"\bb\b", ["a-b", "b"], ["ab"]),
        (r"\Bb", ["ab"], ["b", "a-b"]),
        (r"\Aa\z", ["a"], ["ab"]),
        (r"a\.b", [], ["axb"]),
        (r"a\-b", ["a-b"], ["ab"]),
        ("[^a-y0-9]", ["z", "a-b"], ["abc"]),
        ("[[:alpha:]]", ["1a"], ["1-2"]),
        ("[[:^alpha:]]", ["a1"], ["ab"]),
        ("[]a]", ["a"], ["b"]),
        ("[a-]", ["-"], ["b"]),
        (r"[\d-]", ["-", "1"], ["a"]),
        ("(?P<who>a)", ["a"], ["b"]),
        ("A", [], ["a"]),
        ("(a*)*$", ["", "b"], []),
        ("(|a)b", ["b", "ab"], ["a"]),
    ],
)
def test_a_pattern_means_what_it_means_to_go(pattern: str, found: list[str], not_found: list[str]) -> None:
    read = NamePattern(pattern)
    assert [name for name in found if not read.is_in(name)] == []
    assert [name for name in not_found if read.is_in(name)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "a**",
        "a*+",
        "a++",
        "a{2}{3}",
        "*a",
        "a|*",
        "(",
        ")",
        "[",
        "[]",
        "[z-a]",
        r"[a-\d]",
        "[[:nonsense:]]",
        "\\",
        r"\1",
        r"\Z",
        r"\pL",
        r"\Qa\E",
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        "(?<!a)b",
        "(?P=who)",
        "(?i)a",
        "(?(1)a|b)",
        "(?>a)",
        "(?#note)",
        "a{2,1}",
        "a{1001}",
        "x{400}y{400}",
        "((((){1000}){1000}){1000}){1000}",
        "(" * 101 + ")" * 101,
        "a" * 1025,
    ],
)
def test_what_go_and_python_do_not_both_understand_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(UnusablePattern):
        NamePattern(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(a*)*b", "(a?){30}a{30}c", "((a|aa)+)+!"])
def test_a_pattern_that_python_would_never_be_done_with_is_answered(pattern: str) -> None:
    name = "a" * 62 + "-"
    assert NamePattern(pattern).is_in(name) == (pattern == "(a|a)*$")


_PARTS = st.sampled_from(["a", "b", "-", "1", ".", "[ab]", "[^a]", "[0-9]", r"\w", r"\b", "^", "$", "(?:)"])
_PATTERNS = st.recursive(
    _PARTS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda both: f"(?:{both[0]}|{both[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,1}", "{1,}", "*?"])).map(
            lambda both: f"({both[0]}){both[1]}"
        ),
    ),
    max_leaves=8,
)


@given(_PATTERNS, st.text("ab-1", max_size=7))
def test_what_both_languages_understand_is_found_where_python_finds_it(pattern: str, name: str) -> None:
    assert NamePattern(pattern).is_in(name) == (re.search(pattern, name) is not None)
