"""A renewed certificate: taken up when it fits, left for later when it does not."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path
from typing import Any

import pytest

from ingot.trust import Authority
from ingot_ironic import certificates
from ingot_ironic.certificates import Follower


class Adapter:
    """Shaped like cheroot's."""

    def __init__(
        self, certificate: str, private_key: str, certificate_chain: Any = None, ciphers: Any = None
    ) -> None:
        self.certificate, self.private_key = certificate, private_key
        self.certificate_chain, self.ciphers = certificate_chain, ciphers
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(certificate, private_key)

    @property
    def context(self) -> ssl.SSLContext:
        return self._context

    @context.setter
    def context(self, context: ssl.SSLContext) -> None:
        self._context = context


@pytest.fixture
def follower(monkeypatch: pytest.MonkeyPatch) -> Follower:
    made = Follower()
    monkeypatch.setattr(Adapter, "__init__", Adapter.__init__)  # put back afterwards
    certificates.hook(Adapter, made)
    return made


def issue(folder: Path, name: str) -> tuple[Path, Path]:
    made = Authority(folder / "ca").issue(folder / name, "ironic", ["127.0.0.1"])
    return made.cert_file, made.key_file


def replace(source: Path, place: Path) -> None:
    """As a renewal does it: another file in the same place."""
    fresh = place.with_suffix(".new")
    shutil.copyfile(source, fresh)
    fresh.replace(place)


def test_a_renewed_pair_is_served_with_the_same_rules(tmp_path: Path, follower: Follower) -> None:
    cert, key = issue(tmp_path, "first")
    adapter = Adapter(str(cert), str(key), ciphers="ECDHE+AESGCM")
    adapter.context.minimum_version = ssl.TLSVersion.TLSv1_3
    before = adapter.context
    follower.look()
    assert adapter.context is before
    for source, place in zip(issue(tmp_path, "second"), (cert, key), strict=True):
        replace(source, place)
    follower.look()
    assert adapter.context is not before
    assert adapter.context.minimum_version is ssl.TLSVersion.TLSv1_3
    served = adapter.context
    follower.look()
    assert adapter.context is served


def test_half_of_a_renewal_waits_for_the_other_half(
    tmp_path: Path, follower: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    cert, key = issue(tmp_path, "first")
    adapter = Adapter(str(cert), str(key))
    before, (new_cert, new_key) = adapter.context, issue(tmp_path, "second")
    replace(new_key, key)
    follower.look()
    assert adapter.context is before
    assert "cannot be used yet" in caplog.text
    cert.unlink()
    follower.look()
    assert adapter.context is before
    shutil.copyfile(new_cert, cert)
    follower.look()
    assert adapter.context is not before


def test_a_listener_that_is_gone_is_forgotten(tmp_path: Path, follower: Follower) -> None:
    cert, key = issue(tmp_path, "first")
    adapter = Adapter(str(cert), str(key))
    del adapter
    cert.unlink()
    follower.look()


def test_a_listener_of_another_kind_is_left_alone() -> None:
    class Other:
        context = None

        def __init__(self, certificate: str) -> None:
            self.certificate = certificate

    original = Other.__init__
    with pytest.raises(AttributeError, match="does not have private_key"):
        certificates.hook(Other, Follower())
    assert Other.__init__ is original
