"""Claims of one API, ready to be run: what wakes a claim.

A claim hears of itself, of its host, of its Secrets and of what was copied of them; one without a host also of policies and of
its namespace, and of hosts through the waiting list. A policy that cannot be used says so, in an Event, whenever it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.core import Namespace
from ingot.api.hostclaim import HOST_CLAIMS, HostClaim
from ingot.api.hostdeploypolicy import HostDeployPolicy
from ingot.api.meta import Key, ObjectMeta, PartialObjectMetadata, now
from ingot.kube import Change, Client, Controller, EventRecorder, Informer, follow, owned_by
from ingot.machines.claims.data import COPY_OF
from ingot.machines.claims.deserted import SETTLED, Deserted
from ingot.machines.claims.hardware import HardwareCopies
from ingot.machines.claims.linking import claim_of, named_host
from ingot.machines.claims.policies import host_namespaces, problem_with
from ingot.machines.claims.reconciling import ClaimReconciler
from ingot.machines.claims.secrets import SecretCopies
from ingot.machines.claims.taking import Taker
from ingot.machines.claims.writing import ClaimWriter
from ingot.machines.pool import Pool
from ingot.machines.waiting import WaitingList

UNUSABLE_POLICY: Final = "PolicyUnusable"
"""Reason of the Event about a policy that lets nobody have anything."""
_BY_SECRET: Final = "secret"  # noqa: S105 - the name of an index
_BY_HOST: Final = "host"
_BY_UID: Final = "uid"


def claim_informer(client: Client, *, namespace: str = "") -> Informer[HostClaim]:
    """One with what is needed to find claims quickly."""
    return Informer(
        client,
        HOST_CLAIMS,
        namespace=namespace,
        indexes={
            _BY_SECRET: _secrets_of,
            _BY_HOST: lambda claim: [str(key)] if (key := named_host(claim)) is not None else [],
            _BY_UID: lambda claim: [claim.metadata.uid],
        },
    )


def _secrets_of(claim: HostClaim) -> Iterable[str]:
    spec = claim.spec
    names = [reference.name for reference in (spec.user_data, spec.network_data, spec.meta_data) if reference]
    names += [spec.image.oci_auth_secret_name] if spec.image is not None else []
    return [str(Key(claim.metadata.namespace, name)) for name in dict.fromkeys(names) if name]


def controller(
    client: Client,
    recorder: EventRecorder,
    pool: Pool,
    *,
    hosts: Informer[BareMetalHost],
    waiting: WaitingList,
    claims: Informer[HostClaim],
    policies: Informer[HostDeployPolicy],
    namespaces: Informer[Namespace],
    secrets: Informer[PartialObjectMetadata],
    hardware: Informer[PartialObjectMetadata],
    namespace: str = "",
    workers: int = 16,
    settled: float = SETTLED,
    clock: Callable[[], datetime] = now,
) -> Controller:
    """`claims` and `secrets` are made by `claim_informer` and `secret_informer`; of HardwareData the metadata is enough.

    `namespace` is the one whose claims are looked after, "" for all; `settled` for how long a claim has to be gone before
    what it left is let go.
    """

    def may_have(namespace: str) -> frozenset[str]:
        unknown = Namespace(metadata=ObjectMeta(name=namespace))
        return host_namespaces(policies.items(), namespaces.get(Key("", namespace)) or unknown)

    writer = ClaimWriter(client, recorder, claims, clock)
    copies = SecretCopies(client, secrets)
    taker = Taker(pool, waiting, copies, writer, may_have=may_have, wake=lambda key: made.wake(key))
    reconcile = ClaimReconciler(
        recorder,
        pool,
        writer=writer,
        taker=taker,
        copies=copies,
        hardware=HardwareCopies(client, hardware),
        deserted=Deserted(client, recorder, pool, copies, writer, namespace=namespace, settled=settled),
    )
    made = Controller("hostclaims", reconcile, workers=workers)

    def wake_hostless(concerned: Callable[[Key], bool]) -> None:
        for key in [key for key in reconcile.hostless if concerned(key)]:
            made.wake(key, low=True)

    def policy_changed(change: Change[HostDeployPolicy]) -> None:
        old, new = change.old, change.new
        is_written = new is not None and (old is None or old.spec != new.spec)
        problem = problem_with(new) if new is not None and is_written else None
        if new is not None and problem is not None:
            recorder.record(new, type="Warning", reason=UNUSABLE_POLICY, message=problem)
        wake_hostless(lambda key: True)

    def namespace_changed(change: Change[Namespace]) -> None:
        wake_hostless(lambda key: key.namespace == change.key.name)

    def users_of(secret: PartialObjectMetadata) -> list[Key]:
        copied_for = secret.metadata.labels.get(COPY_OF, "")
        return [
            *(claim.key for claim in claims.by_index(_BY_SECRET, str(secret.key))),
            *(claim.key for claim in claims.by_index(_BY_UID, copied_for)),
        ]

    def claims_of(host: BareMetalHost) -> list[Key]:
        has = claim_of(host)
        meant = [claim.key for claim in claims.by_index(_BY_HOST, str(host.key))]
        return meant if has is None else [has, *meant]

    follow(made, claims, when=lambda old, new: not writer.is_own(new))
    follow(made, hosts, claims_of)
    follow(made, secrets, users_of)
    follow(made, hardware, owned_by(HOST_CLAIMS))
    policies.subscribe(policy_changed)
    namespaces.subscribe(namespace_changed)
    return made
