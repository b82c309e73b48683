"""The installer's configuration file (YAML): which keys there are, and of what type.

Owns reading one that a user gives, so that a misspelt key is found at a desk and not on a machine, and writing our own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import yaml

from ingot.formats.coreos.console import normal_console
from ingot.formats.errors import FormatError

_TEXTS: Final = frozenset(
    {
        "architecture",
        "dest-device",
        "fetch-retries",
        "ignition-file",
        "ignition-hash",
        "ignition-url",
        "image-file",
        "image-url",
        "network-dir",
        "platform",
        "stream",
        "stream-base-url",
    }
)
_LISTS: Final = frozenset({"append-karg", "console", "delete-karg", "save-partindex", "save-partlabel"})
_FLAGS: Final = frozenset(
    {"copy-network", "insecure", "insecure-ignition", "offline", "preserve-on-error", "secure-ipl"}
)

Value = str | bool | list[str]


def check_installer_config(content: bytes) -> None:
    """Refuse what the installer would not read."""
    try:
        config = yaml.load(content, Loader=_Loader)  # noqa: S506 - a subclass of the safe loader
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise FormatError(f"it is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(config, dict):
        raise FormatError(f"it holds {type(config).__name__}; keys and values are expected")
    for key, value in config.items():
        if key in _TEXTS:
            right = value is None or isinstance(value, str)
        elif key in _FLAGS:
            right = isinstance(value, bool)
        elif key in _LISTS:
            right = isinstance(value, list) and all(isinstance(item, str) for item in value)
        else:
            known = ", ".join(sorted(_TEXTS | _LISTS | _FLAGS))
            raise FormatError(f"unknown key {key!r}; there are: {known}")
        if not right:
            raise FormatError(f"the value of {key} has the wrong type: {value!r}")
        if key == "console":
            for item in value:
                normal_console(item)


def installer_config(values: Mapping[str, Value]) -> bytes:
    """A configuration file with these values; what is empty or false is left out."""
    given = {key: value for key, value in values.items() if value}
    return yaml.safe_dump(given, sort_keys=False, allow_unicode=True).encode()


class _Loader(yaml.SafeLoader):
    """YAML as the installer reads it: only true and false are flags, yes and on are words."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
