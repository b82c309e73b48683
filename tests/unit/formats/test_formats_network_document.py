"""Network data comes from users: whatever the text is, it gets values, or one sentence, quickly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot.formats import FormatError, UnsupportedFormat
from ingot.formats.network import keyfiles_of_network_data, keyfiles_of_nmstate, keyfiles_of_secret
from ingot.formats.network.document import DEEPEST, LARGEST, MOST, parse_document
from ingot.formats.network.keyfile import keyfile
from network_states import STATES


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"a: 52:54:00:12:34:56", {"a": "52:54:00:12:34:56"}),
        (b"a: yes", {"a": "yes"}),
        (b"a: 'true'", {"a": "true"}),
        (b"a: True", {"a": True}),
        (b"a: 0x1F", {"a": 31}),
        (b"a: 010", {"a": "010"}),
        (b"a: -3", {"a": -3}),
        (b"a: 1.5", {"a": 1.5}),
        (b"a: 2026-01-02", {"a": "2026-01-02"}),
        (b"a:", {"a": None}),
        (b"802.1x: ~", {"802.1x": None}),
        (b"1: 2", {"1": 2}),
        (b"\xef\xbb\xbfa: 1", {"a": 1}),
        (b'{"a":1,"b":[true,null],\n\t"c":"x\\/\\u00e9"}', {"a": 1, "b": [True, None], "c": "x/é"}),
        (b"a: &x [1, 2]\nb: *x\nc: [*x, *x]", {"a": [1, 2], "b": [1, 2], "c": [[1, 2], [1, 2]]}),
        (b"a: &x text\nb: *x", {"a": "text", "b": "text"}),
        (b"", None),
    ],
)
def test_a_text_is_read_as_nmstate_reads_it(text: bytes, value: object) -> None:
    assert parse_document(text) == value


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.text(st.characters(min_codepoint=32, max_codepoint=126)),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc- ", max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc", max_size=3), JSON))
@settings(max_examples=40)
def test_json_is_read_as_json(value: dict[str, Any]) -> None:
    assert parse_document(json.dumps(value).encode()) == value


def bomb(levels: int) -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, levels)]
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (bomb(9), f"more than {MOST} values, with all aliases written out"),
        (b"[" * 100_000, f"nested more than {DEEPEST} deep"),
        (b'{"a":' * 5_000, f"nested more than {DEEPEST} deep"),
        (b"- " * 100_000, f"nested more than {DEEPEST} deep"),
        (b"- 1\n" * (MOST + 1), f"more than {MOST} values"),
        (b"#" * (LARGEST + 1), f"more than {LARGEST} are not read"),
        (b"a: &x [*x]", "the alias 'x' stands for nothing, or holds itself"),
        (b"a: *nobody", "the alias 'nobody' stands for nothing"),
        (b"a: 1\na: 2", "line 2: 'a' is there twice"),
        (b"? [1]\n: 2", "line 1: a key has to be text"),
        (b"? *x\n: 2", "the alias 'x' stands for nothing"),
        (
            b"a: !!python/object/apply:os.system [x]",
            "the tag 'tag:yaml.org,2002:python/object/apply:os.system' is",
        ),
        (b"a: !!binary aGk=", "line 1: the tag 'tag:yaml.org,2002:binary' is not supported"),
        (b"a: 1\n...\n---\nb: 1", "more than one YAML document"),
        (b"a: [1", "not YAML or JSON: "),
        (b"a: \x00", "not YAML or JSON: "),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"a: " + b"9" * 5000, None),
    ],
    ids=range(18),
)
def test_a_hostile_text_gets_a_sentence(text: bytes, why: str | None) -> None:
    if why is None:
        assert isinstance(parse_document(text), dict)
        return
    with pytest.raises(FormatError) as refused:
        parse_document(text)
    assert why in str(refused.value)
    assert len(str(refused.value)) < 300


WORDS = st.sampled_from([
    "interfaces", "name", "type", "state", "ethernet", "bond", "vlan", "linux-bridge", "link-aggregation", "bridge", "port",
    "mode", "options", "ipv4", "ipv6", "enabled", "dhcp", "address", "ip", "prefix-length", "routes", "config", "destination",
    "next-hop-interface", "dns-resolver", "server", "search", "eth0", "192.0.2.1", "2001:db8::1", "up", "links", "networks",
    "services", "id", "phy", "bond_mode", "netmask", "link", "ip_address", "base-iface", "802.3ad", "::/0", "0.0.0.0/0",
    "mac-address", "52:54:00:00:00:01", "controller", "copy-mac-from", "identifier", "profile-name", "lldp", "mtu",
])  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5000) | st.floats() | WORDS | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=25,
)


@given(ANYTHING)
@settings(max_examples=60)
def test_anything_at_all_gives_files_or_an_error_of_the_format(value: object) -> None:
    text = yaml.safe_dump(value).encode()
    for read in (
        keyfiles_of_nmstate,
        keyfiles_of_network_data,
        lambda text: keyfiles_of_secret({"networkData": text}),
    ):
        check(files_or_reason(read, text))


def files_or_reason(read: Callable[[bytes], dict[str, bytes]], text: bytes) -> dict[str, bytes] | str:
    try:
        return read(text)
    except FormatError as error:
        return str(error)


def check(made: dict[str, bytes] | str) -> None:
    """A reason is one short sentence; a file is one by its name, and has lines of settings only."""
    if isinstance(made, str):
        assert "\n" not in made
        assert len(made) < 400
        return
    for name, content in made.items():
        assert name.endswith(".nmconnection")
        assert "/" not in name
        assert not name.startswith(".")
        for line in content.decode().splitlines():
            assert line == "" or line.startswith("[") or "=" in line


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.just("x" * 5000)
)


WRONG = st.one_of(SCALARS, st.lists(SCALARS, max_size=2), st.dictionaries(st.text(), SCALARS, max_size=2))


@st.composite
def damaged_states(draw: st.DrawFn, wrong: st.SearchStrategy[object] = WRONG) -> object:
    """A state that is right, but for one value in it."""
    state = yaml.safe_load(draw(st.sampled_from(sorted(STATES.values()))))
    place: Any = state
    while True:
        keys = list(range(len(place))) if isinstance(place, list) else list(place)
        if not keys:
            return state
        key = draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or draw(st.integers(0, 9)) == 0:
            place[key] = draw(wrong)
            return state
        place = place[key]


@given(damaged_states())
@settings(max_examples=60)
def test_one_wrong_value_gives_files_or_an_error_of_the_format(state: object) -> None:
    check(files_or_reason(keyfiles_of_nmstate, yaml.safe_dump(state, sort_keys=False).encode()))


@given(damaged_states(st.just("hunter2-is-the-password")))
@settings(max_examples=40)
def test_what_a_secret_holds_is_not_repeated(state: object) -> None:
    text = yaml.safe_dump(state, sort_keys=False).encode()
    made = files_or_reason(lambda text: keyfiles_of_secret({"nmstate": text}), text)
    assert not isinstance(made, str) or "hunter2" not in made


@pytest.mark.parametrize(
    "text", [b"hunter2", b"[hunter2]", b"interfaces: hunter2", b"a: *hunter2", b"!hunter2 {}", b"{hunter2"]
)
def test_a_secret_that_holds_something_else_is_not_repeated(text: bytes) -> None:
    for key in ("nmstate", "networkData"):
        with pytest.raises(FormatError) as refused:
            keyfiles_of_secret({key: text})
        assert "hunter2" not in str(refused.value)


def test_a_thousand_interfaces_are_a_thousand_files() -> None:
    state = {"interfaces": [{"name": f"eth{number}", "type": "ethernet"} for number in range(1000)]}
    assert len(keyfiles_of_nmstate(json.dumps(state).encode())) == 1000


def test_interfaces_stacked_without_end_are_no_matter() -> None:
    state = {
        "interfaces": [
            {"name": f"v{number}", "type": "vlan", "vlan": {"base-iface": f"v{number + 1}", "id": 1}}
            for number in range(3000)
        ]
    }
    assert len(keyfiles_of_nmstate(json.dumps(state).encode())) == 3000


def test_values_are_escaped_as_key_files_need_it() -> None:
    made = keyfile(
        {"a": {"text": "  \\ tab\t;", "list": ("x;y", "z"), "no": False, "n": 5, "empty": ""}, "b": {}}
    )
    assert made == b"[a]\nlist=x\\;y;z\nn=5\nno=false\ntext=\\s\\s\\\\ tab\\t;\n\n[b]\n"


def test_unsupported_is_told_apart_from_wrong() -> None:
    with pytest.raises(UnsupportedFormat):
        keyfiles_of_nmstate(b"ovs-db: {}")
    with pytest.raises(FormatError) as refused:
        keyfiles_of_nmstate(b"interfaces: 5")
    assert not isinstance(refused.value, UnsupportedFormat)


def test_the_examples_of_the_page_work() -> None:
    page = (Path(__file__).parents[3] / "docs" / "network-data.md").read_text()
    nmstate, openstack, _ = re.findall(r"(?:^    .*\n)+", page, re.MULTILINE)
    assert list(keyfiles_of_secret({"nmstate": nmstate.encode()})) == [
        "bond0.100.nmconnection",
        "bond0.nmconnection",
        "left.nmconnection",
        "right.nmconnection",
    ]
    assert list(keyfiles_of_secret({"networkData": openstack.encode()})) == [
        "enp1s0.nmconnection",
        "vlan2.nmconnection",
    ]
