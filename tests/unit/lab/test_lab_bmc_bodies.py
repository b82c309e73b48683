"""Whatever a client sends, the BMC does it or refuses it in Redfish's words: no body breaks it."""

from __future__ import annotations

import random
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from lab_bench import FAST

from ingot.lab import labfile
from ingot.lab.chassis import Chassis
from ingot.lab.firmware import Firmware
from ingot.lab.ledger import Ledger
from ingot.lab.machine import Machine
from ingot.lab.profiles import PROFILES
from ingot.lab.redfish.answers import Refusal
from ingot.lab.redfish.dispatch import Act, Call, Table
from ingot.lab.redfish.server import Server
from ingot.lab.redfish.table import table_of

BODIES = 40
ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        1 << 70,
        "",
        "x",
        "https://127.0.0.1:1/x",
        "<SystemConfiguration>",
        "RAID1",
        "Redfish",
    ),
    *([], [1], ["x"], [None], {}, {"a": 1}, {"@odata.id": 5}, [{"@odata.id": None}], {"Drives": [5]}),
    *({"Target": [[]]}, {"Target": {}}, {"ApplyTime": []}, {"BootTimeout": []}, {"HttpBootUri": 5}),
)
KEYS = (
    "Attributes",
    "Boot",
    "CapacityBytes",
    "Context",
    "Destination",
    "Drives",
    "EventType",
    "EventTypes",
    "HttpHeaders",
    "Image",
    "ImageURI",
    "ImportBuffer",
    "Inserted",
    "JobID",
    "Links",
    "Message",
    "Name",
    "Password",
    "Protocol",
    "RAIDType",
    "ResetKeysType",
    "ResetType",
    "SecureBootEnable",
    "ShareParameters",
    "Targets",
    "TransferProtocol",
    "UserName",
    "VolumeType",
    "@Redfish.OperationApplyTime",
    "@Redfish.SettingsApplyTime",
)


def acts(table: Table) -> Iterator[tuple[str, str, Act]]:
    """Everything that can be called, with its path and method."""
    waiting = [("", table._root)]
    while waiting:
        path, node = waiting.pop()
        if node.resource is not None:
            yield from ((path, method, act) for method, act in node.resource.acts.items())
        waiting += [(f"{path}/{part}", below) for part, below in node.below.items()]
        if node.any is not None:
            waiting.append((f"{path}/{{{node.any.name}}}", node.any))


@pytest.mark.parametrize("profile", ["generic", "dell", "lenovo"])
async def test_no_body_breaks_the_bmc(tmp_path: Path, profile: str) -> None:
    lab = labfile.grown(tmp_path, host="127.0.0.1", servers=1, profiles=(profile,))
    ledger = Ledger(tmp_path / "ledger")
    trusted = ssl.create_default_context()
    machine = Machine(
        Chassis(lab.servers[0], tmp_path / "server", ledger), timings=FAST, firmware=Firmware(trusted=trusted)
    )
    server = Server(machine, restarts_nothing)
    dice = random.Random(7)
    tried = 0
    try:
        for path, method, act in acts(table_of(PROFILES[profile])):
            for _ in range(BODIES):
                body = {dice.choice(KEYS): dice.choice(ODD) for _ in range(dice.randint(0, 4))}
                call = Call(server=server, method=method, path=path, ids=ids_of(server), body=body)
                tried += 1
                try:
                    answer = await act(call)
                except Refusal as refusal:
                    answer = refusal.answer
                assert 200 <= answer.status < 600, (method, path, body)
                msgspec.json.encode(answer.document)
    finally:
        await server.workshop.stop()
        await machine.stop()
        await ledger.close()
    assert tried > 10 * BODIES


async def restarts_nothing(_: float) -> None:
    """There is no listener here that could be away."""


def ids_of(server: Server) -> dict[str, str]:
    own = {
        "system": server.plate.system_id,
        "manager": server.profile.manager,
        "chassis": server.profile.chassis,
        "slot": server.profile.slots[0].id,
    }
    others = dict.fromkeys(("drive", "session", "storage", "subscription", "task", "volume"), "1")
    return own | others
