"""Everything that gives hosts away, ready to be run: the informers that its controllers share, and the controllers.

Made here and nowhere else, so that no kind is watched twice. Of Secrets the metadata alone is followed: whoever needs a value
asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import NAMESPACES
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.hostclaim import HOST_CLAIMS
from ingot.api.hostdeploypolicy import HOST_DEPLOY_POLICIES
from ingot.api.machine import MACHINE_SETS, MACHINES
from ingot.api.meta import Object, Resource
from ingot.kube import Client, Controller, EventRecorder, Informer, metadata_of
from ingot.machines import claims, machine, machineset, remediation
from ingot.machines.defaults import TargetDefaults, defaults_informer
from ingot.machines.machineset import WhoseSets
from ingot.machines.pool import Pool, host_informer
from ingot.machines.waiting import WaitingList

Job = Callable[[], Coroutine[Any, Any, None]]
T = TypeVar("T", bound=Object)

KINDS: Final[tuple[Resource[Any], ...]] = (
    BARE_METAL_HOSTS,
    MACHINES,
    MACHINE_SETS,
    HOST_CLAIMS,
    HOST_DEPLOY_POLICIES,
    HARDWARE_DATA,
)
"""What an API has to know before any of this can work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSettings:
    namespace: str = ""
    """The one namespace that is looked after; "" for all."""
    workers: int = 32
    """Machines, and claims, that are looked at at the same time."""
    machinesets: WhoseSets = "auto"
    """Whether MachineSets are ours. auto: unless the cluster's Machine API operator has them."""
    defaults_namespace: str = ""
    """Where the ConfigMap is that says what is installed where nobody else says; "" for nowhere."""
    release_target: str = ""
    """What is installed where not even that says anything: the text of such a ConfigMap's value; "" for nothing."""


@dataclass(frozen=True, slots=True)
class Running:
    """What has to run: informers first, then controllers and tasks together."""

    informers: list[Informer[Any]] = field(default_factory=list)
    controllers: list[Controller] = field(default_factory=list)
    tasks: list[Job] = field(default_factory=list)

    def informed_by(self, informer: Informer[T]) -> Informer[T]:
        """Have it run, too."""
        self.informers.append(informer)
        return informer


def machines(
    client: Client,
    recorder: EventRecorder,
    settings: MachineSettings,
    *,
    hosts: Informer[BareMetalHost] | None = None,
) -> Running:
    """`hosts`, with the indexes of the pool, where somebody runs such an informer already."""
    made = Running()
    if hosts is None:
        hosts = made.informed_by(host_informer(client, namespace=settings.namespace))
    pool = Pool(client, hosts)
    waiting = WaitingList(hosts, pool)
    _add_machines(made, client, recorder, settings, hosts, pool, waiting)
    _add_claims(made, client, recorder, settings, hosts, pool, waiting)
    return made


def _add_machines(
    made: Running,
    client: Client,
    recorder: EventRecorder,
    settings: MachineSettings,
    hosts: Informer[BareMetalHost],
    pool: Pool,
    waiting: WaitingList,
) -> None:
    """Machines, the sets that keep them, and what mends those that do not answer."""
    machines = made.informed_by(machine.machine_informer(client, namespace=settings.namespace))
    sets = made.informed_by(Informer(client, MACHINE_SETS, namespace=settings.namespace))
    nodes = made.informed_by(machine.node_informer(client))
    of_cluster = None
    if settings.defaults_namespace:
        of_cluster = made.informed_by(defaults_informer(client, settings.defaults_namespace))
    defaults = TargetDefaults(of_cluster, release=settings.release_target)
    defaults.tell(recorder)
    made.controllers.extend(
        [
            machine.controller(
                client,
                recorder,
                pool,
                machines=machines,
                hosts=hosts,
                nodes=nodes,
                defaults=defaults,
                waiting=waiting,
                workers=settings.workers,
            ),
            machineset.controller(
                client,
                recorder,
                sets=sets,
                machines=machines,
                nodes=nodes,
                hosts=hosts,
                whose=settings.machinesets,
            ),
            *remediation.controllers(client, recorder, pool, machines=machines, nodes=nodes, hosts=hosts),
        ]
    )


def _add_claims(
    made: Running,
    client: Client,
    recorder: EventRecorder,
    settings: MachineSettings,
    hosts: Informer[BareMetalHost],
    pool: Pool,
    waiting: WaitingList,
) -> None:
    """The claims of tenants, and the policies that allow them."""
    namespace = settings.namespace
    made.controllers.append(
        claims.controller(
            client,
            recorder,
            pool,
            hosts=hosts,
            waiting=waiting,
            claims=made.informed_by(claims.claim_informer(client, namespace=namespace)),
            policies=made.informed_by(Informer(client, HOST_DEPLOY_POLICIES, namespace=namespace)),
            namespaces=made.informed_by(Informer(client, NAMESPACES)),
            secrets=made.informed_by(claims.secret_informer(client, namespace=namespace)),
            hardware=made.informed_by(Informer(client, metadata_of(HARDWARE_DATA), namespace=namespace)),
            namespace=namespace,
            workers=settings.workers,
        )
    )
