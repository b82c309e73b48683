"""Serving under a certificate that changes: nobody who calls meanwhile notices."""

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from ingot.trust import Authority, Certificate, ServingTls, client_context


def alternating(*certificates: Certificate) -> Iterator[Certificate]:
    return itertools.cycle(certificates)


async def test_no_handshake_fails_while_the_certificate_is_replaced(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    made = alternating(*(authority.issue(tmp_path, name, ["127.0.0.1"]) for name in ("one", "two")))
    tls = ServingTls(lambda: next(made))

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x")
        writer.close()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls.context)
    trusted, serials = client_context(authority.ca_file), set()
    async with listener:
        keeping = asyncio.create_task(tls.keep(every=0))
        async with asyncio.timeout(60):
            for _ in range(60):
                reader, writer = await asyncio.open_connection(
                    *listener.sockets[0].getsockname()[:2], ssl=trusted
                )
                serials.add(writer.get_extra_info("peercert")["serialNumber"])
                assert await reader.read() == b"x"
                writer.close()
        keeping.cancel()
        await asyncio.wait([keeping])
    assert len(serials) == 2


def test_a_key_with_a_password_is_refused_and_nobody_is_asked_for_it(tmp_path: Path) -> None:
    made = Authority(tmp_path / "ca").issue(tmp_path, "server", ["127.0.0.1"])
    key = serialization.load_pem_private_key(made.key_file.read_bytes(), password=None)
    made.key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"hush"),
        )
    )
    with pytest.raises(OSError, match="has a password"):
        ServingTls(lambda: made)


def test_the_authority_is_the_one_of_the_certificate_that_is_served(tmp_path: Path) -> None:
    first, second = (
        Authority(tmp_path / f"{name}-ca").issue(tmp_path / name, "server", ["127.0.0.1"])
        for name in ("first", "second")
    )
    served = Certificate(*(tmp_path / name for name in ("tls.crt", "tls.key", "ca.crt")))

    def place(cert: Path, key: Path, ca: Path) -> None:
        for source, target in ((cert, served.cert_file), (key, served.key_file), (ca, served.ca_file)):
            target.write_bytes(source.read_bytes())

    place(first.cert_file, first.key_file, first.ca_file)
    tls = ServingTls(lambda: served)
    place(first.cert_file, second.key_file, second.ca_file)
    with pytest.raises(OSError, match="mismatch"):
        tls.look()
    assert tls.authority == first.ca_file.read_bytes()
    place(second.cert_file, second.key_file, second.ca_file)
    tls.look()
    assert tls.authority == second.ca_file.read_bytes()
