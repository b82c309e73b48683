"""The config that the installed system gets: the user's to the letter, and ours only where the user has nothing."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import unquote

import pytest

from ingot.formats.ignition import parse_ignition
from ingot_agent.ignition import config

KEY = "ssh-ed25519 AAAA me"
USER = '{"ignition": {"version": "3.4.0"},\n "storage": {"files": [{"path": "/a"}]}}'


def made(user: str | None, hostname: str | None = None, keys: tuple[str, ...] = ()) -> Any:
    written = config(user, hostname=hostname, ssh_keys=keys)
    return None if written is None else json.loads(written)


def merged(document: Any) -> str:
    (child,) = document["ignition"]["config"]["merge"]
    assert set(child) == {"source"}
    return base64.b64decode(child["source"].removeprefix("data:;base64,")).decode()


def test_nothing_is_written_where_nobody_has_anything_to_say() -> None:
    assert made(None) is None


def test_the_users_config_alone_is_written_as_it_is() -> None:
    assert config(USER, hostname=None, ssh_keys=()) == USER.encode()


def test_the_machines_name_stands_beneath_the_users_config() -> None:
    document = made(USER, "h1")
    assert merged(document) == USER
    (file,) = document["storage"]["files"]
    assert (file["path"], file["mode"], file["overwrite"]) == ("/etc/hostname", 0o644, True)
    assert unquote(file["contents"]["source"]) == "data:,h1\n"


def test_a_name_without_a_users_config_is_a_config_of_its_own() -> None:
    document = made(None, "h1", (KEY,))
    assert document["ignition"] == {"version": "3.0.0"}
    assert document["passwd"] == {"users": [{"name": "core", "sshAuthorizedKeys": [KEY]}]}


@pytest.mark.parametrize("kind", ["files", "links", "directories"])
def test_the_users_own_hostname_wins(kind: str) -> None:
    user = json.dumps(
        {"ignition": {"version": "3.0.0"}, "storage": {kind: [{"path": "/b"}, {"path": "/etc/hostname"}]}}
    )
    assert config(user, hostname="h1", ssh_keys=()) == user.encode()


def test_keys_that_core_has_already_are_not_given_twice() -> None:
    users = [{"name": "core", "sshAuthorizedKeys": [KEY]}, {"name": "x", "sshAuthorizedKeys": ["other"]}]
    user = json.dumps({"ignition": {"version": "3.0.0"}, "passwd": {"users": users}})
    assert config(user, hostname=None, ssh_keys=(KEY,)) == user.encode()
    document = made(user, None, (KEY, "other", "other"))
    assert document["passwd"]["users"][0]["sshAuthorizedKeys"] == ["other"]


@pytest.mark.parametrize(
    "odd",
    [
        {"storage": None},
        {"storage": {"files": None}},
        {"storage": {"files": [7]}},
        {"passwd": {"users": [{"name": "core"}]}},
        {"passwd": []},
        {"storage": {"files": [{"path": 3}]}},
    ],
)
def test_an_odd_config_is_the_users_own_matter(odd: dict[str, Any]) -> None:
    user = json.dumps({"ignition": {"version": "3.1.0"}, **odd})
    assert merged(made(user, "h1", (KEY,))) == user


@pytest.mark.parametrize("user", [None, USER])
def test_what_is_written_has_the_shape_of_an_ignition_config(user: str | None) -> None:
    _, warnings = parse_ignition(config(user, hostname="h1", ssh_keys=(KEY,)) or b"")
    assert warnings == []
