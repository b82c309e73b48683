"""What a host that CoreOS is installed on is told at its first boot: Ignition; kernel arguments and its network in the metadata.

Checked before a machine is touched. The installer would find the same wrong, minutes later and with the disk cleaned for nothing.
All of it can be secret, so a sentence says where something is wrong and never what stands there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from ingot.api.inputs import kernel_arguments

ARGUMENTS: Final = ("coreos_append_karg", "coreos_delete_karg")
"""Keys of the metadata with kernel arguments of the installed system: a list, or one text."""
COPY_NETWORK: Final = "coreos_copy_network"
KEYFILES: Final = "coreos_network_keyfiles"
"""The network connections of the installed system: NetworkManager's keyfiles, by file name."""
_SPEC_3: Final = re.compile(r"3\.\d+\.\d+(-[a-z]+)?")
_FILE_NAME: Final = re.compile(r"[^/.][^/]*")
_LONGEST_FILE_NAME: Final = 255
_TRUTHS: Final = frozenset(("true", "yes", "1", "on", "false", "no", "0", "off", ""))


def problem_with(user_data: str, meta_data: Mapping[str, object]) -> str | None:
    """What is wrong with user data and metadata of a CoreOS host; None when nothing is."""
    if problem := _problem_with_config(user_data):
        return f"the user data (the Secret named by spec.userData) {problem}"
    if problem := _problem_with_meta_data(meta_data):
        return f"the metadata (the Secret named by spec.metaData) has {problem}"
    return None


def _problem_with_config(text: str) -> str | None:
    if not text.strip():
        return None
    try:
        config = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        if text.lstrip().startswith("#cloud-config"):
            return "is a cloud-config. CoreOS is configured with Ignition; write the config as Ignition JSON."
        return "is not JSON. CoreOS is configured with Ignition, which is JSON; Butane makes it out of YAML."
    head = config.get("ignition") if isinstance(config, dict) else None
    version = head.get("version") if isinstance(head, dict) else None
    if not isinstance(version, str):
        return "is JSON, but no Ignition config: it has no ignition.version."
    if not _SPEC_3.fullmatch(version):
        return "is an Ignition config of another specification than 3, and CoreOS reads no other."
    return None


def _problem_with_meta_data(meta: Mapping[str, object]) -> str | None:
    for key in ARGUMENTS:
        found = meta.get(key)
        texts = [] if found is None else [found] if isinstance(found, str) else found
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            return f"{key}, which is neither a list of kernel arguments nor a text with them."
        if any(kernel_arguments.problem_with(text) for text in texts):
            return (
                f"{key} with something that is not NAME or NAME=VALUE in letters, digits, .:/,@+=~*^?!()[]- and %XX; a boot "
                "loader could take it for something else."
            )
    if str(meta.get(COPY_NETWORK, "")).strip().lower() not in _TRUTHS:
        return f"{COPY_NETWORK}, which is neither true nor false."
    files = meta.get(KEYFILES) or {}
    if not isinstance(files, dict) or not all(
        _is_file_name(name) and isinstance(text, str) for name, text in files.items()
    ):
        return f"{KEYFILES}, which is not a mapping of texts by file names."
    return None


def _is_file_name(name: object) -> bool:
    if not isinstance(name, str) or not _FILE_NAME.fullmatch(name):
        return False
    return name.isprintable() and len(name.encode(errors="replace")) <= _LONGEST_FILE_NAME
