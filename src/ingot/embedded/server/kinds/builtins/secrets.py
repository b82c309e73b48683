"""Secret: values few may read. `stringData` becomes `data`; an immutable Secret stays as it is."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

import msgspec

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.builtins import rules
from ingot.embedded.server.kinds.builtins.making import built_in
from ingot.embedded.server.kinds.columns import AGE, NAME, Column

# What a Secret of a type must hold: Kubernetes refuses one that its readers could not use.
_NEEDED: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


def _prepare(new: Document, old: Document | None) -> None:
    plain = new.pop("stringData", None) or {}
    for key, value in plain.items():
        new.setdefault("data", {})[key] = base64.b64encode(value.encode()).decode()
    new.setdefault("type", "Opaque")


def _check(new: Document, old: Document | None) -> list[Cause]:
    data = new.get("data", {})
    found = rules.data_keys(data, "data")
    found += rules.data_size(sum(len(value) * 3 // 4 for value in data.values()), "data")
    found += [
        cause("Required", f"data[{key}]", "")
        for key in _NEEDED.get(new.get("type", ""), ())
        if key not in data
    ]
    found += _check_type(new, data)
    found += rules.immutable(new, old, "type")
    return found + rules.kept_data(new, old, "data")


def _check_type(new: Document, data: Mapping[str, str]) -> list[Cause]:
    match new.get("type"):
        case "kubernetes.io/basic-auth" if not {"username", "password"} & data.keys():
            return [cause("Required", f"data[{key}]", "") for key in ("username", "password")]
        case "kubernetes.io/dockerconfigjson" | "kubernetes.io/dockercfg" as kind:
            (key,) = _NEEDED[kind]
            if key in data and not _is_json(data[key]):
                # What it holds instead may be a password, so it is not shown.
                shown = '"<secret contents redacted>"'
                return [cause("Invalid", f"data[{key}]", "it is no JSON", shown=shown)]
        case "kubernetes.io/service-account-token":
            annotation = "kubernetes.io/service-account.name"
            if not dig(new, "metadata", "annotations", annotation):
                return [cause("Required", f"metadata.annotations[{annotation}]", "")]
    return []


def _is_json(encoded: str) -> bool:
    try:
        msgspec.json.decode(base64.b64decode(encoded))
    except (ValueError, RecursionError):
        return False
    return True


SECRETS: Final = built_in(
    "",
    "Secret",
    "secrets",
    columns=(
        NAME,
        Column("Type", lambda d: d.get("type"), description="What the Secret is for."),
        Column("Data", lambda d: len(d.get("data") or {}), description="How many values."),
        AGE,
    ),
    fields=("type",),
    prepare=_prepare,
    check=_check,
)
