"""What `ingot explain` reads of an API, and how it reads to a person. What it all means is for `hosts` and `machines` to say.

Only reads. What somebody may not see, or what is not there, is said to be so: a tenant asks about a claim without seeing hosts.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import EVENTS, NAMESPACES, Event
from ingot.api.hostclaim import HOST_CLAIMS, HostClaim
from ingot.api.hostdeploypolicy import HOST_DEPLOY_POLICIES
from ingot.api.machine import MACHINES, InvalidProviderSpec, Machine, read_provider_spec
from ingot.api.meta import Key, Object, Resource
from ingot.api.preprovisioningimage import PREPROVISIONING_IMAGES
from ingot.cli.parts.ages import ago
from ingot.hosts.ownership import Absent, Claimant, ImagesOfHost, images_of, is_ours
from ingot.kube import Forbidden, NotFound
from ingot.machines.choosing import Tally, Wish, choose
from ingot.machines.claims.linking import named_host
from ingot.machines.claims.policies import host_namespaces
from ingot.machines.demands import Demands, UnusableSelector, demands_of
from ingot.machines.explaining import ClaimExplanation, explain_claim, explain_machine
from ingot.machines.machine.linking import link_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ingot.hosts.ownership import Owned
    from ingot.kube import Client

T = TypeVar("T", bound=Object)

MOST_EVENTS: Final = 5


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
            path, where = "spec.providerSpec.value.hostSelector", [found.metadata.namespace]
            passed = await _passed_over(client, found, demands_of(selector, path=path), where)
        except (InvalidProviderSpec, UnusableSelector) as problem:
            passed = str(problem)
    return explain_machine(
        found,
        host=None if isinstance(host, Absent) else host,
        passed_over=passed,
        unseen=host is Absent.UNSEEN,
    )


async def claim(client: Client, found: HostClaim) -> ClaimExplanation:
    key = named_host(found)
    host = await _found(client, BARE_METAL_HOSTS, key) if key is not None else Absent.GONE
    passed = ""
    if key is None:
        try:
            demands = demands_of(found.spec.host_selector, path="spec.hostSelector")
            # Who may not see the policies is told what the claim says itself.
            if where := await _may_have(client, found):
                passed = await _passed_over(client, found, demands, where)
        except UnusableSelector as problem:
            passed = str(problem)
    return explain_claim(found, host=None if isinstance(host, Absent) else host, passed_over=passed)


async def _may_have(client: Client, found: HostClaim) -> frozenset[str]:
    """The namespaces whose hosts the claim can have, as far as that can be seen."""
    namespace, only = found.metadata.namespace, found.spec.host_selector.in_namespace
    try:
        policies = (await client.list(HOST_DEPLOY_POLICIES)).items
        allowed = host_namespaces(policies, await client.get(NAMESPACES, Key("", namespace)))
    except (Forbidden, NotFound):
        return frozenset()
    return allowed & {only} if only else allowed


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


async def _passed_over(client: Client, claimant: Object, demands: Demands, where: Iterable[str]) -> str:
    """Why it has no host, counted over all that there are in these namespaces; "" where they are not to be seen."""
    try:
        hosts = [
            host
            for namespace in where
            for host in (await client.list(BARE_METAL_HOSTS, namespace=namespace)).items
        ]
    except Forbidden:
        return ""
    tally = Tally()
    free = choose(hosts, Wish(claimant=claimant.metadata.uid, demands=demands), tally=tally)
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
