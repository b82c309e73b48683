"""Provisioning: put the image on the disk and start it.

The image was noted in the status before the first order went out (`available`), so that after a crash we know what may be on
the disk. A failed attempt is undone by deprovisioning before the next one begins. What the back end finds on the machine and
no attempt of this host put there is left alone, until a person says what becomes of it.
"""

from __future__ import annotations

from ingot.api.baremetalhost import ErrorType, EventReason, State
from ingot.api.installed import begun, must_deprovision, provisioning_name
from ingot.hosts.beside.boots import note_boot
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import SOON, Advance, Block, Fail, Outcome, Wait
from ingot.hosts.secrets.first_boot import first_boot_data
from ingot.hosts.secrets.pulling import pull_secret
from ingot.hosts.states.power import drop_obeyed_restart
from ingot.hosts.states.reboots import reboots
from ingot.provisioner import Busy, Deployment, Failed, NotRegistered, Ready
from ingot.trust import redact


async def provisioning(p: Pass) -> Outcome:
    if p.failed_with(ErrorType.PROVISIONING):
        p.change(provisioning_fail_count=p.status.provisioning_fail_count + 1)
        return Advance(State.DEPROVISIONING)
    installation = begun(p.status)
    if installation is None or must_deprovision(p.current):
        return Advance(State.DEPROVISIONING)
    image = p.status.last_attempted_image
    custom_deploy = p.status.provisioning.custom_deploy
    drive, pull = await first_boot_data(p, image, custom_deploy), await pull_secret(p, image)
    if isinstance(drive, Block):
        return _kept_up(drive)
    if isinstance(pull, Block):
        return _kept_up(pull)
    order = Deployment(
        name=provisioning_name(p.status),
        image=image,
        custom_deploy=custom_deploy,
        config_drive=drive,
        pull_secret=pull,
        root_device=p.status.provisioning.root_device_hints,
        boot_mode=p.status.provisioning.boot_mode or "UEFI",
        restart=reboots(p.current).once,
    )
    answer = await p.tools.backend.provision(p.ref, order, permit=p.permit, again=False)
    if order.restart:
        await drop_obeyed_restart(p, answer)
    match answer:
        case Busy(why, detail):
            note_boot(p, since=p.status.operation_history.provision.start, again=order.restart)
            return Wait(why, detail)
        case NotRegistered(why):
            return Wait(why, look_again=SOON)
        case Failed(message, needs_person=True):
            return _left_alone(message)
        case Failed(message):
            return Fail(ErrorType.PROVISIONING, message)
        case Ready():
            p.change_provisioning(image=image)
            p.change(provisioning_fail_count=0)
            p.completed()
            what = redact(installation.image_url or installation.deploy_method)
            p.tell(EventReason.PROVISIONING_COMPLETE, f"Image provisioning completed for {what}")
            return Advance(State.PROVISIONED)


def _left_alone(message: str) -> Block:
    """Not a failed attempt either: that would be undone, and what is there is not of this attempt."""
    return Block(ErrorType.PREPARATION, message, EventReason.PROVISIONING_ERROR)


def _kept_up(by: Block) -> Block:
    """Not a failed attempt: that would undo a deployment which may be under way, for a Secret that can come back."""
    return Block(ErrorType.PREPARATION, by.message, by.event)
