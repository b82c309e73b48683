"""Provisioning and deprovisioning: put a system on the disk, and take it off again.

A deployment that failed is not repeated over its own remains: it is deprovisioned first. One that is under way is given up
when it is to be deprovisioned. A disk of which the record does not say that it is empty is emptied: the record may be new.
"""

from __future__ import annotations

from typing import Final

from ingot.api.installed import deploy_method
from ingot.provisioner import (
    BEGIN_ANEW,
    Act,
    Busy,
    Deployment,
    Failed,
    HostRef,
    NotRegistered,
    Permit,
    Ready,
)
from ingot.provisioner.demo.carrying_out import Done, Order, carry_out
from ingot.provisioner.demo.hall import Hall
from ingot.provisioner.demo.machine import Deploys, System, Undeploys
from ingot.provisioner.demo.script import Verb
from ingot.trust import redact

GIVEN_UP: Final = (Verb.PROVISION, Verb.SERVICE, Verb.PREPARE, Verb.INSPECT, Verb.ADOPT)


async def provision(
    hall: Hall, host: HostRef, wanted: Deployment, *, permit: Permit, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    known = hall.known(host)
    if known is None:
        return hall.not_registered(host)
    system = System(
        image=wanted.image.url if wanted.image is not None else "",
        method=deploy_method(wanted.image, wanted.custom_deploy),
    )
    if known.record.instance:
        if known.machine.disk == system:
            known.record.deployed_for = wanted.name or known.record.deployed_for
            hall.note(host.key)
            await hall.written()
            return Ready(None)
        return Failed(
            "another operating system is on the machine, which this provisioning did not put there. It may be in use and is left "
            f"alone. {BEGIN_ANEW}",
            needs_person=True,
        )
    order = Order(
        verb=Verb.PROVISION,
        effect=Deploys(system, wanted.name),
        doing=f"installing {redact(system.image) or system.method}",
        act=Act.DEPLOY,
    )
    answer = await carry_out(hall, known, order, permit=permit, again=again, restart=wanted.restart)
    return Ready(None) if isinstance(answer, Done) else answer


async def deprovision(
    hall: Hall, host: HostRef, *, automated_cleaning: bool, permit: Permit, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    known = hall.known(host)
    if known is None:
        return hall.not_registered(host)
    works = known.record.works
    if known.record.emptied and Verb.DEPROVISION not in works:
        return Ready(None)
    installed = known.record.instance or Verb.PROVISION in works or Verb.ADOPT in works
    order = Order(
        verb=Verb.DEPROVISION,
        effect=Undeploys(cleans=automated_cleaning),
        doing="removing what is installed" + (" and cleaning the disk" if automated_cleaning else ""),
        act=Act.UNDEPLOY if installed else Act.CLEAN,
        interrupts=GIVEN_UP,
    )
    answer = await carry_out(hall, known, order, permit=permit, again=again)
    return Ready(None) if isinstance(answer, Done) else answer
