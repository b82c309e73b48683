"""The event service: subscriptions, and events that are really sent to where a subscriber wants them.

Sending happens beside the call that caused it: three tries, and a line in the server's log when none was taken. Events are not
kept across a kill, as with a real BMC.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp

from ingot.lab.components import Subscription
from ingot.lab.redfish.answers import Answer, Document, Refusal, collection, link, missing
from ingot.lab.redfish.dispatch import Call, Table
from ingot.lab.redfish.server import BASE, Server

SERVICE: Final = f"{BASE}/EventService"
SUBSCRIPTIONS: Final = f"{SERVICE}/Subscriptions"
_TEST: Final = f"{SERVICE}/Actions/EventService.SubmitTestEvent"
_TYPES: Final = ("StatusChange", "ResourceUpdated", "ResourceAdded", "ResourceRemoved", "Alert", "Other")
_MOST: Final = 20
_TRIES: Final = 3
_GAP: Final = 1.0


def add(table: Table) -> None:
    table.show(SERVICE, _service)
    table.act("POST", _TEST, _submit_test_event)
    table.show(SUBSCRIPTIONS, _subscriptions)
    table.act("POST", SUBSCRIPTIONS, _subscribe)
    table.show(SUBSCRIPTIONS + "/{subscription}", lambda call: _shown(_named(call)))
    table.act("DELETE", SUBSCRIPTIONS + "/{subscription}", _unsubscribe)


def alert(server: Server, name: str, message: str) -> None:
    """Tell those who want to know of alerts."""
    emit(server, {"EventType": "Alert", "MessageId": f"Ingot.1.0.{name}", "Message": message})


def emit(server: Server, event: Mapping[str, Any]) -> None:
    """Send an event to everyone who subscribed to its type, beside the caller's work."""
    for subscription in server.parts.subscriptions:
        if not subscription.event_types or event["EventType"] in subscription.event_types:
            server.workshop.beside(_send(server, subscription, event))


async def _send(server: Server, subscription: Subscription, event: Mapping[str, Any]) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    member = {"EventId": "1", "EventTimestamp": now, "Severity": "OK", "MessageArgs": [], **event}
    body = {
        "@odata.type": "#Event.v1_9_0.Event",
        "Id": "1",
        "Name": "Event Array",
        "Context": subscription.context,
        "Events": [member | {"OriginOfCondition": link(server.system), "Context": subscription.context}],
    }
    reason = ""
    timeout = aiohttp.ClientTimeout(total=10)
    for attempt in range(_TRIES):
        await asyncio.sleep(_GAP if attempt else 0)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=subscription.headers) as session,
                session.post(subscription.destination, json=body, ssl=server.machine.trusted) as answer,
            ):
                if answer.status < 300:
                    return
                reason = f"HTTP {answer.status}"
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
    server.chassis.note(f"an event for {_without_secrets(subscription.destination)} was not taken: {reason}")


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}"


def _service(_: Call) -> Document:
    return {
        "@odata.id": SERVICE,
        "@odata.type": "#EventService.v1_10_1.EventService",
        "Id": "EventService",
        "Name": "Event Service",
        "ServiceEnabled": True,
        "DeliveryRetryAttempts": _TRIES,
        "DeliveryRetryIntervalSeconds": int(_GAP),
        "EventTypesForSubscription": list(_TYPES),
        "Subscriptions": link(SUBSCRIPTIONS),
        "Actions": {
            "#EventService.SubmitTestEvent": {
                "target": _TEST,
                "EventType@Redfish.AllowableValues": list(_TYPES),
            }
        },
    }


def _subscriptions(call: Call) -> Document:
    paths = [f"{SUBSCRIPTIONS}/{one.id}" for one in call.server.parts.subscriptions]
    return collection(SUBSCRIPTIONS, "Event Subscriptions", paths)


def _named(call: Call) -> Subscription:
    for subscription in call.server.parts.subscriptions:
        if subscription.id == call.ids["subscription"]:
            return subscription
    raise missing(call.path)


def _shown(subscription: Subscription) -> Document:
    """What was subscribed to; headers may hold secrets and are never shown."""
    return {
        "@odata.id": f"{SUBSCRIPTIONS}/{subscription.id}",
        "@odata.type": "#EventDestination.v1_14_1.EventDestination",
        "Id": subscription.id,
        "Name": f"Subscription {subscription.id}",
        "Destination": subscription.destination,
        "Protocol": subscription.protocol,
        "Context": subscription.context,
        "EventTypes": subscription.event_types,
        "HttpHeaders": None,
        "SubscriptionType": "RedfishEvent",
    }


async def _subscribe(call: Call) -> Answer:
    server = call.server
    subscription = _wanted(call.body)
    if len(server.parts.subscriptions) >= _MOST:
        raise Refusal(
            400, "CreateLimitReachedForResource", f"There are {_MOST} subscriptions, and no place for more."
        )
    subscription.id = server.parts.number()
    server.parts.subscriptions.append(subscription)
    server.chassis.note(f"events are sent to {_without_secrets(subscription.destination)} from now on")
    await server.save()
    shown = _shown(subscription)
    return Answer(status=201, document=shown, headers={"Location": shown["@odata.id"]})


def _wanted(body: Mapping[str, Any]) -> Subscription:
    destination, types = body.get("Destination"), body.get("EventTypes", [])
    if not isinstance(destination, str) or not destination.startswith(("https://", "http://")):
        raise Refusal(400, "PropertyValueFormatError", "Destination must be an http or https URL.")
    if body.get("Protocol") != "Redfish":
        raise Refusal(400, "PropertyValueNotInList", "Protocol must be Redfish.", args=["Protocol"])
    if not isinstance(types, list) or not set(map(str, types)) <= set(_TYPES):
        raise Refusal(400, "PropertyValueNotInList", f"EventTypes must be of {', '.join(_TYPES)}.")
    return Subscription(
        id="",
        destination=destination,
        protocol="Redfish",
        context=str(body.get("Context") or ""),
        event_types=[str(one) for one in types],
        headers=_headers(body.get("HttpHeaders")),
    )


def _headers(given: object) -> dict[str, str]:
    """Headers to send with each event: a list of objects, as the standard has it, or one object."""
    found: dict[str, str] = {}
    for entry in given if isinstance(given, list) else [given or {}]:
        if not isinstance(entry, dict):
            raise Refusal(400, "PropertyValueTypeError", "HttpHeaders must be a list of objects.")
        for name, value in entry.items():
            if not str(value).isprintable() or not str(name).isprintable():
                raise Refusal(400, "PropertyValueFormatError", f"The header {name!r} cannot be sent.")
            found[str(name)] = str(value)
    return found


async def _unsubscribe(call: Call) -> Answer:
    call.server.parts.subscriptions.remove(_named(call))
    await call.server.save()
    return Answer()


async def _submit_test_event(call: Call) -> Answer:
    kind = call.body.get("EventType", "Alert")
    if kind not in _TYPES:
        raise Refusal(400, "ActionParameterValueNotInList", f"EventType must be one of {', '.join(_TYPES)}.")
    emit(
        call.server,
        {
            "EventType": kind,
            "MessageId": str(call.body.get("MessageId") or "Ingot.1.0.TestEvent"),
            "Message": str(call.body.get("Message") or "This is a test event."),
        },
    )
    return Answer()
