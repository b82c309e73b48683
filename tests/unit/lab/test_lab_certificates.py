"""The BMCs' certificates: one an address, made at the first handshake, and anew when the CA is another one."""

from __future__ import annotations

import contextlib
import ssl
from pathlib import Path
from typing import Any

import pytest

from ingot.lab.certificates import BmcCertificates
from ingot.trust import Authority, client_context


def shake_hands(server: ssl.SSLContext, ca_file: Path, address: str) -> dict[str, Any]:
    """The certificate that a client who trusts this CA gets to see; as the event loop does it, but in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context(ca_file).wrap_bio(to_client, to_server, server_hostname=address)
    serving = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, serving, client, serving):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return client.getpeercert() or {}


def test_an_address_has_one_certificate_and_it_is_for_no_other(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    certificates = BmcCertificates(authority, authority.ca_file.read_bytes)
    seen = {
        address: shake_hands(certificates.context(address), authority.ca_file, address)
        for address in ("127.77.0.1", "127.77.0.2")
    }
    assert seen["127.77.0.1"]["subjectAltName"] == (("IP Address", "127.77.0.1"),)
    assert seen["127.77.0.1"]["serialNumber"] != seen["127.77.0.2"]["serialNumber"]
    again = shake_hands(certificates.context("127.77.0.1"), authority.ca_file, "127.77.0.1")
    assert again["serialNumber"] == seen["127.77.0.1"]["serialNumber"]
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        shake_hands(certificates.context("127.77.0.1"), authority.ca_file, "127.77.0.2")


def test_another_authority_is_followed_at_the_next_connection(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    certificates = BmcCertificates(authority, authority.ca_file.read_bytes)
    context = certificates.context("127.77.0.1")
    shake_hands(context, authority.ca_file, "127.77.0.1")
    for file in (tmp_path / "ca").iterdir():
        file.unlink()
    Authority(tmp_path / "ca")
    authority.issue(tmp_path, "lab", ["127.0.0.1"])  # what the farm does every few seconds
    assert shake_hands(context, authority.ca_file, "127.77.0.1")["serialNumber"]
