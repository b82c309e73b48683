"""What `install_coreos` is asked to install: from the step's arguments, the config drive's meta data, the agent's environment.

In this order. Pure; what cannot be done is refused, in a sentence that repeats nothing of what may be secret. The rules are
those of the real step, in short.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from ingot.lab.agent.failures import deployment_failed
from ingot.lab.agent.work import Params, Work
from ingot.lab.coreos import Left

STEP: Final = "install_coreos"
ARGUMENTS: Final = (
    "ignition",
    "append_kargs",
    "delete_kargs",
    "copy_network",
    "network_keyfiles",
    "ssh_keys",
)
_HOSTNAME: Final = "/etc/hostname"
_HOST: Final = "metal3-name"
_YES: Final = ("true", "yes", "1", "on")
_NO: Final = ("false", "no", "0", "off", "")
_WORD: Final = re.compile(r'(?:[^\s"]|"[^"]*")+')
_KEY: Final = re.compile(r"[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\x00-\x1f\x7f]*)?")
_LABEL: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where the step looks for what it is told, in this order."""

    arguments: Mapping[str, Any]
    meta: Mapping[str, Any]
    environment: Mapping[str, str]

    def first(self, argument: str, meta: str, variable: str = "") -> tuple[Any, str]:
        """What was given, and how a message calls the place."""
        if (given := self.arguments.get(argument)) is not None:
            return given, f"the argument {argument}"
        if (given := self.meta.get(meta)) is not None:
            return given, f"{meta} in the meta data"
        return self.environment.get(variable), variable


def what_is_left(work: Work, args: Params) -> Left:
    """What the installed system is to find. Raises `StepFailed`."""
    if unknown := sorted(args.keys() - set(ARGUMENTS)):
        raise deployment_failed(f"{STEP} has no argument {unknown[0]!r}; it has {', '.join(ARGUMENTS)}.")
    drive = (work.node.get("instance_info") or {}).get("configdrive") or {}
    if isinstance(drive, str):
        raise deployment_failed(
            "the config drive is a finished image, and CoreOS reads none: its Ignition config cannot be taken from it."
        )
    meta = drive.get("meta_data") or {}
    sources = _Sources(args, meta, work.ramdisk.environment)
    config = _text(args.get("ignition"), "the argument ignition")
    if config is None:
        config = _text(drive.get("user_data"), "the user data")
    options = _words(work.ramdisk.environment.get("IPA_COREOS_IP_OPTIONS"), "IPA_COREOS_IP_OPTIONS")
    return Left(
        ignition=_ignition(config, _given_name(meta) or work.ramdisk.hostname or _name(meta), _keys(sources)),
        arguments=_words(*sources.first("append_kargs", "coreos_append_karg")) + options,
        without=_words(*sources.first("delete_kargs", "coreos_delete_karg")),
        keyfiles=_network(sources, work.ramdisk.keyfiles),
        user_data=config or "",
        meta_data=meta,
    )


def _text(given: object, where: str) -> str | None:
    """A config as text, which a message never repeats."""
    if given is None or given == "":
        return None
    text = given if isinstance(given, str) else msgspec.json.encode(given).decode()
    try:
        config = msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise deployment_failed(
            f"{where} is no JSON; CoreOS is configured with Ignition, which is JSON."
        ) from None
    head = config.get("ignition") if isinstance(config, dict) else None
    version = head.get("version") if isinstance(head, dict) else None
    if not isinstance(version, str):
        raise deployment_failed(f"{where} is JSON, but no Ignition config: it has no ignition.version.")
    if not version.startswith("3."):
        raise deployment_failed(
            f"{where} is an Ignition config of another version; CoreOS reads those of spec 3."
        )
    return text


def _words(given: object, where: str) -> list[str]:
    texts = [given] if isinstance(given, str) else given or []
    if not isinstance(texts, list) or not all(isinstance(text, str) and _fits(text) for text in texts):
        raise deployment_failed(f"{where} is neither a list of kernel arguments nor a text with them.")
    return [word for text in texts for word in _WORD.findall(text)]


def _fits(text: str) -> bool:
    return text.isascii() and text.isprintable() and text.count('"') % 2 == 0


def _keys(sources: _Sources) -> list[str]:
    given, where = sources.first("ssh_keys", "public_keys")
    if isinstance(given, dict):
        given = list(given.values())
    keys = given.splitlines() if isinstance(given, str) else given or []
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise deployment_failed(f"{where} is neither a list of SSH keys nor a text with them.")
    trimmed = [key.strip() for key in keys if key.strip()]
    if not all(_KEY.fullmatch(key) for key in trimmed):
        raise deployment_failed(f"{where} holds something that is not a public SSH key.")
    return trimmed


def _network(sources: _Sources, ramdisks: dict[str, str]) -> dict[str, str]:
    """The connections that are the installed system's own, else those of the ramdisk where they are to be taken over."""
    given, where = sources.first("network_keyfiles", "coreos_network_keyfiles")
    files = {} if given is None or given == "" else given
    fits = isinstance(files, dict) and all(
        isinstance(text, str) and _is_file_name(name) for name, text in files.items()
    )
    if not fits:
        raise deployment_failed(f"{where} is not an object of texts by file names.")
    copied = ramdisks if _copies_network(sources) else {}
    return dict(files) or copied


def _is_file_name(name: str) -> bool:
    return (
        name.isprintable() and "/" not in name and not name.startswith(".") and 0 < len(name.encode()) <= 255
    )


def _copies_network(sources: _Sources) -> bool:
    given, where = sources.first("copy_network", "coreos_copy_network", "IPA_COREOS_COPY_NETWORK")
    said = str(given if given is not None else "").strip().lower()
    if said not in (*_YES, *_NO):
        raise deployment_failed(f"{where} is neither true nor false.")
    return said in _YES


def _given_name(meta: Mapping[str, Any]) -> str:
    """The name that somebody chose for the machine, and not the host's own, which is filled in where nobody did."""
    return _name({key: name for key, name in meta.items() if key == "hostname" or name != meta.get(_HOST)})


def _name(meta: Mapping[str, Any]) -> str:
    names = (meta.get(key) for key in ("local-hostname", "local_hostname", "hostname", "name"))
    return next((name for name in names if isinstance(name, str) and _is_name(name)), "")


def _is_name(text: str) -> bool:
    words = text.split(".")
    return (
        len(text) <= 64 and all(_LABEL.fullmatch(word) for word in words) and words[0].lower() != "localhost"
    )


def _ignition(user: str | None, hostname: str, keys: list[str]) -> str:
    """The user's config, merged into one that names the machine and lets its owner in; "" where nobody says anything."""
    theirs = msgspec.json.decode(user) if user else {}
    ours: dict[str, Any] = {}
    if hostname and _HOSTNAME not in _paths(theirs):
        contents = {"source": "data:," + quote(hostname + "\n")}
        file = {"path": _HOSTNAME, "mode": 0o644, "overwrite": True, "contents": contents}
        ours["storage"] = {"files": [file]}
    if new := [key for key in dict.fromkeys(keys) if key not in _known_keys(theirs)]:
        ours["passwd"] = {"users": [{"name": "core", "sshAuthorizedKeys": new}]}
    if not ours:
        return user or ""
    head: dict[str, Any] = {"version": "3.0.0"}
    if user:
        source = "data:;base64," + base64.b64encode(user.encode()).decode()
        head["config"] = {"merge": [{"source": source}]}
    return msgspec.json.encode({"ignition": head, **ours}).decode()


def _paths(config: Mapping[str, Any]) -> set[str]:
    storage = config.get("storage") or {}
    return {node["path"] for kind in ("files", "links", "directories") for node in storage.get(kind) or ()}


def _known_keys(config: Mapping[str, Any]) -> list[str]:
    users = (config.get("passwd") or {}).get("users") or ()
    return [key for user in users if user["name"] == "core" for key in user.get("sshAuthorizedKeys") or ()]
