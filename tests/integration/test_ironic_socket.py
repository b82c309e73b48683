"""The real Ironic on a Unix socket, which is what it listens on behind a front server unless it is told otherwise."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest
from service_room import Ironic

from ingot.provisioner.ironic import IronicAccess
from ingot.provisioner.ironic.client import IronicClient
from ingot.provisioner.ironic.errors import NotFound, Unavailable


async def test_the_operator_works_with_an_ironic_that_only_has_a_socket(tmp_path: Path) -> None:
    ironic = Ironic(tmp_path, reverse_proxy=True)
    socket = ironic.settings.paths.socket_file
    auth = tmp_path / "auth" / "ironic"
    auth.mkdir(parents=True)
    (auth / "username").write_text("ingot")
    (auth / "password").write_text(ironic.password.reveal())
    access = IronicAccess.from_environment(
        {"IRONIC_ENDPOINT": f"unix:{socket}", "METAL3_AUTH_ROOT_DIR": str(auth.parent)}
    )
    try:
        await ironic.start()
        assert stat.S_IMODE(socket.stat().st_mode) == 0o600
        async with IronicClient(access) as client:
            assert "redfish" in await client.drivers()
            made = await client.create_node({"name": "rack-1~h1", "driver": "redfish"})
            assert [node.name async for page in client.pages_of_nodes() for node in page] == ["rack-1~h1"]
            await client.set_maintenance(made.uuid, "a word with ümlauts")
            assert (await client.node("rack-1~h1")).maintenance
            await client.delete_node(made.uuid)
            with pytest.raises(NotFound):
                await client.node(made.uuid)
        (tmp_path / "nobody").mkdir()
        (tmp_path / "nobody" / "username").write_text("ingot")
        (tmp_path / "nobody" / "password").write_text("guessed")
        async with IronicClient(replace(access, auth_folder=tmp_path / "nobody")) as stranger:
            with pytest.raises(Unavailable, match="refuses the operator's own user name or password"):
                await stranger.drivers()
    finally:
        await ironic.close()
