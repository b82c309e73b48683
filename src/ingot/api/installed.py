"""What the user wants installed, and whether it is what is installed.

Pure, over spec and status. Two things tell one installation from another: the URL of its image and the name of its custom deploy
step, for which `format: coreos` is another word. A different checksum, another format that is written to the disk in the same
way, or other user data is not a different installation: changing them never costs a running machine.

Rules kept here:

- A host that is provisioned is emptied when what it runs is removed from the spec or replaced by something else.
- A host that is being provisioned is compared with what was begun, `status.lastAttemptedImage`. So that field is written
  together with the state `provisioning`, before anything is done, and cleared there if no image is wanted: one left from an
  earlier attempt would look like a change.
- What is added to an installation without contradicting it (a custom deploy step beside the image that runs) waits until the
  host is provisioned for another reason. An image that becomes one of CoreOS is not an addition: it was written by other means.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from ingot.api.baremetalhost import (
    INSTALL_COREOS,
    BareMetalHost,
    BareMetalHostSpec,
    BareMetalHostStatus,
    CustomDeploy,
    Image,
    State,
)

RUNS_A_SYSTEM: Final = frozenset({State.PROVISIONED, State.EXTERNALLY_PROVISIONED})
"""States of a host on which an operating system runs that somebody uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What makes an installation the one it is. At least one of the two is set."""

    image_url: str = ""
    deploy_method: str = ""
    by_format: bool = False
    """The deploy step is the one that the image's format asks for."""

    def is_contradicted_by(self, other: Installation | None) -> bool:
        """Whether wanting `other` means that this one has to go."""
        if other is None:
            return True
        if (self.deploy_method or other.by_format) and other.deploy_method != self.deploy_method:
            return True
        return bool(self.image_url) and other.image_url != self.image_url


def deploy_method(image: Image | None, custom_deploy: CustomDeploy | None) -> str:
    """The deploy step of the ramdisk that installs the system; "" where the back end writes the image."""
    if custom_deploy is not None and custom_deploy.method:
        return custom_deploy.method
    return INSTALL_COREOS if image is not None and image.format == "coreos" else ""


def software_raid_under_coreos(spec: BareMetalHostSpec) -> str | None:
    """Why the two cannot be had together; None where they are not asked for together.

    The volumes would be made, and removed again by what installs CoreOS: it writes whole disks, which firmware then boots from.
    """
    volumes = spec.raid.software_raid_volumes if spec.raid is not None else None
    if not volumes or deploy_method(spec.image, spec.custom_deploy) != INSTALL_COREOS:
        return None
    return (
        "CoreOS is written to whole disks and cannot be installed on software RAID volumes, which would be removed for it. "
        "Remove spec.raid.softwareRAIDVolumes, and have Ignition mirror the disks (storage.raid; boot_device.mirror in Butane)."
    )


def wanted(spec: BareMetalHostSpec) -> Installation | None:
    """What the user asks for; None for nothing."""
    return _installation(spec.image, spec.custom_deploy)


def installed(status: BareMetalHostStatus) -> Installation | None:
    """What was installed to the end; None for nothing."""
    return _installation(status.provisioning.image, status.provisioning.custom_deploy)


def begun(status: BareMetalHostStatus) -> Installation | None:
    """What was last begun to be installed; None if that is not known."""
    return _installation(status.last_attempted_image, status.provisioning.custom_deploy)


def provisioning_name(status: BareMetalHostStatus) -> str:
    """What the provisioning is called that a host is in or was last in: the time when it began; "" for one that never was.

    It is written before the back end is told, and the back end notes it with what it deploys. So it can be told from what
    another one deployed, be it the same host's, of which the API knew before it was restored from a backup.
    """
    start = status.operation_history.provision.start
    return start.isoformat() if start is not None else ""


def undoes_an_attempt(status: BareMetalHostStatus) -> bool:
    """Whether the host came to be deprovisioned straight from being provisioned: leaving the one was entering the other."""
    history = status.operation_history
    return history.deprovision.start is not None and history.deprovision.start == history.provision.end


def mark_of(image: Image | None, custom_deploy: CustomDeploy | None) -> str:
    """A short mark of what these install, another one for another installation; "" for nothing.

    It is short, and says nothing of the URL, which may hold a password.
    """
    found = _installation(image, custom_deploy)
    if found is None:
        return ""
    return hashlib.blake2b(f"{found.deploy_method} {found.image_url}".encode(), digest_size=8).hexdigest()


def needs_provisioning(host: BareMetalHost) -> bool:
    """Whether something is wanted that is not installed. A host that is to be off waits."""
    want = wanted(host.spec)
    if want is None or not host.spec.online:
        return False
    have = installed(host.status) or Installation()
    return (bool(want.image_url) and not have.image_url) or (
        bool(want.deploy_method) and want.deploy_method != have.deploy_method
    )


def must_deprovision(host: BareMetalHost) -> bool:
    """Whether what is installed, or being installed, is not wanted any more."""
    want = wanted(host.spec)
    if host.state is State.PROVISIONED:
        have = installed(host.status)
    elif host.state is State.PROVISIONING:
        have = begun(host.status)
    else:
        return False
    return want is None if have is None else have.is_contradicted_by(want)


def _installation(image: Image | None, custom_deploy: CustomDeploy | None) -> Installation | None:
    url, method = image.url if image else "", deploy_method(image, custom_deploy)
    if not (url or method):
        return None
    named = custom_deploy is not None and bool(custom_deploy.method)
    return Installation(image_url=url, deploy_method=method, by_format=bool(method) and not named)
