"""Whether the same work was done: Ironic's records of the nodes, and what the servers have seen, by Ingot and by the script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import aiohttp

from ingot.trust import client_context
from spine.room import Room
from spine.run import Run

# What differs from server to server by its nature.
_OWN: Final = ("redfish_address", "redfish_system_id")
_INTERFACES: Final = tuple(
    f"{kind}_interface"
    for kind in ("bios", "boot", "deploy", "inspect", "management", "network", "power", "raid", "storage")
)
_IMAGE: Final = (
    "image_source",
    "image_disk_format",
    "image_os_hash_algo",
    "image_os_hash_value",
    "capabilities",
)


async def compare(room: Room, ingot: Sequence[Run], script: Sequence[Run]) -> None:
    """Ends the measurement when the work was not the same."""
    runs = [*ingot, *script]
    said = {run.work() for run in runs}
    if len(said) > 1:
        raise SystemExit("the servers did not see the same work:\n" + "\n".join(sorted(said)))
    for run in runs:
        found, wanted = run.server.running, f"hostname: {run.server.name}\n"
        if found is None or not found.user_data.endswith(wanted):
            raise SystemExit(f"{run.server.name} does not run the image with the user data of its order")
    first, *others = [await _record(room, run.server.name) for run in runs]
    for run, record in zip(runs[1:], others, strict=True):
        if record != first:
            different = [key for key in first if record.get(key) != first[key]]
            raise SystemExit(
                f"Ironic's record of {run.server.name} is not that of {runs[0].server.name}: {', '.join(different)}"
            )


async def _record(room: Room, name: str) -> dict[str, Any]:
    async with (
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=client_context(room.trusted.ca_file)),
            headers={
                "Authorization": aiohttp.encode_basic_auth(*room.account),
                "X-OpenStack-Ironic-API-Version": "1.110",
            },
            raise_for_status=True,
        ) as session,
        session.get(f"{room.ironic.api_url}/v1/nodes/default~{name}") as answer,
    ):
        return comparable(await answer.json())


def comparable(node: dict[str, Any]) -> dict[str, Any]:
    """What two nodes that are treated alike have in common."""
    return {
        **{key: node.get(key) for key in ("driver", "provision_state", "automated_clean", *_INTERFACES)},
        "driver_info": {key: value for key, value in node["driver_info"].items() if key not in _OWN},
        "instance_info": {key: node["instance_info"].get(key) for key in _IMAGE},
        "boot_mode": node["properties"].get("capabilities"),
    }
