"""The guard: the one place that says whether something that can destroy may be done to a host.

Pure. It takes the host as it is in the API now and what the back end sees at the machine now, and refuses when the two
together do not say that somebody asked for it. A state machine may have a bug, a cache may be old, two operators may run by
mistake: none of that may cost a user a running machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ingot.api.baremetalhost import Annotation, BareMetalHost, ErrorType, OperationalStatus, State
from ingot.api.detachment import may_be_let_go
from ingot.api.installed import (
    RUNS_A_SYSTEM,
    must_deprovision,
    provisioning_name,
    undoes_an_attempt,
    wanted,
)
from ingot.hosts.states.reboots import reboots
from ingot.provisioner import BEGIN_ANEW, Act, Refusal, Sight

CLEANS: Final = frozenset({State.PREPARING, State.PROVISIONING, State.DEPROVISIONING})
TOUCHES_THE_MACHINE: Final = frozenset({Act.CLEAN, Act.DEPLOY, Act.UNDEPLOY, Act.SERVICE, Act.POWER_OFF})
LEAVES: Final = frozenset({State.DEPROVISIONING, State.POWERING_OFF_BEFORE_DELETE, State.DELETING})


def refusal(host: BareMetalHost | None, *, uid: str, act: Act, sight: Sight) -> Refusal | None:
    """Why `act` must not be done to the host now; None when somebody asked for it."""
    if host is None or host.metadata.uid != uid:
        return Refusal(f"not doing {act.value}: the BareMetalHost it was decided for does not exist any more")
    why = _objection(host, act, sight)
    if why is None and act is Act.UNDEPLOY and _is_of_another_provisioning(host, sight):
        return Refusal(
            f"not doing {act.value} to {host.key}: the back end has it as {sight.state!r} with a system that the provisioning "
            f"which is to be undone did not put there. It may be in use and is left alone. {BEGIN_ANEW}",
            needs_person=True,
        )
    if why is None:
        return None
    return Refusal(f"not doing {act.value} to {host.key}: {why} (the back end says {sight.state!r})")


def refusal_for_shared(
    host: BareMetalHost, others: Iterable[BareMetalHost], *, act: Act, sight: Sight
) -> Refusal | None:
    """Why `act` must not be done where two hosts are registered as one record, as copied manifests with a status can be.

    Dropping the record does not touch the machine, and is the way out.
    """
    if act not in TOUCHES_THE_MACHINE or not sight.backend_id:
        return None
    for other in others:
        if other.status.provisioning.id == sight.backend_id and other.key != host.key:
            return Refusal(
                f"not doing {act.value} to {host.key}: {other.key} is registered as the same machine ({sight.backend_id}). "
                f"Remove the one that is not meant: give it the annotation {Annotation.DETACHED}, then delete it"
            )
    return None


def refusal_for_leftover(
    live: Iterable[BareMetalHost | None], *, uid: str, act: Act, sight: Sight
) -> Refusal | None:
    """Why `act` must not be done to the record that a host of this UID left when it was deleted by force.

    `live`: the host that has its name now, and the one that is registered as this record, as far as there are such.
    """
    if act is not Act.DELETE:
        return Refusal(f"not doing {act.value}: of a host that is gone only the record is removed")
    for host in live:
        if took_over(host, uid=uid):
            return Refusal(f"not doing {act.value}: {host.key if host else ''} is registered as this record")
    return None


def took_over(live: BareMetalHost | None, *, uid: str) -> bool:
    """Whether this host, and not the one of this UID, is what the back end's record stands for now."""
    return live is not None and live.metadata.uid != uid and bool(live.status.provisioning.id)


def _objection(host: BareMetalHost, act: Act, sight: Sight) -> str | None:
    deleting = host.metadata.deletion_timestamp is not None
    state = host.state
    if Annotation.PAUSED in host.metadata.annotations:
        return f"it was paused meanwhile, by the annotation {Annotation.PAUSED}"
    if _is_unrestored(host) and not deleting:
        return "it was moved here, and the status that it had has not been taken over"
    if act is Act.DETACH:
        return None if may_be_let_go(host) else "nobody asked for it to be let go, in the state it is in"
    if act is Act.FORGET:
        return _objection_to_forgetting(host, deleting=deleting)
    # What is wanted instead may be unusable; as long as that is so, the host is in use, and serviced like others.
    if state in RUNS_A_SYSTEM and not deleting and (act is Act.SERVICE or not must_deprovision(host)):
        return _objection_while_it_runs(host, act)
    match act:
        case Act.CLEAN if state not in CLEANS:
            return f"cleaning belongs to preparing, provisioning and deprovisioning, and the host is {state or 'new'}"
        case Act.CLEAN if state is State.PREPARING and deleting:
            return "it is being deleted, and need not be prepared"
        case Act.CLEAN if sight.holds_instance and not _leaving(host, deleting=deleting):
            return "an operating system is installed on the machine and nobody asked to remove it"
        case Act.DEPLOY if state is not State.PROVISIONING or deleting or wanted(host.spec) is None:
            return f"no image is wanted on it now (state {state or 'new'})"
        case Act.DEPLOY if sight.holds_instance:
            return "an operating system is installed on the machine already"
        case Act.UNDEPLOY if not _may_be_emptied(host, deleting=deleting):
            return "nobody asked to remove what is installed"
        case Act.POWER_OFF if state is State.AVAILABLE and not (deleting or _is_to_be_stopped(host)):
            return "it is to be online"
        case Act.POWER_OFF if sight.holds_instance and not _may_be_emptied(host, deleting=deleting):
            return "an operating system is installed on the machine and nobody asked to stop it"
        case Act.SERVICE:
            return (
                f"only a host in use is serviced, and this one is {'going' if deleting else state or 'new'}"
            )
        case Act.DELETE if not deleting:
            return "the BareMetalHost is not being deleted"
    return None


def _is_unrestored(host: BareMetalHost) -> bool:
    """Nothing is known of the machine but that it has a past."""
    return host.status.last_updated is None and Annotation.STATUS in host.metadata.annotations


def _objection_while_it_runs(host: BareMetalHost, act: Act) -> str | None:
    if act is Act.POWER_OFF and host.status.operational_status is OperationalStatus.SERVICING:
        return "its firmware is being changed, and a power off can spoil the machine"
    if act is Act.POWER_OFF and _is_to_be_stopped(host):
        return None
    if act is Act.SERVICE and _is_serviced(host):
        return None
    return f"the host is {host.state} and nobody asked for it"


def _is_to_be_stopped(host: BareMetalHost) -> bool:
    """Somebody wants it off, or rebooted."""
    asked = reboots(host)
    return asked.once if host.spec.disable_power_off else bool(asked) or not host.spec.online


def _is_serviced(host: BareMetalHost) -> bool:
    """That it is serviced is written before it is begun, and stays written until it has succeeded or is given up."""
    servicing = host.status.operational_status is OperationalStatus.SERVICING
    return servicing or host.status.error_type is ErrorType.SERVICING


def _objection_to_forgetting(host: BareMetalHost, *, deleting: bool) -> str | None:
    """A record that is dropped is made anew from the status; only for a host that runs does that leave it as it is."""
    if deleting or host.state in RUNS_A_SYSTEM:
        return None
    return f"nothing is known to run on it that could be taken over again (state {host.state or 'new'})"


def _leaving(host: BareMetalHost, *, deleting: bool) -> bool:
    return deleting or host.state in LEAVES or must_deprovision(host)


def _may_be_emptied(host: BareMetalHost, *, deleting: bool) -> bool:
    """What was begun to be installed may be undone: an attempt that failed is cleaned away before the next one."""
    return _leaving(host, deleting=deleting) or host.state is State.PROVISIONING


def _is_of_another_provisioning(host: BareMetalHost, sight: Sight) -> bool:
    """Whether what is there was put there by somebody else than the provisioning that this host undoes.

    An attempt of ours is noted before it begins, so what has no note is not of an attempt. A host that was provisioned is another
    matter: it may have been taken over without one, and a person has asked for it to be emptied. So has whoever deletes it.
    """
    if host.metadata.deletion_timestamp is not None or not sight.holds_instance:
        return False
    if sight.deployed_for is not None:
        return sight.deployed_for != provisioning_name(host.status)
    return host.state is State.PROVISIONING or undoes_an_attempt(host.status)
