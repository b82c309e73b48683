"""Credentials for registries, as docker, podman and clusters keep them, and what a registry asks for."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.formats.oci import parse_reference
from ingot.images.release import ReleaseError
from ingot.images.release.registry import find_pull_secrets
from ingot.images.release.registry.challenges import BasicChallenge, BearerChallenge, parse_challenges
from ingot.images.release.registry.pull_secrets import parse_pull_secrets


def auth(user: str, password: str) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}


def found_for(content: object, reference: str) -> tuple[str, str] | None:
    found = parse_pull_secrets(json.dumps(content).encode(), "auth.json").find(parse_reference(reference))
    return (found.user, found.password.reveal()) if found else None


def test_the_longest_entry_that_fits_counts() -> None:
    content = {
        "auths": {
            "quay.io": auth("all", "1"),
            "quay.io/team": auth("team", "2"),
            "quay.io/team/app": auth("app", "3:with:colons"),
            "https://registry.example/v2/": auth("url", "4"),
            "https://index.docker.io/v1/": {"username": "hub", "password": "5"},
        }
    }
    assert found_for(content, "quay.io/other/x") == ("all", "1")
    assert found_for(content, "quay.io/team/x:1") == ("team", "2")
    assert found_for(content, "quay.io/team/app:1") == ("app", "3:with:colons")
    assert found_for(content, "quay.io/teamwork/x") == ("all", "1")
    assert found_for(content, "registry.example/x") == ("url", "4")
    assert found_for(content, "docker.io/library/x") == ("hub", "5")
    assert found_for(content, "elsewhere.example/x") is None


def test_credentials_that_a_helper_holds_are_told() -> None:
    content = {"auths": {"quay.io": {}}, "credsStore": "desktop", "credHelpers": {"gcr.io": "gcloud"}}
    secrets = parse_pull_secrets(json.dumps(content).encode(), "auth.json")
    for registry in ("quay.io", "gcr.io"):
        reference = parse_reference(f"{registry}/x")
        assert secrets.find(reference) is None
        assert "credential helper" in secrets.why_none(reference)
    assert "has nothing for other.example" in secrets.why_none(parse_reference("other.example/x"))


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"auths": {"quay.io": {"auth": "s3cret!"}}}', b"\xff s3cret"]
)
def test_a_broken_file_is_told_without_what_is_in_it(content: bytes) -> None:
    with pytest.raises(ReleaseError) as caught:
        parse_pull_secrets(content, "auth.json")
    assert "auth.json" in str(caught.value)
    told: BaseException | None = caught.value
    while told is not None:
        assert "s3cret" not in repr(told)
        told = None if told.__suppress_context__ else told.__cause__ or told.__context__


def test_the_usual_places_are_looked_at_in_their_order(tmp_path: Path) -> None:
    environment = {
        "HOME": str(tmp_path / "home"),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "REGISTRY_AUTH_FILE": str(tmp_path / "named.json"),
    }
    places = [
        tmp_path / "home" / ".docker" / "config.json",
        tmp_path / "home" / ".config" / "containers" / "auth.json",
        tmp_path / "run" / "containers" / "auth.json",
        tmp_path / "named.json",
    ]
    assert find_pull_secrets(environment).where == "no file with credentials"
    for path in places:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"auths": {}}))
        assert find_pull_secrets(environment).where == str(path)
    with pytest.raises(ReleaseError, match="cannot be read"):
        find_pull_secrets(environment, tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (['Basic realm="x"'], BasicChallenge()),
        (["basic"], BasicChallenge()),
        (
            [
                'Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a:pull,push"'
            ],
            BearerChallenge("https://auth.example/token", "registry.example", "repository:a:pull,push"),
        ),
        (['Basic realm="a, b=c", Bearer realm=https://t'], BearerChallenge("https://t", None, None)),
        (["Bearer realm=https://t", "Basic realm=x"], BearerChallenge("https://t", None, None)),
        (['Bearer realm="a\\"b"'], BearerChallenge('a"b', None, None)),
        (["Bearer"], None),
        (["Negotiate", "Digest x=1"], None),
        ([], None),
    ],
)
def test_what_a_registry_asks_for(headers: list[str], expected: object) -> None:
    assert parse_challenges(headers) == expected


@given(st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=255)), max_size=3))
def test_any_header_is_read_or_passed_over(headers: list[str]) -> None:
    parse_challenges(headers)
