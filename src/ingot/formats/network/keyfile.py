"""NetworkManager's keyfile: sections of settings to the bytes of a file.

Owns the syntax: which way a value is written, and the escapes of GLib's key files, so that a value is read as it was given and
can never begin another line. Sections keep their order, keys are sorted, so equal settings give equal bytes.
A setting without a value is left out; a section without settings stays, because NetworkManager looks at which there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

Setting: TypeAlias = bool | int | str | tuple[str, ...]
Settings: TypeAlias = Mapping[str, Setting]

_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def keyfile(sections: Mapping[str, Settings]) -> bytes:
    return "\n".join(_section(name, settings) for name, settings in sections.items()).encode()


def _section(name: str, settings: Settings) -> str:
    lines = [f"{key}={value}\n" for key in sorted(settings) if (value := _value(settings[key]))]
    return f"[{name}]\n" + "".join(lines)


def _value(setting: Setting) -> str:
    if isinstance(setting, bool):
        return "true" if setting else "false"
    if isinstance(setting, tuple):
        return ";".join(_text(item).replace(";", "\\;") for item in setting)
    return _text(str(setting))


def _text(text: str) -> str:
    stripped = text.lstrip(" ")
    return "\\s" * (len(text) - len(stripped)) + stripped.translate(_ESCAPES)
