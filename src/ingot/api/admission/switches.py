"""The rules for switches and their ports. An attachment that hosts refer to neither changes nor goes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from ingot.api import bmc
from ingot.api.admission import references
from ingot.api.admission.errors import FieldError, forbidden, invalid, required
from ingot.api.admission.others import Document, Others
from ingot.api.admission.rules import Rules
from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
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


def unchanged_in_use(
    new: HostNetworkAttachment, old: HostNetworkAttachment | None, others: Others
) -> Iterator[FieldError]:
    """What is in use does not change under those who use it."""
    if old is None or new.spec == old.spec:
        return
    if used_by := _shown(references_to(new.key, _hosts(new, others))):
        yield forbidden(
            "spec",
            msgspec.to_builtins(new.spec),
            f"this attachment is used by {used_by}, and cannot be changed until they let go of it. "
            "Create another one and refer to that.",
        )


def kept_in_use(attachment: HostNetworkAttachment, others: Others) -> Iterator[FieldError]:
    if used_by := _shown(references_to(attachment.key, _hosts(attachment, others))):
        yield forbidden(
            "metadata.name",
            attachment.metadata.name,
            f"this attachment is used by {used_by}, and cannot be deleted. Remove it from their "
            "spec.networkInterfaces first.",
        )


def references_to(attachment: Key, hosts: Iterable[BareMetalHost]) -> Iterator[str]:
    """Which interfaces of which hosts refer to the attachment, as people read them: lab/h1[eth0]."""
    for host in hosts:
        for interface in host.spec.network_interfaces:
            reference = interface.host_network_attachment
            if (
                reference is not None
                and Key(reference.namespace or host.metadata.namespace, reference.name) == attachment
            ):
                yield f"{host.key}[{interface.name or interface.mac_address}]"


def _hosts(attachment: HostNetworkAttachment, others: Others) -> Iterator[BareMetalHost]:
    for document in others.mentioning(BARE_METAL_HOSTS, attachment.metadata.name):
        # Only these parts are looked at, and only they have to be readable.
        parts = {"metadata": _place(document), "spec": _interfaces(document)}
        with contextlib.suppress(msgspec.ValidationError):
            yield msgspec.convert(parts, BareMetalHost)


def _place(host: Document) -> Document:
    metadata = host.get("metadata") or {}
    return {name: metadata[name] for name in ("namespace", "name") if name in metadata}


def _interfaces(host: Document) -> Document:
    return {"networkInterfaces": (host.get("spec") or {}).get("networkInterfaces") or []}


def _shown(used_by: Iterator[str]) -> str:
    """The first few; who has to change ten thousand hosts does not read their names here."""
    names = list(islice(used_by, _MOST_SHOWN + 1))
    return ", ".join(names[:_MOST_SHOWN]) + (" and others" if len(names) > _MOST_SHOWN else "")


BARE_METAL_SWITCH: Final = Rules(BareMetalSwitch, (address, device_type, credentials))
HOST_NETWORK_ATTACHMENT: Final = Rules(
    HostNetworkAttachment, (allowed_vlans,), among=(unchanged_in_use,), deletion=(kept_in_use,)
)
