"""What `ingot operator --controllers images` is told: where it listens, how it is called, and under which certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from cryptography import x509

from ingot.cli.parts.image_crew import ImageWork, image_options, image_work_from, where_images_are
from ingot.cli.parts.state import StateFolder
from ingot.images.controller import Listen

CLEAN = dict.fromkeys(
    ("INGOT_RELEASE_PAYLOAD", "INGOT_IMAGES_LISTEN", "INGOT_IMAGES_URL", "INGOT_MINIMAL_ISO", "DEPLOY_ISO"),
    "",
)


def work(state: Path, *arguments: str, **environment: str) -> ImageWork:
    @click.command()
    @image_options
    def found(**options: Any) -> None:
        heard.append(image_work_from(options | {"namespace": "rack"}, StateFolder(state)))

    heard: list[ImageWork] = []
    told = {"IRONIC_BASE_URL": "https://10.0.0.1:6385", **CLEAN, **environment}
    result = CliRunner().invoke(found, arguments, env=told)
    assert result.exit_code == 0, result.output
    return heard[0]


def test_options_win_over_the_environment(tmp_path: Path) -> None:
    said = {"INGOT_RELEASE_PAYLOAD": "/theirs", "INGOT_IMAGES_LISTEN": "127.0.0.1:1"}
    found = work(tmp_path, "--payload", "/ours", "--images-listen", "[::1]:2", **said).settings
    assert (found.payload, found.listen) == (Path("/ours"), Listen("::1", 2))
    found = work(tmp_path, **said).settings
    assert (found.payload, found.listen) == (Path("/theirs"), Listen("127.0.0.1", 1))
    assert work(tmp_path, "--payload", "/p", "--payload-seconds", "3").settings.look_every == 3


def test_a_live_image_will_do_where_there_is_no_payload(tmp_path: Path) -> None:
    found = work(tmp_path, DEPLOY_ISO="/images/ipa.iso")
    assert (found.settings.payload, found.settings.iso) == (None, Path("/images/ipa.iso"))
    assert (found.settings.state, found.namespace) == (tmp_path / "images", "rack")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((), ["127.0.0.1", "localhost"]),
        (
            ("--images-listen", "0.0.0.0:8084", "--images-url", "https://images.example:8084"),
            ["images.example", "127.0.0.1", "localhost"],
        ),
        (
            ("--images-listen", "[::]:8084", "--images-url", "https://[2001:db8::1]:8084"),
            ["2001:db8::1", "127.0.0.1", "localhost"],
        ),
    ],
)
def test_its_own_certificate_is_for_the_names_it_is_called_by(
    tmp_path: Path, arguments: tuple[str, ...], names: list[str]
) -> None:
    found = work(tmp_path, "--payload", "/p", *arguments)
    assert found.names() == names
    found.tls(StateFolder(tmp_path))
    made = x509.load_pem_x509_certificate((tmp_path / "images" / "images.crt").read_bytes())
    said = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {str(name.value) for name in said} == set(names)


def test_a_certificate_that_cannot_be_used_is_told_with_its_place(tmp_path: Path) -> None:
    certs = tmp_path / "certs"
    certs.mkdir()
    for name in ("tls.crt", "tls.key", "ca.crt"):
        (certs / name).write_text("nothing")
    found = work(tmp_path, "--payload", "/p", "--images-certs", str(certs))
    with pytest.raises(click.ClickException, match=f"certificate in {certs} cannot be used"):
        found.tls(StateFolder(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "here", "apart"),
    [
        ((), "https://127.0.0.1:8084", ""),
        (("--images-listen", "[::1]:9"), "https://[::1]:9", ""),
        # Only the kernel knows that port, and later.
        (("--images-listen", "127.0.0.1:0"), "", ""),
        (("--images-listen", "0.0.0.0:8084"), "", ""),
        (("--images-url", "https://images.example:8084/"), *["https://images.example:8084"] * 2),
    ],
)
def test_whoever_looks_after_hosts_knows_where_their_ramdisks_come_from(
    arguments: tuple[str, ...], here: str, apart: str
) -> None:
    @click.command()
    @image_options
    def found(**options: Any) -> None:
        heard.extend(where_images_are(options, served_here=served_here) for served_here in (True, False))

    heard: list[str] = []
    assert CliRunner().invoke(found, arguments, env=CLEAN).exit_code == 0
    assert heard == [here, apart]
