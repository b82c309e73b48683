"""What whoever runs the operator decides about all hosts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    most_attempts: int = 5
    """Attempts to provision one image before a person is asked; 0: no limit."""
    provisioning_limit: int = 20
    """Hosts that may boot a ramdisk over the network at the same time."""
    own_ramdisks: bool = False
    """Whether each host boots a ramdisk that was built for it (PreprovisioningImage)."""
    ramdisk_source: str = ""
    """The URL under which those are served; one that leads elsewhere is not booted. "": wherever their builder says."""
