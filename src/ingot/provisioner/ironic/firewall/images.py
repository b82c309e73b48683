"""The image that is to be installed: where it is, what it is checked against, and who may read it."""

from __future__ import annotations

from typing import Final

from ingot.api.baremetalhost import Image
from ingot.api.inputs import checksums
from ingot.api.inputs.weaknesses import weaknesses
from ingot.provisioner.ironic.firewall.policy import FORBID, Policy
from ingot.provisioner.ironic.firewall.rejection import Rejected, reject
from ingot.provisioner.ironic.firewall.urls import download_url, image_url, named_image

_FORMATS: Final = ("raw", "qcow2", "vdi", "vmdk", "live-iso", "coreos")


def image(found: Image | None, policy: Policy) -> None:
    """All that can be said against an image before anybody has read a byte of it."""
    on_a_disk_already(found)
    if found is None or not found.url:
        return
    image_url("spec.image.url", found.url, policy)
    if checksums.is_url(found.checksum):
        download_url("spec.image.checksum", found.checksum, policy)
    elif found.checksum and (problem := checksums.problem_with(found.checksum, found.checksum_type)):
        raise reject("spec.image.checksum", found.checksum, problem)
    for weak in weaknesses(found):
        if weak.weakness in policy.forbidden:
            raise Rejected(f"{weak.field}: {weak.sentence} ({FORBID} forbids {weak.weakness})")


def on_a_disk_already(found: Image | None) -> None:
    """For an image that is not to be fetched any more: Ironic is only told its name. A stricter policy is no reason to let go of
    a machine that runs."""
    if found is None or not found.url:
        return
    named_image("spec.image.url", found.url)
    if found.format and found.format not in _FORMATS:
        raise reject("spec.image.format", found.format, f"expected one of {', '.join(_FORMATS)}")
