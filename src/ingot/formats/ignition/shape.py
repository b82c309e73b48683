"""The shape of an Ignition config, specifications 3.0 to 3.6 in one table, and the check of a config against it.

Owns what is an error (no JSON, a version nobody knows, a value of the wrong type, a name that is missing) and what is only
worth a warning (a key that no specification has: Ignition ignores it too). Leaves to Ignition what depends on the machine.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ingot.formats.errors import FormatError, UnsupportedFormat

VERSIONS: Final = ("3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0", "3.6.0")

# A key with an exclamation mark must be there. A list of one shape is a list of any length.
_RESOURCE: Final[dict[str, Any]] = {
    "compression": str,
    "httpHeaders": [{"name!": str, "value": str}],
    "source": str,
    "verification": {"hash": str},
}
_OWNER: Final = {"id": int, "name": str}
_NODE: Final[dict[str, Any]] = {"path!": str, "overwrite": bool, "user": _OWNER, "group": _OWNER}
_PARTITION: Final[dict[str, Any]] = {
    "guid": str,
    "label": str,
    "number": int,
    "resize": bool,
    "shouldExist": bool,
    "sizeMiB": int,
    "startMiB": int,
    "typeGuid": str,
    "wipePartitionEntry": bool,
}
_CLEVIS: Final[dict[str, Any]] = {
    "custom": {"config": str, "needsNetwork": bool, "pin": str},
    "tang": [{"advertisement": str, "thumbprint": str, "url": str}],
    "threshold": int,
    "tpm2": bool,
}
_LUKS: Final[dict[str, Any]] = {
    "name!": str,
    "cex": {"enabled": bool},
    "clevis": _CLEVIS,
    "device": str,
    "discard": bool,
    "keyFile": _RESOURCE,
    "label": str,
    "openOptions": [str],
    "options": [str],
    "uuid": str,
    "wipeVolume": bool,
}
_FILESYSTEM: Final[dict[str, Any]] = {
    "device!": str,
    "format": str,
    "label": str,
    "mountOptions": [str],
    "options": [str],
    "path": str,
    "uuid": str,
    "wipeFilesystem": bool,
}
_USER: Final[dict[str, Any]] = {
    "name!": str,
    "gecos": str,
    "groups": [str],
    "homeDir": str,
    "noCreateHome": bool,
    "noLogInit": bool,
    "noUserGroup": bool,
    "passwordHash": str,
    "primaryGroup": str,
    "shell": str,
    "shouldExist": bool,
    "sshAuthorizedKeys": [str],
    "system": bool,
    "uid": int,
}
_UNIT: Final[dict[str, Any]] = {
    "name!": str,
    "contents": str,
    "dropins": [{"name!": str, "contents": str}],
    "enabled": bool,
    "mask": bool,
}
_CONFIG: Final[dict[str, Any]] = {
    "ignition!": {
        "version!": str,
        "config": {"merge": [_RESOURCE], "replace": _RESOURCE},
        "proxy": {"httpProxy": str, "httpsProxy": str, "noProxy": [str]},
        "security": {"tls": {"certificateAuthorities": [_RESOURCE]}},
        "timeouts": {"httpResponseHeaders": int, "httpTotal": int},
    },
    "kernelArguments": {"shouldExist": [str], "shouldNotExist": [str]},
    "passwd": {
        "groups": [{"name!": str, "gid": int, "passwordHash": str, "shouldExist": bool, "system": bool}],
        "users": [_USER],
    },
    "storage": {
        "directories": [{**_NODE, "mode": int}],
        "disks": [{"device!": str, "partitions": [_PARTITION], "wipeTable": bool}],
        "files": [{**_NODE, "mode": int, "append": [_RESOURCE], "contents": _RESOURCE}],
        "filesystems": [_FILESYSTEM],
        "links": [{**_NODE, "hard": bool, "target": str}],
        "luks": [_LUKS],
        "raid": [{"name!": str, "devices": [str], "level": str, "options": [str], "spares": int}],
    },
    "systemd": {"units": [_UNIT]},
}
_NAMES: Final = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}


def parse_ignition(content: bytes) -> tuple[dict[str, Any], list[str]]:
    """A config as it decodes, and the keys in it that nobody will read."""
    try:
        config = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"the Ignition config is not JSON: {error}") from error
    except RecursionError:
        raise FormatError("the Ignition config is nested too deep") from None
    warnings: list[str] = []
    _check(config, _CONFIG, "$", warnings)
    version = config["ignition"]["version"]
    if version not in VERSIONS:
        raise UnsupportedFormat(
            f"the Ignition config has version {version!r}; {VERSIONS[0]} to {VERSIONS[-1]} are known"
        )
    return config, warnings


def _check(value: object, shape: Any, path: str, warnings: list[str]) -> None:
    kind: type = type(shape) if isinstance(shape, (dict, list)) else shape
    # What JSON calls true is no number here, though Python says it is one.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        found = _NAMES.get(type(value), "something else")
        raise FormatError(f"{path} of the Ignition config is {found}; {_NAMES[kind]} is expected")
    if isinstance(value, list):
        for number, item in enumerate(value):
            _check(item, shape[0], f"{path}.{number}", warnings)
    if isinstance(value, dict):
        for key in shape:
            if key.endswith("!") and value.get(key[:-1]) is None:
                raise FormatError(f"{path} of the Ignition config has no {key[:-1]}")
        for key, item in value.items():
            wanted = shape.get(key, shape.get(f"{key}!"))
            if wanted is None:
                warnings.append(f"unused key: {path}.{key}")
            elif item is not None:
                _check(item, wanted, f"{path}.{key}", warnings)
