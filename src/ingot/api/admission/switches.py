"""The rules for switches and their ports.

Whether an attachment is in use is known to those who know all hosts. They ask `attachment_change` and `attachment_deletion`,
and say who refers to it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

import msgspec

from ingot.api import bmc
from ingot.api.admission import references
from ingot.api.admission.errors import FieldError, forbidden, invalid, required
from ingot.api.admission.rules import Rules
from ingot.api.baremetalhost import BareMetalHost
from ingot.api.baremetalswitch import BareMetalSwitch
from ingot.api.hostnetworkattachment import HostNetworkAttachment
from ingot.api.meta import Key

_MOST_SHOWN: Final = 5
_LAST_VLAN: Final = 4094
_RANGE: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_DEVICE_TYPE: Final = re.compile(r"[A-Za-z0-9._-]+")


def address(switch: BareMetalSwitch) -> Iterator[FieldError]:
    found = switch.spec.address
    if not found:
        yield required("spec.address", "say where the switch is managed: an IP address or a DNS name.")
    elif not bmc.is_host(found):
        yield invalid(
            "spec.address",
            found,
            "this is neither an IP address nor a DNS name; the port is given in spec.port.",
        )


def device_type(switch: BareMetalSwitch) -> Iterator[FieldError]:
    """It becomes a line in a file of settings."""
    found = switch.spec.device_type
    if not _DEVICE_TYPE.fullmatch(found):
        yield invalid(
            "spec.deviceType",
            found,
            "letters, digits, '.', '_' and '-' may stand here: netmiko_cisco_ios.",
        )


def credentials(switch: BareMetalSwitch) -> Iterator[FieldError]:
    reference = switch.spec.credentials
    if reference is not None:
        yield from references.own_namespace(switch, "spec.credentials", reference)
        yield from references.possible_names({"spec.credentials.name": reference.name})


def allowed_vlans(attachment: HostNetworkAttachment) -> Iterator[FieldError]:
    spec = attachment.spec
    if spec.mode == "access" and spec.allowed_vlans:
        yield forbidden(
            "spec.allowedVLANs",
            spec.allowed_vlans,
            "a port in access mode carries its native VLAN only. Remove the list, or make the mode trunk or hybrid.",
        )
    yield from vlans("spec.allowedVLANs", spec.allowed_vlans)


def vlans(path: str, found: Iterable[str]) -> Iterator[FieldError]:
    """Each is a VLAN or an ascending range of them."""
    for index, entry in enumerate(found):
        if problem := _vlan_problem(entry):
            yield invalid(f"{path}[{index}]", entry, problem)


def _vlan_problem(entry: str) -> str | None:
    match = _RANGE.fullmatch(entry)
    if match is None:
        return "write a VLAN, like 100, or a range of them, like 100-199."
    numbers = [int(number) for number in match.groups() if number is not None]
    if any(not 1 <= number <= _LAST_VLAN for number in numbers):
        return f"VLANs are numbered from 1 to {_LAST_VLAN}."
    if len(numbers) > 1 and numbers[0] >= numbers[1]:
        return "the first VLAN of a range has to be less than the last."
    return None


def references_to(attachment: Key, hosts: Iterable[BareMetalHost]) -> list[str]:
    """Which interfaces of which hosts refer to the attachment, as people read them: lab/h1[eth0]."""
    return [
        f"{host.key}[{interface.name or interface.mac_address}]"
        for host in hosts
        for interface in host.spec.network_interfaces
        if (reference := interface.host_network_attachment) is not None
        and Key(reference.namespace or host.metadata.namespace, reference.name) == attachment
    ]


def attachment_change(
    new: HostNetworkAttachment, old: HostNetworkAttachment, *, used_by: Collection[str]
) -> list[FieldError]:
    """What is in use does not change under those who use it."""
    if new.spec == old.spec or not used_by:
        return []
    return [
        forbidden(
            "spec",
            msgspec.to_builtins(new.spec),
            f"this attachment is used by {_shown(used_by)}, and cannot be changed until they let go of it. "
            "Create another one and refer to that.",
        )
    ]


def attachment_deletion(attachment: HostNetworkAttachment, *, used_by: Collection[str]) -> list[FieldError]:
    if not used_by:
        return []
    return [
        forbidden(
            "metadata.name",
            attachment.metadata.name,
            f"this attachment is used by {_shown(used_by)}, and cannot be deleted. Remove it from their "
            "spec.networkInterfaces first.",
        )
    ]


def _shown(used_by: Collection[str]) -> str:
    names = sorted(used_by)
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return f"{', '.join(names[:_MOST_SHOWN])}{more}"


BARE_METAL_SWITCH: Final = Rules(BareMetalSwitch, (address, device_type, credentials))
HOST_NETWORK_ATTACHMENT: Final = Rules(HostNetworkAttachment, (allowed_vlans,))
