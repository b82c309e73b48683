"""Registering: make the host known to Ironic and prove that its credentials work.

Called in every pass, so once a record was brought in line it is remembered by a fingerprint, and the next call answers from
memory. Safe to repeat and to interrupt at any point: a node is looked for by its id, its name and its MAC address before one
is made, and a node somebody else made in between is found by its name. Nothing here can destroy: the strongest verb is
`manage`, which reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ingot.api.meta import Key
from ingot.provisioner import Access, Busy, Failed, HostRef, NotRegistered, Ready, Registered
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.attempts import Scope
from ingot.provisioner.ironic.carrying_out import LOCK_PATIENCE
from ingot.provisioner.ironic.decisions import Done, Fail, Step, Wait
from ingot.provisioner.ironic.errors import BadRequest, Conflict, NotFound, Taken, Unavailable, WrongState
from ingot.provisioner.ironic.interruptions import found_nobody, was_interrupted
from ingot.provisioner.ironic.model import FullNode, Node
from ingot.provisioner.ironic.names import node_name
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.orphans import made_for, mark
from ingot.provisioner.ironic.ports import InOrder, belongs_to_another, ensure_ports, owner_of
from ingot.provisioner.ironic.reaching import Reaching
from ingot.provisioner.ironic.reasons import explain, refuses_credentials, shorten
from ingot.provisioner.ironic.record import (
    RESTING,
    Fingerprint,
    Record,
    Unsupported,
    differences,
    has_another_driver,
    record_for,
    waits_for_rest,
)
from ingot.provisioner.ironic.rules import Fact, Going, Hangs, Verb, elsewhere, facts_of, on
from ingot.provisioner.ironic.site import Ramdisk, Site
from ingot.provisioner.ironic.transitions import manage
from ingot.provisioner.ironic.trials import Asking, DidNot, Trials

MOST_STEPS: Final = 4
_ABOUT_THE_DRIVER: Final = re.compile(r"No conductor service registered which supports driver")
_ABOUT_NETWORK_DATA: Final = re.compile(r"Invalid network_data|Schema error for node")


REGISTER: Final = Verb(
    name="register",
    rules=(
        on(
            states.ENROLL,
            when=Fact.ERROR,
            unless=(Fact.TOLD, Fact.UNPROVEN),
            then=Fail("Ironic cannot take the host under management", cause_says_it_all=True),
        ),
        on(states.ENROLL, then=Step.MANAGE),
        # Whatever failed, failed in another way than the host is to be inspected in now.
        on(states.INSPECT_FAILED, when=Fact.OTHERWISE, then=Step.MANAGE),
        on(states.VERIFYING, when=Fact.OVERDUE, then=Hangs()),
        on(states.VERIFYING, then=Going()),
        # What hangs is told by the verb that waits for it.
        elsewhere(
            states.UPDATABLE,
            when=Fact.UNPROVEN,
            unless=Fact.OVERDUE,
            then=Going("the new credentials are handed on afterwards"),
        ),
        elsewhere(then=Done()),
    ),
)


@dataclass(frozen=True, slots=True)
class _InLine:
    """A record that is as it should be."""

    settings: Fingerprint
    credentials: Fingerprint | None
    macs: tuple[str, ...]
    waits: bool
    """But for its driver or interfaces, which Ironic lets nobody change before the node is at rest."""


class Registrar:
    """Registers hosts, and remembers which records are as they should be."""

    def __init__(self, nodes: Nodes, trials: Trials, ramdisk: Ramdisk, site: Site) -> None:
        self._nodes = nodes
        self._trials = trials
        self._ramdisk = ramdisk
        self._site = site
        self._reaching = Reaching()
        self._in_line: dict[str, _InLine] = {}
        self._ports = InOrder()
        self._handed_on: dict[str, Fingerprint] = {}
        self._owed: dict[Key, Fingerprint] = {}

    async def register(
        self, host: HostRef, access: Access, *, credentials_changed: bool, again: bool
    ) -> Ready[Registered] | Busy | Failed | NotRegistered:
        try:
            over_v6 = bool(self._site.external_url_v6) and await self._reaching.goes_over_v6(access.address)
            wanted = record_for(host, access, self._ramdisk, self._site, over_v6=over_v6)
        except Unsupported as problem:
            return Failed(str(problem))
        credentials = wanted.credentials_fingerprint()
        if credentials is None and not self._can_do_without(host):
            return NotRegistered("Ironic has to be given the credentials")
        if credentials is not None and credentials_changed:
            # Said once; whatever comes in between, they are handed on and tried before the host counts as registered.
            self._owed[host.key] = credentials
        if (known := self._already_in_line(host, access, wanted)) is not None:
            return Ready(Registered(known.uuid, wanted.remark))
        try:
            return await self._bring_in_line(host, access, wanted, again=again)
        except Conflict as conflict:
            self._nodes.look_again(host, LOCK_PATIENCE)
            return Busy(f"Ironic is busy with the node for a moment: {shorten(conflict.text)}")
        except BadRequest as refused:
            if wanted.network_data and _ABOUT_NETWORK_DATA.search(refused.text):
                # Ironic repeats what it refuses, and that is secret.
                return Failed(
                    "Ironic does not accept the network data of the ramdisk: it must have links, networks and services in the "
                    "format of OpenStack's network_data.json"
                )
            if _ABOUT_THE_DRIVER.search(refused.text):
                if not await self._nodes.client.drivers():
                    raise Unavailable("Ironic answers, but no conductor has a driver ready yet") from None
                return Failed(_no_driver(wanted.driver))
            return Failed(f"Ironic does not accept the host: {shorten(refused.text)}")
        except NotFound as missing:
            # The node, found a moment ago, is gone: begin again.
            self._nodes.look_again(host, LOCK_PATIENCE)
            return Busy(f"the node vanished from Ironic while it was registered: {shorten(missing.text)}")

    def _can_do_without(self, host: HostRef) -> bool:
        """Whether Ironic has the credentials of this host from us, and no others are due."""
        known = self._nodes.known(host)
        which = known.uuid if known is not None else host.backend_id
        return which in self._handed_on and host.key not in self._owed

    def forget(self, host: HostRef) -> None:
        """The host was deleted."""
        self._in_line.pop(host.backend_id, None)
        self._ports.forget(host.backend_id)
        self._handed_on.pop(host.backend_id, None)
        self._owed.pop(host.key, None)
        self._trials.forget(host.backend_id)

    def doubt_all(self) -> None:
        """Ironic may have another database, with the same nodes as they were at another time."""
        self._in_line.clear()
        self._ports.forget_all()
        self._handed_on.clear()

    def _already_in_line(self, host: HostRef, access: Access, wanted: Record) -> Node | None:
        known = self._nodes.known(host)
        if known is None or self._owed.get(host.key) is not None:
            return None
        # Those that were handed on last may still be on trial.
        given = wanted.credentials_fingerprint() or self._handed_on.get(known.uuid)
        found = self._in_line.get(known.uuid)
        if found is None or known.provision_state in (states.ENROLL, states.VERIFYING):
            return None
        alike = found == _InLine(wanted.fingerprint(), given, _macs(access), found.waits)
        at_rest = known.provision_state in (*RESTING, states.INSPECT_FAILED)
        return known if alike and not (found.waits and at_rest) else None

    async def _bring_in_line(
        self, host: HostRef, access: Access, wanted: Record, *, again: bool
    ) -> Ready[Registered] | Busy | Failed | NotRegistered:
        for _ in range(MOST_STEPS):
            node = await self._find(host, access) or await self._create(host, wanted)
            if isinstance(node, Failed | NotRegistered):
                return node
            if access.credentials is None and (
                node.uuid not in self._handed_on or wanted.is_of_another_bmc(node)
            ):
                return NotRegistered("the node is another one, and has to be given the credentials")
            if _is_somebody_elses(node, host, access):
                return Failed(
                    f"Ironic has this machine already, as the node {node.name or node.uuid}, and another operating system "
                    "runs on it. "
                    "It is left alone. Remove that system first, or set spec.externallyProvisioned to manage the machine as it is"
                )
            unproven = self._unproven(host, node, wanted)
            order = {
                Fact.ERROR: bool(node.last_error),
                Fact.TOLD: self._may_retry(host, node, again=again),
                Fact.UNPROVEN: unproven,
                Fact.OTHERWISE: waits_for_rest(node, wanted),
            }
            decision = REGISTER.decide(node, facts_of(node, self._nodes.now(), order))
            if decision is Step.MANAGE and node.provision_state == states.INSPECT_FAILED:
                await manage(self._nodes)(node)
                continue
            if (refused := _has_a_driver_to_stay(node, wanted)) is not None:
                return refused
            match decision:
                case Wait(why, detail):
                    return Busy(why, detail)
                case Fail():
                    return self._nodes.failure(decision, node, await self._nodes.reason(decision, node))
            if node.provision_state in states.UPDATABLE:
                patch = differences(node, wanted, new_password=unproven) + mark(node, host)
                node = await self._nodes.patch(node, patch)
                if unproven and (given := wanted.credentials_fingerprint()) is not None:
                    self._handed_on[node.uuid] = given
                    self._owed.pop(host.key, None)
                    if decision is not Step.MANAGE:
                        # At once: from here on nobody would know that they were never tried.
                        self._trials.start(host.key, node.uuid, given)
                    # How switching went with the old ones says nothing any more.
                    for scope in (Scope.POWER_ON, Scope.POWER_OFF):
                        self._nodes.attempts.done(node.uuid, scope)
            if decision is not Step.MANAGE:
                return await self._finish(host, access, node, wanted, again=again)
            if problem := await ensure_ports(self._nodes, node, access, self._ports):
                return Failed(problem)
            try:
                await self._nodes.ask_state(node, "manage")
            except WrongState:
                self._nodes.cache.doubt(node.uuid)
                continue
            return Busy(states.sentence(states.VERIFYING))
        self._nodes.look_again(host, LOCK_PATIENCE)
        return Busy("Ironic changes the node faster than it can be followed; looking again in a moment")

    def _may_retry(self, host: HostRef, node: Node, *, again: bool) -> bool:
        """Whether taking the host under management may be tried again; at once where Ironic was interrupted at it."""
        interrupted = node.provision_state == states.ENROLL and (was_interrupted(node) or found_nobody(node))
        which = (node.uuid, node.provision_updated_at)
        if interrupted and self._nodes.interruptions.may_go_on(host.key, states.ENROLL, which):
            return True
        return self._nodes.attempts.may_retry(node.uuid, Scope.STATE, again=again)

    def _unproven(self, host: HostRef, node: FullNode, wanted: Record) -> bool:
        """Whether Ironic must be given the credentials, because nobody knows that it has these."""
        if wanted.credentials_fingerprint() in (None, self._handed_on.get(node.uuid)):
            self._owed.pop(host.key, None)
            return False
        # A node that was never under management may be left from a life in which we were killed.
        return (
            host.key in self._owed or node.provision_state == states.ENROLL or wanted.is_of_another_bmc(node)
        )

    async def _find(self, host: HostRef, access: Access) -> FullNode | Failed | None:
        """By id, by name, by MAC address: a host is never registered twice."""
        if host.backend_id and (node := await self._nodes.read(host.backend_id)) is not None:
            return node
        name = node_name(host.key)
        if not self._nodes.surely_lacks(name) and (node := await self._nodes.read(name)) is not None:
            return node
        owner = await owner_of(self._nodes, access.boot_mac) if access.boot_mac else ""
        node = await self._nodes.read(owner) if owner else None
        if node is not None and node.name not in (None, "", name):
            return Failed(belongs_to_another(access.boot_mac, node))
        return node

    async def _create(self, host: HostRef, wanted: Record) -> FullNode | NotRegistered:
        credentials = wanted.credentials_fingerprint()
        if credentials is None:
            return NotRegistered("Ironic does not know the host, and has to be given its credentials")
        try:
            node = await self._nodes.create(wanted.to_create() | {"extra": made_for(host)})
        except Taken:
            # Another process, or we before we were killed, made it in between.
            node = await self._nodes.client.node(wanted.name)
        else:
            self._handed_on[node.uuid] = credentials
        return node

    async def _finish(
        self,
        host: HostRef,
        access: Access,
        node: FullNode,
        wanted: Record,
        *,
        again: bool,
    ) -> Ready[Registered] | Busy | Failed | NotRegistered:
        """The node is under management. What is left: new credentials that are being tried, and its ports."""
        fingerprint = wanted.credentials_fingerprint() or self._handed_on.get(node.uuid)
        if fingerprint is None:
            return NotRegistered("Ironic was started anew meanwhile, and has to be given the credentials")
        try:
            trial = self._trials.state(node.uuid, fingerprint)
        except Unavailable:
            # Nobody knows whether they work: they are handed on and tried once more.
            self._handed_on.pop(node.uuid, None)
            self._owed[host.key] = fingerprint
            raise
        if isinstance(trial, DidNot) and trial.told and again and node.provision_state in states.UPDATABLE:
            self._trials.start(host.key, node.uuid, fingerprint)
            trial = Asking()
        match trial:
            case Asking():
                return Busy("trying the new credentials on the BMC")
            case DidNot(text):
                return Failed(
                    f"the new credentials do not work: {explain(text, node)}",
                    refused_credentials=refuses_credentials(text),
                )
        if states.is_busy(node.provision_state):
            return Ready(Registered(node.uuid, wanted.remark))
        if problem := await ensure_ports(self._nodes, node, access, self._ports):
            return Failed(problem)
        self._in_line[node.uuid] = _InLine(
            wanted.fingerprint(), fingerprint, _macs(access), waits_for_rest(node, wanted)
        )
        # Nobody says that they changed: Ironic was given these by whoever was there before us.
        self._handed_on.setdefault(node.uuid, fingerprint)
        self._nodes.attempts.done(node.uuid, Scope.STATE)
        self._nodes.interruptions.progressed(host.key, states.ENROLL)
        return Ready(Registered(node.uuid, wanted.remark))


def _is_somebody_elses(node: FullNode, host: HostRef, access: Access) -> bool:
    """A machine that ran before this host was registered as this node. Whoever deployed it did not ask this host to take it."""
    return (
        host.backend_id != node.uuid
        and not access.runs_a_system
        and node.provision_state in states.HOLDS_INSTANCE
        and node.instance_uuid != host.uid
    )


def _has_a_driver_to_stay(node: FullNode, wanted: Record) -> Busy | Failed | None:
    """Another driver is chosen only for a node at rest."""
    if not has_another_driver(node, wanted) or node.provision_state in RESTING:
        return None
    found = f"Ironic has the node {node.name or node.uuid} with the driver {node.driver}, and {wanted.driver} is needed"
    if states.is_busy(node.provision_state):
        return Busy(f"{found}; it is changed as soon as the node is at rest")
    return Failed(
        f"{found}. That cannot be changed while it is {node.provision_state}. Detach the host and attach it again"
    )


def _no_driver(name: str) -> str:
    remedy = (
        "install ipmitool where Ironic runs, and start Ironic again"
        if name == "ipmi"
        else "switch it on in Ironic's configuration (enabled_hardware_types)"
    )
    return f"Ironic runs without the driver {name}, which a BMC address of this scheme needs: {remedy}"


def _macs(access: Access) -> tuple[str, ...]:
    return (access.boot_mac, *access.nic_macs)
