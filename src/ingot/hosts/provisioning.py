"""Provisioning: put the image on the disk and start it.

The image was noted in the status before the first order went out (`available`), so that after a crash we know what may be on
the disk. A failed attempt is undone by deprovisioning before the next one begins.
"""

from __future__ import annotations

from ingot.api.baremetalhost import ErrorType, EventReason, State
from ingot.api.installed import must_deprovision
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import SOON, Advance, Block, Fail, Outcome, Wait
from ingot.hosts.power import drop_obeyed_restart
from ingot.hosts.reboots import reboots
from ingot.hosts.secrets import config_drive
from ingot.provisioner import Busy, Deployment, Failed, NotRegistered, Ready
from ingot.trust import redact


async def provisioning(p: Pass) -> Outcome:
    if p.failed_with(ErrorType.PROVISIONING):
        p.change(provisioning_fail_count=p.status.provisioning_fail_count + 1)
        return Advance(State.DEPROVISIONING)
    attempted = p.status.last_attempted_image
    if attempted is None or must_deprovision(p.current):
        return Advance(State.DEPROVISIONING)
    drive = await config_drive(p)
    if isinstance(drive, Block):
        # Not a failed attempt: that would undo a deployment which may be under way, for a Secret that can come back.
        return Block(ErrorType.PREPARATION, drive.message)
    order = Deployment(
        image=attempted,
        config_drive=drive,
        root_device=p.status.provisioning.root_device_hints,
        boot_mode=p.host.spec.boot_mode or "UEFI",
        restart=reboots(p.current).once,
    )
    answer = await p.tools.backend.provision(p.ref, order, permit=p.permit, again=False)
    if order.restart:
        await drop_obeyed_restart(p, answer)
    match answer:
        case Busy(why, detail):
            return Wait(why, detail)
        case NotRegistered(why):
            return Wait(why, look_again=SOON)
        case Failed(message):
            return Fail(ErrorType.PROVISIONING, message)
        case Ready():
            p.change_provisioning(image=attempted, boot_mode=order.boot_mode)
            p.change(provisioning_fail_count=0)
            p.completed()
            p.tell(
                EventReason.PROVISIONING_COMPLETE, f"Image provisioning completed for {redact(attempted.url)}"
            )
            return Advance(State.PROVISIONED)
