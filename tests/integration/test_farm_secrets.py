"""User data that holds a password, and an agent that answers its orders with a page of HTML.

Ironic's error for that has the whole order in it. Nobody may read the password anywhere but on the server that it is for.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import secrets
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
from ironic_room import NAMESPACE, Host, Room
from stories import story

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.core import EVENTS
from ingot.lab.faults import Faults

GARBLES = Faults(agent_garbles=True)
GZIP = 16 + zlib.MAX_WBITS
PACKED = re.compile(rb"(?:[A-Za-z0-9+/]{4}){50,}(?:[A-Za-z0-9+/]{2,3}={0,2})?")
"""Something long in base64, as a config drive is."""


async def in_a_config_drive(host: Host, password: str) -> None:
    user_data = await host.secret("user-data", userData=f"#cloud-config\npassword: {password}\n")
    await host.create(inspectionMode="disabled", image=host.image(), userData=user_data)


async def in_what_a_step_is_told(host: Host, password: str) -> None:
    file = {"path": "/etc/password", "contents": {"source": f"data:,{password}"}}
    ignition = {"ignition": {"version": "3.4.0"}, "storage": {"files": [file]}}
    user_data = await host.secret("user-data", userData=json.dumps(ignition))
    await host.create(inspectionMode="disabled", image={"url": "", "format": "coreos"}, userData=user_data)


@pytest.mark.parametrize("travels", [in_a_config_drive, in_what_a_step_is_told])
@story
async def test_a_password_in_an_order_that_the_agent_garbles_is_told_to_nobody(
    room: Room, travels: Callable[[Host, str], Awaitable[None]]
) -> None:
    host, password = room.server(), f"marker-{secrets.token_hex(16)}"
    # The first order holds no secret; all after it are garbled.
    await host.hold("get_deploy_steps")
    await travels(host, password)
    await host.until_seen(lambda seen: seen.held_at == "get_deploy_steps", "asked for its steps")
    await host.behave(GARBLES)
    await room.lab.release(host.name)

    told = await host.until_error("Unable to decode response as JSON")
    assert told.status.error_type == "provisioning error"
    await host.has_acted_out(GARBLES)

    await host.behave()
    await host.try_again()
    await host.until_well("provisioned")
    seen = await host.until_running()
    assert seen.running is not None
    assert password in seen.running.user_data, "the server itself has it"
    shown = [where for where, text in [item async for item in everything(host)] if holds(text, password)]
    assert shown == []


async def everything(host: Host) -> AsyncIterator[tuple[str, bytes]]:
    """All that somebody could read who is not the server: events, the object, what Ironic pushed, and every log."""
    room = host.room
    events = await room.client.list(EVENTS, namespace=NAMESPACE)
    for event in events.items:
        yield f"event {event.reason}", event.message.encode()
    yield "the host", repr(await room.client.get(BARE_METAL_HOSTS, host.key)).encode()
    yield "what was pushed", "\n".join(room.pushed.messages).encode()
    for log in room.state.glob("*.log"):
        yield log.name, log.read_bytes()


def holds(text: bytes, password: str) -> bool:
    """As it is, or in a config drive, of which the end may be cut off."""
    return password.encode() in text or any(password.encode() in content for content in unpacked(text))


def unpacked(text: bytes) -> Iterator[bytes]:
    for found in PACKED.finditer(text):
        try:
            yield zlib.decompressobj(GZIP).decompress(base64.b64decode(found[0][: len(found[0]) // 4 * 4]))
        except (zlib.error, binascii.Error):  # something else that is long
            continue
