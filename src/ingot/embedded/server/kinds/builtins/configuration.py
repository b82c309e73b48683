"""ConfigMap and ServiceAccount: what pods are told, and as whom they speak."""

from __future__ import annotations

from typing import Final

from ingot.embedded.server.documents import Document
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.builtins import rules
from ingot.embedded.server.kinds.builtins.making import built_in
from ingot.embedded.server.kinds.columns import AGE, NAME, Column


def _check_config_map(new: Document, old: Document | None) -> list[Cause]:
    data, binary = new.get("data", {}), new.get("binaryData", {})
    found = rules.data_keys(data, "data") + rules.data_keys(binary, "binaryData")
    found += [
        cause("Invalid", f"data[{key}]", "duplicate of key present in binaryData", shown=rules.shown(key))
        for key in sorted(data.keys() & binary.keys())
    ]
    size = sum(len(value.encode()) for value in data.values())
    size += sum(len(value) * 3 // 4 for value in binary.values())
    found += rules.data_size(size, "[]")
    return found + rules.kept_data(new, old, "data", "binaryData")


CONFIG_MAPS: Final = built_in(
    "",
    "ConfigMap",
    "configmaps",
    short_names=("cm",),
    columns=(
        NAME,
        Column(
            "Data",
            lambda d: len(d.get("data") or {}) + len(d.get("binaryData") or {}),
            description="How many values.",
        ),
        AGE,
    ),
    check=_check_config_map,
)

SERVICE_ACCOUNTS: Final = built_in(
    "",
    "ServiceAccount",
    "serviceaccounts",
    shows_removed=True,
    short_names=("sa",),
    columns=(
        NAME,
        Column("Secrets", lambda d: len(d.get("secrets") or ()), description="How many Secrets."),
        AGE,
    ),
)
