"""Certificates of our own CA: made once, trusted by those who know the CA, renewed in time, whole after any crash."""

import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509

from ingot.trust import Authority, client_context


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
