"""Reboots that are asked for on a claim, handed on to its host. Pure.

`reboot.metal3.io` asks for one reboot: it moves from the claim to the host, where it is obeyed and removed. So that nobody who is
interrupted on the way reboots a machine twice, the wish first gets a number, which the host keeps. `reboot.metal3.io/KEY` holds
the host off until it is removed from the claim; on the host it has another name, so that it cannot be taken for that of somebody
who runs the hosts.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Final

from ingot.api.baremetalhost import HELD_REBOOT_PREFIX, Annotation, BareMetalHost
from ingot.api.hostclaim import HostClaim

ASKED: Final = "ingot.metal3.io/reboot"
"""On a claim: a reboot that is on its way to the host, as its number and the value of the annotation that asked for it."""
OBEYED: Final = "ingot.metal3.io/reboot-asked-by-claim"
"""On a host: the number of the last reboot that came from its claim."""
HELD: Final = f"{HELD_REBOOT_PREFIX}hostclaim-"
"""How those begin, on a host, that keep it off for a claim."""
_NUMBERED: Final = re.compile(r"([0-9a-f]{16})(?: (.*))?", re.DOTALL)
_LONGEST_NAME: Final = 63

Changes = dict[str, str | None]
"""Annotations to set, and to remove (None)."""


def numbered(claim: HostClaim) -> Changes:
    """What changes on the claim when a reboot is asked for: it gets its number. One at a time."""
    annotations = claim.metadata.annotations
    if Annotation.REBOOT not in annotations or ASKED in annotations:
        return {}
    return {Annotation.REBOOT: None, ASKED: f"{secrets.token_hex(8)} {annotations[Annotation.REBOOT]}"}


def on_host(claim: HostClaim, host: BareMetalHost) -> Changes:
    """What changes on the host, so that it has what the claim asks for."""
    wanted: Changes = {
        _held_name(name): value
        for name, value in claim.metadata.annotations.items()
        if name.startswith(HELD_REBOOT_PREFIX)
    }
    found = host.metadata.annotations
    changes: Changes = {name: value for name, value in wanted.items() if found.get(name) != value}
    changes |= {name: None for name in found if name.startswith(HELD) and name not in wanted}
    asked = _NUMBERED.fullmatch(claim.metadata.annotations.get(ASKED, ""))
    if asked is not None and found.get(OBEYED) != asked[1]:
        changes |= {Annotation.REBOOT: asked[2] or "", OBEYED: asked[1]}
    return changes


def handed_on(claim: HostClaim) -> Changes:
    """What changes on the claim once the host has it."""
    return {ASKED: None} if ASKED in claim.metadata.annotations else {}


def off_host(host: BareMetalHost) -> Changes:
    """What changes on a host whose claim is done with it: nothing of what the claim asked for is left."""
    found = host.metadata.annotations
    ours = [name for name in found if name.startswith(HELD) or name == OBEYED]
    if OBEYED in found and Annotation.REBOOT in found:
        ours.append(Annotation.REBOOT)
    return dict.fromkeys(ours)


def _held_name(name: str) -> str:
    key = f"{HELD.removeprefix(HELD_REBOOT_PREFIX)}{name.removeprefix(HELD_REBOOT_PREFIX)}"
    if len(key) > _LONGEST_NAME:
        digest = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
        key = f"{HELD.removeprefix(HELD_REBOOT_PREFIX)}{digest}"
    return f"{HELD_REBOOT_PREFIX}{key}"
