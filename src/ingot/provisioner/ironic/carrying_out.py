"""Doing what a decision says, a few steps at a time, and never waiting for Ironic to finish.

A call goes: what memory says is under way is answered from memory; otherwise the node is read, decided on, and one step is
done; when that step needs no waiting the node is read again. Nothing is decided on old knowledge that ends in an act, in `Ready`
or in `Failed`: what was read a moment ago is not old while Ironic tells of every change and has told of none. Ironic's lock, a
state that moved on between reading and acting, a record that cannot be changed right now: all of it is `Busy` with an appointment
to look again.

This is also where the one guard stands: no step that can cost somebody something reaches Ironic before the permit was asked, for
the node that was read a moment ago.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Final

from ingot.provisioner import Busy, Failed, HostRef, NotRegistered, Permit, Sight, answer_to
from ingot.provisioner.ironic.attempts import Retry, Scope
from ingot.provisioner.ironic.decisions import Decision, Done, Fail, Step, Unregistered, Wait, busy
from ingot.provisioner.ironic.errors import BadRequest, Conflict, NotFound, WrongState
from ingot.provisioner.ironic.model import FullNode, Node
from ingot.provisioner.ironic.nodes import GOOD_FOR, GOOD_FOR_ACTS, Nodes, sight
from ingot.provisioner.ironic.reasons import explain, shorten
from ingot.provisioner.ironic.rules import Verb

MOST_STEPS: Final = 6
LOCK_PATIENCE: Final = 2.0
REASON_PATIENCE: Final = 1.0

Deed = Callable[[FullNode], Awaitable[Busy | Failed | NotRegistered | None]]
"""Does one step. None: the node can be looked at again at once."""


async def carry_out(
    nodes: Nodes,
    host: HostRef,
    verb: Verb,
    decide: Callable[[FullNode, Retry], Decision],
    deeds: Mapping[Step, Deed],
    *,
    again: bool,
    permit: Permit | None = None,
    scope: Scope = Scope.STATE,
    under_way: Callable[[Node, datetime], Decision | None] = busy,
    see: Callable[[FullNode], Sight] = sight,
) -> FullNode | Busy | Failed | NotRegistered:
    """The node when the decision is `Done`; otherwise what to tell the caller. `see`: what the permit is told of the node."""
    known = nodes.known(host)
    if known is not None and isinstance(waiting := under_way(known, nodes.now()), Wait):
        return Busy(waiting.why, waiting.detail, waiting.begun)
    within = GOOD_FOR
    for _ in range(MOST_STEPS):
        node = await nodes.fresh(host, within=within)
        if node is None:
            return NotRegistered(nodes.gone(host))
        decision = decide(node, await nodes.retry(host, node, scope, again=again))
        match decision:
            case Done():
                nodes.attempts.done(node.uuid, scope)
                nodes.interruptions.progressed(host.key)
                return node
            case Wait(why, detail, has_begun):
                return Busy(why, detail, has_begun)
            case Unregistered(why):
                return NotRegistered(why)
            case Fail():
                reason = await nodes.reason(decision, node)
                if not reason and nodes.reason_may_come(decision, node):
                    nodes.look_again(host, REASON_PATIENCE)
                    return Busy(f"{decision.headline}; Ironic is about to say why")
                return nodes.failure(decision, node, reason, scope)
        if decision in verb.acts and not nodes.is_recent(node, GOOD_FOR_ACTS):
            within = GOOD_FOR_ACTS
            continue
        if (refused := await _refused(verb, decision, permit, see(node))) is not None:
            return refused
        if (outcome := await _do(nodes, host, deeds[decision], node)) is not None:
            return outcome
    nodes.look_again(host, LOCK_PATIENCE)
    return Busy("Ironic changes the node faster than it can be followed; looking again in a moment")


async def _refused(verb: Verb, step: Step, permit: Permit | None, sight: Sight) -> Busy | Failed | None:
    """What is said where the permit is needed and not given."""
    if (act := verb.acts.get(step)) is None:
        return None
    if permit is None:
        raise TypeError(f"{verb.name} was called without a permit, and {step.value} needs one")
    refusal = await permit(act, sight)
    return answer_to(refusal) if refusal is not None else None


async def _do(
    nodes: Nodes, host: HostRef, deed: Deed, node: FullNode
) -> Busy | Failed | NotRegistered | None:
    # Whatever comes of it, the node is not as it was read any more.
    nodes.cache.doubt(node.uuid)
    try:
        return await deed(node)
    except WrongState:
        # The node moved on between reading and acting; it is read again.
        return None
    except Conflict as conflict:
        nodes.look_again(host, LOCK_PATIENCE)
        return Busy(f"Ironic is busy with the node for a moment: {shorten(conflict.text)}")
    except BadRequest as refused:
        return Failed(f"Ironic does not accept the order: {explain(refused.text, node)}")
    except NotFound as missing:
        return NotRegistered(f"Ironic does not know {host.key} any more: {shorten(missing.text)}")
