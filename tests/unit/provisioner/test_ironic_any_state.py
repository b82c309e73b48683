"""Every verb, asked of a node in every state, in and out of maintenance: there is always an answer, and a guard is always obeyed.

The rules are proven in test_ironic_pairs; here they are carried out, against a server that refuses what Ironic refuses.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from contract import EVENTS, SETTINGS
from fake_ironic import FakeIronic
from ironic_orders import IMAGE, NODE, ORDER, Guard

from ingot.provisioner import (
    Access,
    Act,
    Busy,
    Failed,
    HostRef,
    Inspection,
    NotRegistered,
    Permit,
    Power,
    PowerOffMode,
    Preparation,
    Ready,
    Service,
)
from ingot.provisioner.ironic import IronicProvisioner, states

Ask = Callable[[IronicProvisioner, HostRef, Permit, bool], Awaitable[Any]]

VERBS: dict[str, Ask] = {
    "inspect": lambda b, h, p, again: b.inspect(h, Inspection(renewal="x"), permit=p, again=again),
    "inspect once more": lambda b, h, p, again: b.inspect(
        h, Inspection(renewal="x", restart=True), permit=p, again=again
    ),
    "prepare": lambda b, h, p, again: b.prepare(
        h, Preparation(name="x", firmware=SETTINGS), permit=p, again=again
    ),
    "service": lambda b, h, p, again: b.service(
        h, Service(name="x", firmware=SETTINGS), permit=p, again=again
    ),
    "give up a service": lambda b, h, p, again: b.service(h, Service(name="x"), permit=p, again=again),
    "provision": lambda b, h, p, again: b.provision(h, ORDER, permit=p, again=again),
    "deprovision": lambda b, h, p, again: b.deprovision(h, automated_cleaning=True, permit=p, again=again),
    "adopt": lambda b, h, p, again: b.adopt(h, IMAGE, permit=p, again=again),
    "switch on": lambda b, h, p, again: b.set_power(
        h, Power.ON, mode=PowerOffMode.HARD, permit=p, again=again
    ),
    "switch off": lambda b, h, p, again: b.set_power(
        h, Power.OFF, mode=PowerOffMode.HARD, permit=p, again=again
    ),
    "data image": lambda b, h, p, again: b.set_data_image(h, "https://127.0.0.1/d.iso", again=again),
    "subscribe": lambda b, h, p, again: b.subscribe(h, EVENTS, again=again),
    "detach": lambda b, h, p, again: b.detach(h, force=again, permit=p),
    "delete": lambda b, h, p, again: b.delete(h, permit=p),
}
FOUND: tuple[tuple[bool, dict[str, Any]], ...] = (
    (False, {}),
    (True, {}),
    (True, {"maintenance": True}),
    (True, {"maintenance": True, "fault": "clean failure"}),
    (True, {"maintenance": True, "fault": "power failure"}),
)
"""Whether what failed was told, and how the node is beside its state."""
ASK_NOBODY = {"switch on", "data image", "subscribe"}
"""Verbs that need no permit."""
HARMLESS = {"manage", "adopt", "abort"}
"""Requests that neither stop a machine nor change its disks, wherever they are asked without a permit."""


async def every_state(
    verb: str, backend: IronicProvisioner, ironic: FakeIronic, host: HostRef, guard: Guard
) -> list[tuple[dict[str, Any], Any]]:
    """Each node as it was found, and the answer."""
    found = []
    for state in (*states.ALL, "a state of a later Ironic"):
        for again, fields in FOUND:
            ironic.nodes.clear()
            power = {"power_state": "power off" if verb == "switch on" else "power on"}
            node = ironic.add_node(NODE, state, **power, **fields)
            known = replace(host, backend_id=node["uuid"])
            found.append((node, await VERBS[verb](backend, known, guard, again)))
    return found


@pytest.mark.parametrize("verb", VERBS)
async def test_there_is_an_answer_to_every_state(verb: str, backend, ironic, host, guard: Guard):
    for node, answer in await every_state(verb, backend, ironic, host, guard):
        assert isinstance(answer, Ready | Busy | Failed | NotRegistered), node["provision_state"]
        match answer:
            case Busy(why) | NotRegistered(why) | Failed(why):
                assert why
                assert "{" not in why.replace('{"force": true}', ""), why


@pytest.mark.parametrize("verb", sorted(VERBS.keys() - ASK_NOBODY))
async def test_what_the_guard_refuses_is_done_in_no_state(verb: str, backend, ironic, host, guard: Guard):
    guard.refuses = set(Act)
    deleted: list[str] = []
    ironic.on_change = lambda node, gone: deleted.append(node["uuid"]) if gone else None
    await every_state(verb, backend, ironic, host, guard)
    allowed = HARMLESS - (
        {"abort"} if verb in ("service", "give up a service", "detach", "delete") else set()
    )
    assert set(ironic.verbs) <= allowed
    assert ironic.power_targets == []
    assert deleted == []


async def test_registering_asks_for_nothing_but_to_manage_in_any_state(
    backend, ironic, host: HostRef, access: Access
):
    for state in states.ALL:
        for again in (False, True):
            ironic.nodes.clear()
            node = ironic.add_node(NODE, state, instance_uuid=host.uid)
            known = replace(host, backend_id=node["uuid"])
            answer = await backend.register(known, access, credentials_changed=True, again=again)
            assert isinstance(answer, Ready | Busy | Failed)
    assert set(ironic.verbs) == {"manage"}
    assert ironic.power_targets == []
    assert len(ironic.nodes) == 1
