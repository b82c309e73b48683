"""Request bodies in Kubernetes' protobuf, which kubectl and Go controllers send for the built-in kinds.

A body is `k8s\\0` and a `runtime.Unknown` message that names the kind and holds its bytes. Only reading is done here:
answers are JSON, which every client takes. Which fields a message has is in the tables of the built-in kinds; what
they do not know is skipped. The result is the document as its JSON form would be.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from ingot.embedded.server.documents import Document
from ingot.embedded.server.errors import bad_request, unsupported_media_type
from ingot.embedded.server.kinds.builtins import message_of
from ingot.embedded.server.kinds.builtins.tables import Field, ListOf, MapOf, Message, Scalar, message

MAGIC: Final = b"k8s\x00"
_DELETE_OPTIONS: Final = message("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")


def decoded(body: bytes) -> Document:
    """The document in a protobuf body."""
    api_version, kind, raw = _envelope(body)
    found = _DELETE_OPTIONS if kind == "DeleteOptions" else message_of(api_version.rpartition("/")[0], kind)
    if found is None:
        raise unsupported_media_type(
            f"{kind} of {api_version} is not read in protobuf here; send it as application/json"
        )
    try:
        return {"apiVersion": api_version, "kind": kind, **_message(raw, found)}
    except (IndexError, ValueError, OverflowError, OSError):
        version = api_version.rpartition("/")[2]
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: its protobuf is cut off or malformed'
        ) from None


def _envelope(body: bytes) -> tuple[str, str, bytes]:
    if not body.startswith(MAGIC):
        raise bad_request(
            "the object provided is unrecognized: it is announced as Kubernetes protobuf but does not begin with its prefix"
        )
    if len(body) == len(MAGIC):
        raise bad_request("the object provided is unrecognized: empty body")
    api_version = kind = ""
    raw = b""
    try:
        for number, value in _wire(body[len(MAGIC) :]):
            if number == 1:
                names = {place: _bytes(text).decode() for place, text in _wire(_bytes(value))}
                api_version, kind = names.get(1, ""), names.get(2, "")
            elif number == 2:
                raw = _bytes(value)
    except (IndexError, ValueError):
        raise bad_request(
            "the object provided is unrecognized: its protobuf is cut off or malformed"
        ) from None
    return api_version, kind, raw


def _message(data: bytes, message: Message) -> Document:
    made: Document = {}
    for number, value in _wire(data):
        field = message.by_number.get(number)
        if field is None:
            continue
        if field.inlined and isinstance(field.type, Message):
            made |= _message(_bytes(value), field.type)
        else:
            _add(made, field, value)
    return made


def _add(made: Document, field: Field, value: int | bytes) -> None:
    match field.type:
        case ListOf(of):
            found = made.setdefault(field.name, [])
            if isinstance(of, Scalar) and of.name in ("int32", "int64") and isinstance(value, bytes):
                found.extend(_packed(value))
            else:
                found.append(_value(value, of))
        case MapOf(of):
            entry = dict(_wire(_bytes(value)))
            key = _bytes(entry.get(1, b"")).decode()
            made.setdefault(field.name, {})[key] = _value(entry.get(2, b""), of)
        case type_:
            read = _value(value, type_)
            # Go writes empty values of plain fields too; in JSON they are left out.
            if isinstance(type_, Message) or field.explicit or read not in ("", 0, False, None):
                made[field.name] = read


def _value(value: int | bytes, type_: Message | Scalar | ListOf | MapOf) -> Any:
    match type_:
        case Message():
            return _message(_bytes(value), type_)
        case ListOf(of):
            # A list inside a map is a message of its own.
            return [_value(item, of) for _, item in _wire(_bytes(value))]
        case Scalar("text"):
            return _bytes(value).decode()
        case Scalar("bytes"):
            return base64.b64encode(_bytes(value)).decode()
        case Scalar("bool"):
            return bool(value)
        case Scalar("int32" | "int64"):
            if isinstance(value, bytes):
                raise ValueError("expected a number")
            return value
        case Scalar("time"):
            return _time(_bytes(value), "%Y-%m-%dT%H:%M:%SZ")
        case Scalar("microtime"):
            return _time(_bytes(value), "%Y-%m-%dT%H:%M:%S.%fZ")
        case Scalar("quantity"):
            return _bytes(dict(_wire(_bytes(value))).get(1, b"")).decode()
        case Scalar("number-or-text"):
            parts = dict(_wire(_bytes(value)))
            return _bytes(parts.get(3, b"")).decode() if parts.get(1) else parts.get(2, 0)
        case _:
            raw = _bytes(dict(_wire(_bytes(value))).get(1, b""))
            return msgspec.json.decode(raw) if raw else None


def _packed(data: bytes) -> Iterator[int]:
    position = 0
    while position < len(data):
        number, position = _varint(data, position)
        yield number


def _time(data: bytes, form: str) -> str | None:
    parts = dict(_wire(data))
    seconds, nanoseconds = parts.get(1), parts.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanoseconds, int):
        return None
    when = datetime.fromtimestamp(seconds, UTC).replace(microsecond=nanoseconds // 1000)
    return when.strftime(form)


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("expected a length-delimited field")
    return value


def _wire(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message as they travel: number, and a number or bytes. Fixed-width numbers are in no message of ours."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        match tag & 7:
            case 0:
                number, position = _varint(data, position)
                yield tag >> 3, number
            case 1:
                position += 8
            case 5:
                position += 4
            case 2:
                length, position = _varint(data, position)
                if length < 0 or position + length > len(data):
                    raise ValueError("a field is longer than the message")
                yield tag >> 3, data[position : position + length]
                position += length
            case _:
                raise ValueError("unknown wire type")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if not byte & 0x80:
            # Negative numbers travel as 64-bit two's complement.
            return (value - (1 << 64) if value >> 63 else value), position
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")
