"""What the tests of the back ends share: a fake Ironic, a back end that talks to it, and a host with its orders; and the stages
on which every back end shows that it keeps the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from contract import Play, playing
from fake_ironic import FakeIronic
from fake_plugin import FakePlugin
from ironic_orders import MAC, Guard
from stages import STAGES

from ingot.api.meta import Key
from ingot.provisioner import Access, Credentials, HostRef
from ingot.provisioner.ironic import IronicAccess, IronicProvisioner, PushListen, Ramdisk
from ingot.trust import Authority, Certificate, Secret, random_token


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder = tmp_path_factory.mktemp("trust")
    return Authority(folder / "ca").issue(folder, "fake", ["127.0.0.1"])


@pytest.fixture
async def ironic(certificate: Certificate) -> AsyncIterator[FakeIronic]:
    server = FakeIronic(certificate)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def where(ironic: FakeIronic, certificate: Certificate, tmp_path: Path) -> IronicAccess:
    folder = tmp_path / "auth"
    folder.mkdir()
    (folder / "username").write_text(ironic.username)
    (folder / "password").write_text(ironic.password + "\n")
    ramdisk = Ramdisk(iso="https://127.0.0.1/ramdisk.iso")
    return IronicAccess(
        endpoint=ironic.url,
        ca_file=certificate.ca_file,
        auth_folder=folder,
        ramdisk=ramdisk,
        timeout=5,
        orphaned_after=0,
    )


@pytest.fixture
def listen(certificate: Certificate) -> PushListen:
    return PushListen(host="127.0.0.1", port=0, tls=certificate.server_context(), token=random_token())


@pytest.fixture
async def backend(where: IronicAccess, listen: PushListen) -> AsyncIterator[IronicProvisioner]:
    async with IronicProvisioner(where, listen) as provisioner:
        yield provisioner


@pytest.fixture
async def plugin(
    backend: IronicProvisioner, ironic: FakeIronic, listen: PushListen, certificate: Certificate
) -> AsyncIterator[FakePlugin]:
    """Push works while a test asks for this."""
    assert backend.push_port is not None
    sender = FakePlugin(backend.push_port, listen.token, certificate.ca_file)
    ironic.on_change = sender.changed
    yield sender
    await sender.stop()


@pytest.fixture
def host() -> HostRef:
    return HostRef(Key("rack", "h1"), "5a6f7c3e-0000-4000-8000-000000000001")


@pytest.fixture
def access() -> Access:
    return Access(
        address="redfish-virtualmedia+https://127.0.0.1:8443/redfish/v1/Systems/1",
        credentials=Credentials(username="admin", password=Secret("s3cret")),
        boot_mac=MAC,
    )


@pytest.fixture
def guard() -> Guard:
    return Guard()


@pytest.fixture(params=STAGES)
async def play(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Play]:
    """A host on the stage of every back end."""
    async with playing(STAGES[request.param](tmp_path)) as begun:
        yield begun
