"""Events of a management controller, posted to somebody's URL.

Ironic hands these orders on to the BMC and waits for its answer; it keeps nothing of them. So what is there is asked of the BMC
each time, and a subscription is told by its destination and context. In its errors Ironic repeats the whole order, with the
headers, which are secret: that part never leaves here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ingot.provisioner import Busy, Failed, HostRef, NotRegistered, Ready, Subscription
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.carrying_out import LOCK_PATIENCE
from ingot.provisioner.ironic.client import IronicClient
from ingot.provisioner.ironic.decisions import Step, Unregistered
from ingot.provisioner.ironic.errors import Conflict, Refused, ServerError
from ingot.provisioner.ironic.model import FullNode
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.reasons import explain, refuses_credentials
from ingot.provisioner.ironic.rules import Verb, elsewhere, facts_of, on
from ingot.trust import Secret

_REPEATED_ORDER: Final = re.compile(r"Subscription payload: .*?(?= Error: |$)", re.DOTALL)
_OF_ANOTHER_SORT: Final = re.compile(r"The attribute \S+ is missing from the resource")
_NO_EVENT_SERVICE: Final = re.compile(r"EventService\S* is missing")


SUBSCRIBE: Final = Verb(
    name="subscribe",
    rules=(
        on(
            states.ENROLL,
            states.VERIFYING,
            then=Unregistered("Ironic knows the host, but has not taken it under management yet"),
        ),
        # The BMC is asked, whatever Ironic does with the machine meanwhile.
        elsewhere(then=Step.SUBSCRIBE),
    ),
)


async def subscribe(
    nodes: Nodes, host: HostRef, wanted: Subscription
) -> Ready[str] | Busy | Failed | NotRegistered:
    node = await _managed(nodes, host)
    if isinstance(node, NotRegistered):
        return node
    try:
        if name := await _find(nodes.client, node.uuid, wanted):
            return Ready(name)
        made = await nodes.client.create_subscription(node.uuid, _order(wanted))
    except Conflict:
        return _locked(nodes, host)
    except (Refused, ServerError) as error:
        return _failed("the management controller did not take the subscription", error, node, wanted.headers)
    if not made.id:
        return Failed("the management controller took the subscription and gave it no name")
    return Ready(made.id)


async def unsubscribe(
    nodes: Nodes, host: HostRef, subscription_id: str
) -> Ready[None] | Busy | Failed | NotRegistered:
    node = await _managed(nodes, host)
    if isinstance(node, NotRegistered):
        return node
    try:
        # Ironic answers 404 whatever went wrong with a deletion, so what is there is looked at before.
        if subscription_id in await nodes.client.subscriptions(node.uuid):
            await nodes.client.delete_subscription(node.uuid, subscription_id)
    except Conflict:
        return _locked(nodes, host)
    except (Refused, ServerError) as error:
        return _failed("the management controller did not end the subscription", error, node, {})
    return Ready(None)


async def _find(client: IronicClient, uuid: str, wanted: Subscription) -> str:
    """What the BMC calls this subscription; "" if it has none like it."""
    for ident in await client.subscriptions(uuid):
        try:
            found = await client.subscription(uuid, ident)
        except ServerError as error:
            # Somebody else's, of a sort that Ironic cannot read: a stream without a destination, for example.
            if _OF_ANOTHER_SORT.search(error.text):
                continue
            raise
        if (found.destination, found.context or "") == (wanted.destination, wanted.context):
            return found.id or ident
    return ""


async def _managed(nodes: Nodes, host: HostRef) -> FullNode | NotRegistered:
    node = await nodes.fresh(host)
    if node is None:
        return NotRegistered(nodes.gone(host))
    decision = SUBSCRIBE.decide(node, facts_of(node, nodes.now(), {}))
    return NotRegistered(decision.why) if isinstance(decision, Unregistered) else node


def _order(wanted: Subscription) -> dict[str, object]:
    order: dict[str, object] = {"Destination": wanted.destination, "Context": wanted.context}
    if wanted.headers:
        order["HttpHeaders"] = [{name: value.reveal()} for name, value in wanted.headers.items()]
    return order


def _locked(nodes: Nodes, host: HostRef) -> Busy:
    nodes.look_again(host, LOCK_PATIENCE)
    return Busy("Ironic is busy with the node for a moment")


def _failed(
    headline: str, error: Refused | ServerError, node: FullNode, headers: Mapping[str, Secret]
) -> Failed:
    text = _REPEATED_ORDER.sub("", error.text)
    for value in headers.values():
        # A BMC may repeat a header in its own words.
        text = text.replace(value.reveal(), "******") if value else text
    if _NO_EVENT_SERVICE.search(text):
        headline = "the management controller has no event service, so it cannot send events"
    return Failed(f"{headline}: {explain(text, node)}", refused_credentials=refuses_credentials(text))
