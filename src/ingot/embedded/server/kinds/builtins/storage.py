"""PersistentVolumeClaim, PersistentVolume and StorageClass: storage that outlives pods."""

from __future__ import annotations

from typing import Final

from ingot.embedded.server.documents import Document, dig, timestamp
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.builtins import rules
from ingot.embedded.server.kinds.builtins.making import built_in
from ingot.embedded.server.kinds.builtins.tables import message
from ingot.embedded.server.kinds.columns import AGE, NAME, Column
from ingot.embedded.server.kinds.names import subdomain_problem
from ingot.embedded.server.kinds.quantity import value_of

_SOURCES: Final = frozenset(message("io.k8s.api.core.v1.PersistentVolumeSource").by_name)
_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _complete_claim(new: Document) -> None:
    new["status"] = {"phase": "Pending"}


def _complete_volume(new: Document) -> None:
    new["status"] = {"phase": "Pending", "lastPhaseTransitionTime": timestamp()}


def _prepare_volume(new: Document, old: Document | None) -> None:
    phase = dig(new, "status", "phase")
    if old is not None and phase and phase != dig(old, "status", "phase"):
        new["status"]["lastPhaseTransitionTime"] = timestamp()


def _access_modes(spec: Document) -> list[Cause]:
    if not spec.get("accessModes"):
        return [cause("Required", "spec.accessModes", "at least 1 access mode is required")]
    listed = ", ".join(f'"{mode}"' for mode in sorted(_MODES))
    return [
        cause("NotSupported", "spec.accessModes", f"supported values: {listed}", shown=rules.shown(mode))
        for mode in spec["accessModes"]
        if mode not in _MODES
    ]


def _check_claim(new: Document, old: Document | None) -> list[Cause]:
    spec = new["spec"]
    found: list[Cause] = []
    found += _access_modes(spec)
    wanted = dig(spec, "resources", "requests", "storage")
    if wanted is None:
        found.append(cause("Required", "spec.resources[storage]", ""))
    elif (value_of(wanted) or 0) <= 0:
        words = "must be greater than zero"
        found.append(cause("Invalid", "spec.resources[storage]", words, shown=rules.shown(wanted)))
    name = spec.get("storageClassName")
    if name and (problem := subdomain_problem(name)):
        found.append(cause("Invalid", "spec.storageClassName", problem, shown=rules.shown(name)))
    return found + _claim_changes(new, old)


def _claim_changes(new: Document, old: Document | None) -> list[Cause]:
    """A claim stays what it is; bound, it may grow, and unbound, it may be bound."""
    if old is None:
        return []
    spec, before = dict(new["spec"]), dict(old["spec"])
    if not before.get("volumeName"):
        spec.pop("volumeName", None)
    if dig(old, "status", "phase") == "Bound":
        after, now = (dig(part, "resources", "requests", "storage") for part in (spec, before))
        if after and now and (value_of(after) or 0) < (value_of(now) or 0):
            words = "a claim can grow, but not shrink"
            return [cause("Forbidden", "spec.resources.requests.storage", words)]
        spec["resources"] = before.get("resources")
    spec["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
    before.setdefault("volumeAttributesClassName", None)
    if spec == before:
        return []
    words = "a claim stays as it was created; once it is bound, only resources.requests can grow"
    return [cause("Forbidden", "spec", words)]


def _check_volume(new: Document, old: Document | None) -> list[Cause]:
    spec = new["spec"]
    found: list[Cause] = []
    found += _access_modes(spec)
    if not spec.get("capacity"):
        found.append(cause("Required", "spec.capacity", ""))
    given = sorted(_SOURCES & spec.keys())
    if not given:
        found.append(cause("Required", "spec", "must specify a volume type"))
    found += [
        cause("Forbidden", f"spec.{name}", "may not specify more than 1 volume type") for name in given[1:]
    ]
    if old is not None and any(spec.get(name) != old["spec"].get(name) for name in _SOURCES):
        words = "spec.persistentvolumesource is immutable after creation"
        found.append(cause("Forbidden", "spec.persistentvolumesource", words))
    return found


def _check_class(new: Document, old: Document | None) -> list[Cause]:
    found: list[Cause] = []
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        if old is not None and new.get(name) != old.get(name):
            words = "updates to " + name + " are forbidden."
            found.append(cause("Forbidden", name, words))
    return found


def _modes(*path: str) -> Column:
    return Column(
        "Access Modes",
        lambda d: ",".join(_MODES.get(mode, mode) for mode in dig(d, *path) or ()),
        description="How it may be used.",
    )


def _class(document: Document) -> str:
    annotation = "volume.beta.kubernetes.io/storage-class"
    old_style = (dig(document, "metadata", "annotations") or {}).get(annotation)
    return str(old_style or dig(document, "spec", "storageClassName") or "")


def _claim(volume: Document) -> str:
    claim = dig(volume, "spec", "claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _phase(document: Document) -> str:
    if dig(document, "metadata", "deletionTimestamp"):
        return "Terminating"
    return str(dig(document, "status", "phase") or "")


_CLASS: Final = Column("StorageClass", _class, description="The sort of storage.")
_ATTRIBUTES: Final = Column(
    "VolumeAttributesClass",
    lambda d: dig(d, "spec", "volumeAttributesClassName") or "<unset>",
    description="The sort of attributes.",
)
_STATUS: Final = Column("Status", _phase, description="Whether it is bound.")
_MODE: Final = Column(
    "VolumeMode",
    lambda d: dig(d, "spec", "volumeMode") or "<unset>",
    priority=1,
    description="Files, or a block device.",
)

CLAIMS: Final = built_in(
    "",
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
    shows_removed=True,
    short_names=("pvc",),
    status=True,
    columns=(
        NAME,
        _STATUS,
        Column("Volume", lambda d: dig(d, "spec", "volumeName") or "", description="The storage it got."),
        Column("Capacity", lambda d: dig(d, "status", "capacity", "storage") or "", description="How much."),
        _modes("status", "accessModes"),
        _CLASS,
        _ATTRIBUTES,
        AGE,
        _MODE,
    ),
    complete=_complete_claim,
    check=_check_claim,
)

VOLUMES: Final = built_in(
    "",
    "PersistentVolume",
    "persistentvolumes",
    shows_removed=True,
    short_names=("pv",),
    namespaced=False,
    status=True,
    columns=(
        NAME,
        Column("Capacity", lambda d: dig(d, "spec", "capacity", "storage") or "", description="How much."),
        _modes("spec", "accessModes"),
        Column(
            "Reclaim Policy",
            lambda d: dig(d, "spec", "persistentVolumeReclaimPolicy"),
            description="What becomes of it when its claim goes.",
        ),
        _STATUS,
        Column("Claim", _claim, description="Whose it is."),
        _CLASS,
        _ATTRIBUTES,
        Column("Reason", lambda d: dig(d, "status", "reason") or "", description="Why it failed."),
        AGE,
        _MODE,
    ),
    prepare=_prepare_volume,
    complete=_complete_volume,
    check=_check_volume,
)

STORAGE_CLASSES: Final = built_in(
    "storage.k8s.io",
    "StorageClass",
    "storageclasses",
    shows_removed=True,
    short_names=("sc",),
    namespaced=False,
    columns=(
        NAME,
        Column("Provisioner", lambda d: d.get("provisioner"), description="Who makes it."),
        Column(
            "ReclaimPolicy", lambda d: d.get("reclaimPolicy"), description="What becomes of it at the end."
        ),
        Column("VolumeBindingMode", lambda d: d.get("volumeBindingMode"), description="When it is made."),
        Column(
            "AllowVolumeExpansion",
            lambda d: bool(d.get("allowVolumeExpansion")),
            description="Whether it may grow.",
        ),
        AGE,
    ),
    check=_check_class,
)
