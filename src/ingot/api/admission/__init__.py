"""Admission: what an API refuses although its schema allows it.

Pure rules over objects, used in three places: the embedded API in process, the webhook on a cluster, and the controllers before
they act, because a webhook may be off. `check` is the one entry for what is written, `check_deletion` for what is deleted;
`Others` shows rules the objects beside it.

An update that changes neither the spec nor an annotation of ours is never refused: finalizers come off and statuses are written
even when a rule became stricter after the object was made.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from ingot.api.admission import baremetalhost, claims, companions, ironic, switches
from ingot.api.admission.errors import FieldError, Kind
from ingot.api.admission.others import NOTHING, Document, Others
from ingot.api.admission.rules import Rules

__all__ = [
    "NOTHING",
    "FieldError",
    "Kind",
    "Others",
    "check",
    "check_deletion",
    "operations",
]

Operation = Literal["CREATE", "UPDATE", "DELETE"]

_RULES: Final[dict[tuple[str, str], Rules[Any]]] = {
    ("metal3.io", "BareMetalHost"): baremetalhost.RULES,
    ("metal3.io", "PreprovisioningImage"): companions.PREPROVISIONING_IMAGE,
    ("metal3.io", "HostFirmwareSettings"): companions.HOST_FIRMWARE_SETTINGS,
    ("metal3.io", "HostFirmwareComponents"): companions.HOST_FIRMWARE_COMPONENTS,
    ("metal3.io", "DataImage"): companions.DATA_IMAGE,
    ("metal3.io", "BMCEventSubscription"): companions.BMC_EVENT_SUBSCRIPTION,
    ("metal3.io", "HostClaim"): claims.HOST_CLAIM,
    ("metal3.io", "HostDeployPolicy"): claims.HOST_DEPLOY_POLICY,
    ("metal3.io", "BareMetalSwitch"): switches.BARE_METAL_SWITCH,
    ("metal3.io", "HostNetworkAttachment"): switches.HOST_NETWORK_ATTACHMENT,
    ("ironic.metal3.io", "Ironic"): ironic.IRONIC,
    ("ironic.metal3.io", "IronicDatabase"): ironic.IRONIC_DATABASE,
}


def operations(group: str, kind: str) -> tuple[Operation, ...]:
    """What about this kind rules have a say in, in the API's words: nothing, or what a webhook has to be asked about."""
    rules = _RULES.get((group, kind))
    if rules is None:
        return ()
    return ("CREATE", "UPDATE", "DELETE") if rules.guards_deletion else ("CREATE", "UPDATE")


def check(
    group: str, kind: str, new: Document, old: Document | None, others: Others = NOTHING
) -> list[FieldError]:
    """What is wrong with creating `new`, or with making `old` into `new`. Both have passed the schema of their kind."""
    rules = _RULES.get((group, kind))
    if rules is None or (old is not None and not _concerns_us(new, old)):
        return []
    return rules.check(new, old, others)


def check_deletion(group: str, kind: str, old: Document, others: Others = NOTHING) -> list[FieldError]:
    """What is wrong with deleting `old`."""
    rules = _RULES.get((group, kind))
    return [] if rules is None else rules.check_deletion(old, others)


def _concerns_us(new: Document, old: Document) -> bool:
    return new.get("spec") != old.get("spec") or _our_annotations(new) != _our_annotations(old)


def _our_annotations(document: Document) -> dict[str, str]:
    annotations = (document.get("metadata") or {}).get("annotations") or {}
    return {key: value for key, value in annotations.items() if _is_ours(key)}


def _is_ours(annotation: str) -> bool:
    domain = annotation.partition("/")[0]
    return domain == "metal3.io" or domain.endswith(".metal3.io")
