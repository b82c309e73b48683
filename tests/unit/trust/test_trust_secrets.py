"""Secrets can be used and not seen."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bcrypt
import pytest

from ingot.trust import Secret, htpasswd_line, kept_token, random_token, redact


def test_a_secret_does_not_show_in_any_text() -> None:
    secret = Secret("hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {[secret]} {{'password': {secret!r}}}"
    assert secret.reveal() == "hunter2"


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("GET https://10.0.0.1:9999/v1/commands/?wait=true&agent_token=abcDEF123 refused", "abcDEF123"),
        ("driver_info: {'redfish_password': 'hunter2', 'x': 1}", "hunter2"),
        ('{"password": "hunter2"}', "hunter2"),
        ("could not read https://admin:hunter2@images.example/a.raw", "hunter2"),
        ("Authorization: Bearer abc.def", "abc.def"),
        ("{'client_secret': 'abc.def'}", "abc.def"),
        ("client_secret_key=abc.def", "abc.def"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ('{"password": "correct horse, battery"}', "battery"),
        ("{'password': 'it; has) all} of] them & more'}", "more"),
        ("password=b'hunter2'", "hunter2"),
        ('body was "{\\"password\\": \\"hunter2\\"}"', "hunter2"),
        ("https://admin:hun@ter2@images.example/a.raw", "ter2"),
        ("https://abcDEF123@images.example/a.raw", "abcDEF123"),
        (f"cannot insert https://10.0.0.1:6385/files/{'aB3' * 13}x/redfish/boot-1.iso: 403", "aB3"),
    ],
)
def test_secrets_in_words_of_others_are_taken_out(text: str, gone: str) -> None:
    assert gone not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "Deploy step deploy.write_image failed: checksum sha256 does not match",
        "HTTP GET https://10.0.0.1:8000/redfish/v1/Systems/1 returned code 401",
        "the BMC refused the user name or password (HTTP 401)",
        "mail the owner of https://images.example/a.raw, admin@images.example",
        "Secret rack/h1-secret: the value is not text",
        "Got HTTP code 404 for https://images.example/files/0b7f4c1e-93cf-4b6a-8f25-6a0f6f5d2f11/a.raw",
    ],
)
def test_words_without_secrets_stay_as_they_are(text: str) -> None:
    assert redact(text) == text


def test_a_long_text_without_any_gaps_is_read_once_and_not_again_from_each_letter() -> None:
    blob = "QUJD" * 100_000
    assert redact(f"configdrive {blob}: password=hunter2") == f"configdrive {blob}: password=******"


def test_a_known_secret_is_taken_out_wherever_it_stands() -> None:
    assert "hunter2" not in redact("tried <hunter2>", Secret("hunter2"))


def test_a_token_is_made_once_and_kept_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "token"
    token = kept_token(path)
    assert kept_token(path) == token
    assert len(token.reveal()) == 40
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("left", [b"", b"\n"])
def test_an_empty_file_is_no_token(tmp_path: Path, left: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(left)
    token = kept_token(path)
    assert len(token.reveal()) == 40
    assert kept_token(path) == token


def test_many_who_want_the_same_new_token_all_get_the_one_that_is_kept(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            path = tmp_path / str(number) / "token"
            tokens = set(pool.map(kept_token, [path] * 8))
            assert tokens == {kept_token(path)}


def test_two_random_tokens_differ() -> None:
    assert random_token() != random_token()


def test_a_password_file_line_fits_its_password_and_does_not_show_it() -> None:
    line = htpasswd_line("ironic", Secret("hunter2"), rounds=4)
    user, _, hashed = line.partition(":")
    assert user == "ironic"
    assert "hunter2" not in line
    assert bcrypt.checkpw(b"hunter2", hashed.encode())


@pytest.mark.parametrize(
    "url",
    [
        "https://b.s3.amazonaws.com/i.raw?X-Amz-Algorithm=AWS4&X-Amz-Credential=HUSH%2F20261116&X-Amz-Signature=HUSH",
        "https://b.s3.amazonaws.com/i.raw?X-Amz-Expires=60&X-Amz-Security-Token=HUSH",
        "https://b.s3.amazonaws.com/i.raw?AWSAccessKeyId=HUSH&Signature=HUSH&Expires=1",
        "https://storage.googleapis.com/b/i.raw?X-Goog-Date=1&x-goog-signature=HUSH",
        "https://a.blob.core.windows.net/c/i.raw?sv=2026&se=2026-11-16&sig=HUSH%3D",
        "https://d.cloudfront.net/i.raw?Expires=1&amp;Signature=HUSH~-&amp;Key-Pair-Id=HUSH",
        "https://127.0.0.1/i.raw?api_key=HUSH&size=2",
    ],
)
def test_what_signs_a_url_is_not_shown(url: str) -> None:
    """Whoever has the whole of such a URL can read the image, and Ironic repeats it in its errors."""
    told = redact(f"Validation of image href {url!r} failed: Got HTTP code 403 for {url}, retrying")
    assert "HUSH" not in told
    assert url.partition("?")[0] in told
    assert told.endswith(", retrying")


def test_words_that_only_look_like_a_signature_stay() -> None:
    text = "bad signature of the update; policy=strict was not asked for (sig 11)"
    assert redact(text) == text
