"""Names: of nodes, steps, parts of a machine, its network interfaces. They end up in URLs, file names and records."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ingot.api.inputs import steps
from ingot.api.inputs.text import is_one_line
from ingot.api.meta import Key
from ingot.provisioner.ironic.firewall.rejection import reject

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_ARCHITECTURE: Final = re.compile(r"[A-Za-z0-9_]{1,32}")
_MAC: Final = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}((:[0-9a-fA-F]{2}){2}|(:[0-9a-fA-F]{2}){14})?")
_COMPONENT: Final = re.compile(r"bios|bmc|nic:[A-Za-z0-9._-]+")
# The last part of a URL on the BMC, whose other parts must stay what they are.
_SUBSCRIPTION: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._~-]{1,256}")
_LONGEST: Final = 256


def host_name(found: Key) -> None:
    for field, name in (("metadata.namespace", found.namespace), ("metadata.name", found.name)):
        if len(name) > 253 or not _NAME.fullmatch(name):
            raise reject(
                field, name, "expected letters, digits, '.', '_' and '-', with a letter or digit at both ends"
            )


def deploy_step(field: str, found: str) -> None:
    if (problem := steps.problem_with(found)) is not None:
        raise reject(field, found, problem)


def architecture(field: str, found: str) -> None:
    if found and not _ARCHITECTURE.fullmatch(found):
        raise reject(field, found, "expected an architecture such as x86_64 or aarch64")


def mac_address(field: str, found: str) -> None:
    if not _MAC.fullmatch(found):
        raise reject(field, found, "expected a MAC address such as 52:54:00:12:34:56")


def is_ethernet(mac: str) -> bool:
    """Whether a MAC address is one that Ironic takes for a port: six bytes."""
    return len(mac) == len("52:54:00:12:34:56") and _MAC.fullmatch(mac) is not None


def firmware_component(field: str, found: str) -> None:
    if not _COMPONENT.fullmatch(found):
        raise reject(field, found, "expected bios, bmc, or nic:NAME")


def subscription(found: str) -> None:
    """What is asked of the BMC to be deleted is a subscription, and not one of its users."""
    if not _SUBSCRIPTION.fullmatch(found):
        raise reject("status.subscriptionID", found, "expected the name that the BMC gave a subscription")


def labels(field: str, found: Iterable[str]) -> None:
    """What something is called on the machine itself: volumes, controllers, disks, settings of the firmware and their values."""
    for one in found:
        if not is_one_line(one) or len(one) > _LONGEST:
            raise reject(field, one, f"expected one line of at most {_LONGEST} printable characters")
