"""What `ingot explain` reads of an API, and how it reads to a person. What it all means is for `hosts` and `machines` to say.

Only reads. What somebody may not see, or what is not there, is said to be so: a tenant asks about a claim without seeing hosts.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import EVENTS, Event
from ingot.api.hostclaim import HOST_CLAIMS, HostClaim
from ingot.api.machine import MACHINES, InvalidProviderSpec, Machine, read_provider_spec
from ingot.api.meta import Key, Object, Resource
from ingot.api.preprovisioningimage import PREPROVISIONING_IMAGES
from ingot.cli.parts.ages import ago
from ingot.hosts.ownership import Absent, Claimant, ImagesOfHost, images_of, is_ours
from ingot.kube import Forbidden, NotFound
from ingot.machines.choosing import Tally, Wish, choose
from ingot.machines.demands import UnusableSelector, demands_of
from ingot.machines.explanation import ClaimExplanation, explain_claim, explain_machine
from ingot.machines.machine.linking import link_of

if TYPE_CHECKING:
    from ingot.api.hostselector import HostSelector
    from ingot.hosts.ownership import Owned
    from ingot.kube import Client

T = TypeVar("T", bound=Object)

MOST_EVENTS: Final = 5
NOT_TO_SEE: Final = "hosts are not for your credentials to see"


# Reading


async def images(client: Client, host: BareMetalHost) -> ImagesOfHost:
    built = await _found(client, PREPROVISIONING_IMAGES, host.key)
    return images_of(
        host, built=None if isinstance(built, Absent) else built, claimant=await _claimant(client, host)
    )


async def machine(client: Client, found: Machine) -> ClaimExplanation:
    link = link_of(found)
    host = await _found(client, BARE_METAL_HOSTS, link.key) if link is not None else Absent.GONE
    passed = ""
    if link is None:
        try:
            selector = read_provider_spec(found.spec.provider_spec.value).host_selector
            passed = await _passed_over(client, found, selector, "spec.providerSpec.value.hostSelector")
        except InvalidProviderSpec as problem:
            passed = str(problem)
    return explain_machine(found, host=None if isinstance(host, Absent) else host, passed_over=passed)


async def claim(client: Client, found: HostClaim) -> ClaimExplanation:
    place = found.status.bare_metal_host
    host: BareMetalHost | Absent = Absent.GONE
    if place is not None and place.name:
        host = await _found(client, BARE_METAL_HOSTS, Key(place.namespace, place.name))
    return explain_claim(found, host=None if isinstance(host, Absent) else host, passed_over="")


async def last_events(client: Client, kind: Resource[Any], found: Object) -> list[Event]:
    """What was told of this object last, the newest at the end."""
    namespace, name = found.key
    about = f"involvedObject.kind={kind.kind},involvedObject.name={name}"
    try:
        events = (await client.list(EVENTS, namespace=namespace, fields=about)).items
    except Forbidden:
        return []
    told = [event for event in events if event.involved_object.uid == found.metadata.uid]
    told.sort(key=lambda event: event.last_timestamp or datetime.min.replace(tzinfo=UTC))
    return told[-MOST_EVENTS:]


async def _claimant(client: Client, host: BareMetalHost) -> Claimant | None:
    consumer = host.spec.consumer_ref
    if consumer is None or not is_ours(consumer):
        return None
    key = Key(consumer.namespace or host.metadata.namespace, consumer.name)
    if consumer.kind == MACHINES.kind:
        return await _found(client, MACHINES, key)
    return await _found(client, HOST_CLAIMS, key)


async def _found(client: Client, kind: Resource[T], key: Key) -> T | Absent:
    try:
        return await client.get(kind, key)
    except NotFound:
        return Absent.GONE
    except Forbidden:
        return Absent.UNSEEN


async def _passed_over(client: Client, claimant: Object, selector: HostSelector, path: str) -> str:
    """Why it has no host, counted over all that there are beside it."""
    try:
        wish = Wish(claimant=claimant.metadata.uid, demands=demands_of(selector, path=path))
        hosts = (await client.list(BARE_METAL_HOSTS, namespace=claimant.metadata.namespace)).items
    except UnusableSelector as problem:
        return str(problem)
    except Forbidden:
        return NOT_TO_SEE
    tally = Tally()
    free = choose(hosts, wish, tally=tally)
    return f"{free.key} would do, and is about to be asked for" if free is not None else tally.sentence()


# Telling


def image_lines(found: ImagesOfHost) -> list[str]:
    return [
        "images:",
        *_of_image("provisioning", found.provisioning),
        *_of_image("target", found.target),
    ]


def _of_image(label: str, one: Owned) -> list[str]:
    rows = [("owner", one.owner), ("why", one.why), ("change", one.change)]
    return [f"  {label + ':':<14}{one.image}", *(f"    {name + ':':<12}{text}" for name, text in rows)]


def claim_lines(found: ClaimExplanation) -> list[str]:
    rows = [
        ("why", found.why),
        ("image", f"named by {found.source}"),
        ("next", f"{found.next}, {found.when}"),
        ("to do", found.do),
    ]
    return [f"{found.claimant} {found.state}.", *(f"  {label + ':':<10}{text}" for label, text in rows)]


def event_lines(events: list[Event], now: datetime) -> list[str]:
    told = [f"  {ago(event.last_timestamp, now)}  {event.reason}: {event.message}" for event in events]
    return ["lately:", *told] if told else []
