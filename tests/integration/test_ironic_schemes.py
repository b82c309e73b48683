"""A host of each scheme of BMC addresses, as a node of the real Ironic: it takes the record, and finds nothing missing in it.

There is no BMC behind the addresses: what is looked at is whether the two understand each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ingot.api import bmc
from ingot.api.meta import Key
from ingot.provisioner import Access, BackendUnavailable, Credentials, HostRef
from ingot.provisioner.ironic import IronicAccess, Ramdisk
from ingot.provisioner.ironic.client import IronicClient
from ingot.provisioner.ironic.drivers import driver_for
from ingot.provisioner.ironic.model import FullNode, Validation
from ingot.provisioner.ironic.record import Record, differences, record_for
from ingot.services.environment import ensure
from ingot.services.settings import IronicPaths, IronicSettings
from ingot.trust import Authority, Secret, kept_token, write_private

pytestmark = pytest.mark.asyncio(loop_scope="module")

RAMDISK = Ramdisk(
    iso="https://127.0.0.1:9/ipa.iso",
    kernel="https://127.0.0.1:9/vmlinuz",
    initramfs="https://127.0.0.1:9/initrd",
)
DEADLINE = 120.0
# Who asks a BMC that is not there does not ask for long.
QUICK = {"OS_REDFISH__CONNECTION_ATTEMPTS": "1", "OS_REDFISH__CONNECTION_RETRY_INTERVAL": "1"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ironic(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[IronicClient]:
    await asyncio.to_thread(ensure)
    state = tmp_path_factory.mktemp("schemes")
    settings, access = _settings(state)
    process = _start(state, settings)
    try:
        async with IronicClient(access) as client:
            await _ready(client, process)
            yield client
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)


def _start(state: Path, settings: IronicSettings) -> subprocess.Popen[bytes]:
    # Ironic has its IPMI driver only where there is an ipmitool; nobody is called in these tests.
    programs = state / "programs"
    programs.mkdir()
    (programs / "ipmitool").write_text("#!/bin/sh\nexit 1\n")
    (programs / "ipmitool").chmod(0o755)
    environment = os.environ | settings.to_environment() | QUICK
    environment |= {"PATH": f"{programs}:{os.environ['PATH']}"}
    with (state / "ironic.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-c", "from ingot.cli.main import main; main()", "service", "ironic"],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _settings(state: Path) -> tuple[IronicSettings, IronicAccess]:
    authority = Authority(state / "ca")
    serving = authority.issue(state / "ironic", "ironic", ["127.0.0.1"])
    auth = state / "auth" / "ironic"
    auth.mkdir(parents=True)
    write_private(auth / "username", b"ingot")
    kept_token(auth / "password")
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    settings = IronicSettings(
        paths=IronicPaths.below(state / "ironic"),
        cert_file=serving.cert_file,
        key_file=serving.key_file,
        ca_file=authority.ca_file,
        username="ingot",
        password_file=auth / "password",
        listen_port=port,
        http_url="https://127.0.0.1:9/",
    )
    access = IronicAccess(endpoint=f"{settings.base_url}/v1", ca_file=authority.ca_file, auth_folder=auth)
    return settings, access


async def _ready(client: IronicClient, process: subprocess.Popen[bytes]) -> None:
    async with asyncio.timeout(DEADLINE):
        while process.poll() is None:
            with contextlib.suppress(BackendUnavailable):
                if {"ipmi", "redfish", "idrac"} <= set(await client.drivers()):
                    return
            await asyncio.sleep(0.2)
    pytest.fail("Ironic ended by itself; its log is ironic.log in the folder of this test")


def record(scheme: str, name: str, **others: Any) -> Record:
    access = Access(
        address=f"{scheme}://127.0.0.1:9/redfish/v1/Systems/1",
        credentials=Credentials(username="admin", password=Secret("s3cret")),
        boot_mac="52:54:00:00:00:01",
        **others,
    )
    return record_for(HostRef(Key("schemes", name), str(uuid.uuid4())), access, RAMDISK)


Found = tuple[Record, FullNode, dict[str, Validation]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def found(ironic: IronicClient) -> dict[str, Found]:
    """A node of each scheme, and what Ironic finds in it. All at once: one asks its BMC, which takes a while to be missed."""

    async def one(number: int, scheme: str) -> Found:
        wanted = record(scheme, scheme)
        made = await ironic.create_node(wanted.to_create())
        await ironic.create_port(made.uuid, f"52:54:00:00:01:{number:02x}", pxe_enabled=True)
        return wanted, await ironic.node(made.uuid), await ironic.validate(made.uuid)

    schemes = list(bmc.SCHEMES)
    return dict(zip(schemes, await asyncio.gather(*map(one, range(99), schemes)), strict=True))


@pytest.mark.parametrize("scheme", bmc.SCHEMES)
async def test_ironic_takes_a_host_of_each_scheme_and_misses_nothing(
    found: dict[str, Found], scheme: str
) -> None:
    wanted, node, checks = found[scheme]
    assert node.driver == wanted.driver
    assert {kind: node.interface(kind) for kind in wanted.interfaces} == wanted.interfaces
    assert differences(node, wanted, new_password=False) == []
    wrong = {part: check.reason or "" for part, check in checks.items() if check.result is False}
    if wanted.interfaces["boot"] == "redfish-https":
        # This one asks the BMC at once, and there is none.
        assert all("Connection refused" in wrong.pop(part) for part in ("boot", "deploy"))
    else:
        # This host has not been given an image.
        assert "image_source" in wrong.pop("deploy")
    cannot = {part for part, reason in wrong.items() if "does not support" in reason}
    assert set(wrong) == cannot
    abilities = bmc.SCHEMES[scheme]
    assert {
        "bios": abilities.firmware_settings,
        "firmware": abilities.firmware_updates,
        "raid": abilities.hardware_raid,
    } == {part: part not in cannot for part in ("bios", "firmware", "raid")}


@pytest.mark.parametrize("scheme", [name for name, scheme in bmc.SCHEMES.items() if scheme.fast_inspection])
async def test_ironic_takes_a_host_that_the_bmc_inspects(ironic: IronicClient, scheme: str) -> None:
    wanted = record(scheme, f"fast-{scheme}", inspection="fast")
    node = await ironic.create_node(wanted.to_create())
    assert node.inspect_interface == driver_for(bmc.SCHEMES[scheme]).fast_inspection
    if node.boot_interface != "redfish-https":
        assert (await ironic.validate(node.uuid))["inspect"].reason is None


async def test_a_host_of_another_scheme_takes_over_its_node(ironic: IronicClient) -> None:
    node = await ironic.create_node(record("ipmi", "moving").to_create())
    for scheme in ("idrac-virtualmedia", "redfish", "ilo5-virtualmedia", "libvirt"):
        wanted = record(scheme, "moving")
        node = await ironic.patch_node(node.uuid, differences(node, wanted, new_password=True))
        assert node.driver == wanted.driver
        assert {kind: node.interface(kind) for kind in wanted.interfaces} == wanted.interfaces
        assert set(node.driver_info) == set(wanted.driver_info)
        assert differences(node, wanted, new_password=False) == []
        assert (await ironic.validate(node.uuid))["power"].reason is None


async def test_secrets_are_masked_whatever_the_driver(ironic: IronicClient) -> None:
    for scheme in ("ipmi", "redfish"):
        node = await ironic.create_node(record(scheme, f"masked-{scheme}").to_create())
        assert "s3cret" not in repr(node.driver_info)
