"""Secret: values few may read. `stringData` becomes `data`; an immutable Secret stays as it is."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from ingot.embedded.server.documents import Document
from ingot.embedded.server.errors import Cause, bad_request, cause
from ingot.embedded.server.kinds.builtins.fields import fields_of, text
from ingot.embedded.server.kinds.columns import AGE, NAME, Column
from ingot.embedded.server.kinds.kind import Kind, field_at

_SECRET_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_SECRET_LIMIT: Final = 1024 * 1024


def _prepare_secret(new: Document, old: Document | None) -> None:
    data = _values(new, "data")
    for key, value in data.items():
        if value is None:
            data[key] = ""
        elif not isinstance(value, str) or not _is_base64(value):
            raise bad_request(
                f'Secret in version "v1" cannot be handled as a Secret: the value of data[{key!r}] is not base64; '
                "put plain text into stringData instead"
            )
    plain = _values(new, "stringData")
    new.pop("stringData", None)
    for key, value in plain.items():
        if not isinstance(value, str):
            raise bad_request(
                f'Secret in version "v1" cannot be handled as a Secret: stringData[{key!r}] is not text'
            )
        data[key] = base64.b64encode(value.encode()).decode()
    if data:
        new["data"] = data
    else:
        new.pop("data", None)
    new.setdefault("type", "Opaque")


def _values(new: Document, name: str) -> Document:
    found = new.get(name)
    if not isinstance(found, dict | None):
        raise bad_request(
            f'Secret in version "v1" cannot be handled as a Secret: {name} is not a map of names to values'
        )
    return found or {}


def _check_secret(new: Document, old: Document | None) -> list[Cause]:
    data = new.get("data", {})
    found = [
        cause(
            "Invalid",
            f"data[{key}]",
            "a key consists of up to 253 alphanumeric characters, '-', '_' or '.'",
        )
        for key in data
        if not _SECRET_KEY.fullmatch(key)
    ]
    if sum(len(value) * 3 // 4 for value in data.values()) > _SECRET_LIMIT:
        found.append(
            Cause("data", "FieldValueTooLong", f"Too long: may not be more than {_SECRET_LIMIT} bytes")
        )
    if old is not None:
        if new.get("type") != old.get("type"):
            found.append(cause("Invalid", "type", "field is immutable"))
        if old.get("immutable") and (not new.get("immutable") or data != old.get("data", {})):
            found.append(cause("Forbidden", "data", "field is immutable when `immutable` is set"))
    return found


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


SECRETS: Final = Kind(
    group="",
    version="v1",
    kind="Secret",
    plural="secrets",
    singular="secret",
    built_in=True,
    schema=fields_of(
        "Small pieces of data that only a few may read: passwords, tokens, keys.",
        data={
            "type": "object",
            "description": "The values, each encoded in base64.",
            "x-kubernetes-preserve-unknown-fields": True,
        },
        stringData={
            "type": "object",
            "description": "The same as plain text, for writing only: it is moved into data.",
            "x-kubernetes-preserve-unknown-fields": True,
        },
        type=text("What the Secret is for, so that programs can find theirs."),
        immutable={"type": "boolean", "description": "When true, the data can never be changed again."},
    ),
    columns=(
        NAME,
        Column("Type", lambda d: d.get("type"), description="What the Secret is for."),
        Column(
            "Data",
            lambda d: len(d.get("data") or {}),
            type="integer",
            description="How many values it holds.",
        ),
        AGE,
    ),
    fields={"type": field_at(".type")},
    prepare=_prepare_secret,
    check=_check_secret,
)
