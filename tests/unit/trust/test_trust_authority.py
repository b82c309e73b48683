"""Certificates of our own CA: made once, trusted by those who know the CA, renewed in time, whole after any crash."""

import asyncio
import shutil
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from ingot.trust import Authority, AuthorityError, TrustError, client_context


async def _handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server)
    async with listener:
        _, writer = await asyncio.open_connection(*listener.sockets[0].getsockname()[:2], ssl=client)
        writer.close()


async def test_a_client_that_knows_the_ca_trusts_its_certificates(tmp_path: Path) -> None:
    made = Authority(tmp_path / "ca").issue(tmp_path, "server", ["127.0.0.1", "localhost"])
    await _handshake(made.server_context(), client_context(made.ca_file))


async def test_a_client_of_another_ca_does_not(tmp_path: Path) -> None:
    made = Authority(tmp_path / "ca").issue(tmp_path, "server", ["127.0.0.1"])
    stranger = Authority(tmp_path / "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        await _handshake(made.server_context(), client_context(stranger.ca_file))


async def test_a_certificate_for_another_address_is_refused(tmp_path: Path) -> None:
    made = Authority(tmp_path / "ca").issue(tmp_path, "server", ["127.0.0.2"])
    with pytest.raises(ssl.SSLCertVerificationError):
        await _handshake(made.server_context(), client_context(made.ca_file))


def test_opening_the_folder_again_gives_the_same_authority_and_leaves_certificates_alone(
    tmp_path: Path,
) -> None:
    first = Authority(tmp_path / "ca").issue(tmp_path, "server", ["127.0.0.1"])
    before = first.cert_file.read_bytes()
    again = Authority(tmp_path / "ca").issue(tmp_path, "server", ["127.0.0.1"])
    assert again.cert_file.read_bytes() == before


def test_a_certificate_that_lacks_a_name_is_made_anew(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    authority.issue(tmp_path, "server", ["127.0.0.1"])
    made = authority.issue(tmp_path, "server", ["127.0.0.1", "rack.example"])
    certificate = x509.load_pem_x509_certificate(made.cert_file.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "rack.example" in names.get_values_for_type(x509.DNSName)


def test_a_certificate_of_another_authority_is_made_anew(tmp_path: Path) -> None:
    old = Authority(tmp_path / "old").issue(tmp_path, "server", ["127.0.0.1"]).cert_file.read_bytes()
    assert Authority(tmp_path / "new").issue(tmp_path, "server", ["127.0.0.1"]).cert_file.read_bytes() != old


def test_a_key_that_does_not_fit_its_certificate_is_made_anew(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    made = authority.issue(tmp_path, "server", ["127.0.0.1"])
    other = authority.issue(tmp_path, "other", ["127.0.0.1"])
    made.key_file.write_bytes(other.key_file.read_bytes())
    authority.issue(tmp_path, "server", ["127.0.0.1"]).server_context()


def test_many_who_open_a_new_folder_at_once_make_one_authority(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for number in range(10):
            folder = tmp_path / str(number)
            authorities = list(pool.map(Authority, [folder] * 8))
            kept = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
            for index, authority in enumerate(authorities):
                made = authority.issue(folder / str(index), "server", ["127.0.0.1"])
                certificate = x509.load_pem_x509_certificate(made.cert_file.read_bytes())
                certificate.verify_directly_issued_by(kept)


def test_keys_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    made = Authority(tmp_path / "ca").issue(tmp_path, "server", ["127.0.0.1"])
    assert made.key_file.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "ca" / "ca.key").stat().st_mode & 0o777 == 0o600


def _end(path: Path) -> datetime:
    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc


async def test_an_authority_whose_end_is_near_renews_itself_and_old_and_new_trust_each_other(
    tmp_path: Path,
) -> None:
    old = Authority(tmp_path / "ca", life=timedelta(days=2)).issue(tmp_path, "old", ["127.0.0.1"])
    shutil.copy(old.ca_file, tmp_path / "copied-long-ago.crt")
    new = Authority(tmp_path / "ca").issue(tmp_path, "new", ["127.0.0.1"])
    assert _end(new.ca_file) > datetime.now(UTC) + timedelta(days=3000)
    for server in (old, new):
        for trusted in (new.ca_file, tmp_path / "copied-long-ago.crt"):
            await _handshake(server.server_context(), client_context(trusted))


def test_an_authority_that_is_held_open_for_years_renews_itself_when_it_issues(tmp_path: Path) -> None:
    Authority(tmp_path / "ca", life=timedelta(days=2))
    held = Authority(tmp_path / "ca", life=timedelta(days=1))
    assert _end(held.ca_file) < datetime.now(UTC) + timedelta(days=3)
    Authority(tmp_path / "ca", life=timedelta(days=30))
    renewed = held.ca_file.read_bytes()
    assert _end(held.ca_file) > datetime.now(UTC) + timedelta(days=20)
    made = held.issue(tmp_path, "server", ["127.0.0.1"])
    assert held.ca_file.read_bytes() == renewed, "what another process renewed is used, not renewed again"
    x509.load_pem_x509_certificate(made.cert_file.read_bytes()).verify_directly_issued_by(
        x509.load_pem_x509_certificate(renewed)
    )


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda ca, other: (ca / "ca.key").unlink(), id="key lost"),
        pytest.param(lambda ca, other: shutil.copy(other / "ca.key", ca / "ca.key"), id="key of another"),
        pytest.param(lambda ca, other: (ca / "ca.key").write_text("garbage"), id="key not a key"),
        pytest.param(lambda ca, other: (ca / "ca.crt").write_text(""), id="certificate empty"),
    ],
)
def test_a_damaged_authority_is_a_sentence_that_names_the_folder_and_the_way_out(
    tmp_path: Path, damage: Callable[[Path, Path], object]
) -> None:
    ca, other = tmp_path / "ca", tmp_path / "other"
    Authority(ca)
    Authority(other)
    damage(ca, other)
    with pytest.raises(AuthorityError, match=r"backup.*move the folder away") as refusal:
        Authority(ca)
    assert str(ca) in str(refusal.value)


def test_a_serving_certificate_that_is_garbage_is_made_anew(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    made = authority.issue(tmp_path, "server", ["127.0.0.1"])
    made.cert_file.write_text("garbage")
    authority.issue(tmp_path, "server", ["127.0.0.1"]).server_context()


def test_a_serving_certificate_without_names_is_made_anew(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    made = authority.issue(tmp_path, "server", ["127.0.0.1"])
    for source, target in (("ca.crt", made.cert_file), ("ca.key", made.key_file)):
        shutil.copy(tmp_path / "ca" / source, target)
    authority.issue(tmp_path, "server", ["127.0.0.1"]).server_context()


def test_many_who_issue_the_same_certificate_at_once_leave_a_pair_that_fits(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")

    def issue(folder: Path) -> None:
        authority.issue(folder, "server", ["127.0.0.1"])

    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            folder = tmp_path / str(number)
            list(pool.map(issue, [folder] * 8))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(folder / "server.crt", folder / "server.key")


def test_what_is_no_host_name_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TrustError, match=r"'bücher\.test' is neither a host name nor an IP address"):
        Authority(tmp_path / "ca").issue(tmp_path, "server", ["bücher.test"])
