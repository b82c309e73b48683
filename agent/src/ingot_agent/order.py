"""What is to be installed: read from the step's arguments, the node and the environment, and checked, before a disk is touched.

Arguments are asked first, then the config drive's meta data, then the environment of the ramdisk. Pure; every refusal is a
sentence that says which of them is wrong, and quotes nothing of what may be secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from ingot_agent import checksum, ignition
from ingot_agent.errors import Refused
from ingot_agent.kargs import arguments

ARGUMENTS: Final = {
    "ignition": "The Ignition config (spec 3) of the installed system, as an object or as text. Default: the user data.",
    "append_kargs": "Kernel arguments of the installed system: a list of texts, or one text.",
    "delete_kargs": "Default kernel arguments that the installed system does without: a list of texts, or one text.",
    "copy_network": "Whether the installed system takes over the ramdisk's NetworkManager connections.",
    "network_keyfiles": "NetworkManager's keyfiles of the installed system, by file name, in place of the ramdisk's connections.",
    "ssh_keys": "SSH keys of the user core, beside those in the Ignition config: a list of texts, or one text.",
}
_KEY: Final = re.compile(r"[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\x00-\x1f\x7f]*)?")
_HOST: Final = "metal3-name"
_PAUSE: Final = 10.0
_LONGEST_FILE_NAME: Final = 255
_MOST_OF_KEYFILES: Final = 4 << 20
_YES: Final = frozenset(("true", "yes", "1", "on"))
_NO: Final = frozenset(("false", "no", "0", "off", ""))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the ramdisk's maker said, in the agent's environment."""

    root: Path = Path("/mnt/coreos")
    ip_options: str = ""
    copy_network: str = ""
    hostname: str = ""
    pause: float = _PAUSE
    """Seconds before the second attempt; twice that before the third."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Surroundings:
        return cls(
            Path(environment.get("INGOT_COREOS_ROOT") or cls().root),
            environment.get("IPA_COREOS_IP_OPTIONS", ""),
            environment.get("IPA_COREOS_COPY_NETWORK", ""),
            environment.get("IPA_DEFAULT_HOSTNAME", ""),
            _seconds(environment.get("INGOT_COREOS_RETRY_PAUSE", "")),
        )


@dataclass(frozen=True, slots=True)
class Image:
    """A metal image that is downloaded, and the hash it has to have."""

    url: str
    hash: checksum.Digest | checksum.DigestAt

    def __str__(self) -> str:
        return shown(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One install. The Ignition config is a secret, and so are keyfiles."""

    ignition: str | None = field(default=None, repr=False)
    ssh_keys: tuple[str, ...] = ()
    append_kargs: tuple[str, ...] = ()
    delete_kargs: tuple[str, ...] = ()
    copy_network: bool = False
    keyfiles: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Network connections of the installed system, by file name. Where there are some, none of the ramdisk's are copied."""
    hostname: str | None = None
    image: Image | None = None


def read(
    given: Mapping[str, Any], node: Mapping[str, Any], around: Surroundings, hostname: str | None
) -> Order:
    """What these arguments ask of this node; `hostname` is the name the machine has."""
    if unknown := sorted(given.keys() - ARGUMENTS.keys()):
        raise Refused(f"install_coreos has no argument {unknown[0]!r}; it has {', '.join(ARGUMENTS)}.")
    instance = _mapping(node.get("instance_info"), "instance_info")
    drive = _drive(instance.get("configdrive"))
    meta = _mapping(drive.get("meta_data"), "the config drive's meta_data")
    config = ignition.text_of(given.get("ignition"), "the argument ignition")
    if config is None:
        config = ignition.text_of(drive.get("user_data"), "the user data")
    kargs = _kargs(given, meta, "append") + arguments(around.ip_options, "IPA_COREOS_IP_OPTIONS")
    return Order(
        ignition=config,
        ssh_keys=_ssh_keys(given, meta),
        append_kargs=kargs,
        delete_kargs=_kargs(given, meta, "delete"),
        copy_network=_copy_network(given, meta, around),
        keyfiles=_keyfiles(given, meta),
        hostname=_given_name(meta) or hostname or _name(meta),
        image=_image(instance),
    )


def shown(url: str) -> str:
    """A URL for messages: without what may be a password or a token in it."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _seconds(text: str) -> float:
    return float(text) if re.fullmatch(r"\d{1,4}(\.\d+)?", text) else _PAUSE


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if value is None or value == "":
        return {}
    if not isinstance(value, Mapping):
        raise Refused(f"{where} is not an object.")
    return value


def _drive(value: object) -> Mapping[str, Any]:
    if isinstance(value, str) and value:
        raise Refused(
            "the config drive is a finished image, and CoreOS reads none: its Ignition config cannot be taken from it. "
            "Hand Ironic the config drive as an object, and leave [deploy]configdrive_use_object_store off."
        )
    return _mapping(value, "the config drive")


def _kargs(given: Mapping[str, Any], meta: Mapping[str, Any], verb: str) -> tuple[str, ...]:
    if (mine := given.get(f"{verb}_kargs")) is not None:
        return arguments(mine, f"the argument {verb}_kargs")
    return arguments(meta.get(f"coreos_{verb}_karg"), f"coreos_{verb}_karg in the meta data")


def _copy_network(given: Mapping[str, Any], meta: Mapping[str, Any], around: Surroundings) -> bool:
    for value, where in (
        (given.get("copy_network"), "the argument copy_network"),
        (meta.get("coreos_copy_network"), "coreos_copy_network in the meta data"),
    ):
        if value is not None:
            return _truth(value, where)
    return _truth(around.copy_network, "IPA_COREOS_COPY_NETWORK")


def _keyfiles(given: Mapping[str, Any], meta: Mapping[str, Any]) -> Mapping[str, str]:
    files, where = given.get("network_keyfiles"), "the argument network_keyfiles"
    if files is None:
        files, where = meta.get("coreos_network_keyfiles"), "coreos_network_keyfiles in the meta data"
    files = _mapping(files, where)
    if not all(_is_file_name(name) and _size(text) is not None for name, text in files.items()):
        raise Refused(f"{where} is not an object of texts by file names.")
    if sum(_size(text) or 0 for text in files.values()) > _MOST_OF_KEYFILES:
        raise Refused(f"{where} has more than {_MOST_OF_KEYFILES >> 20} MiB; no network has.")
    return dict(files)


def _is_file_name(name: object) -> bool:
    size = _size(name) or 0
    return (
        isinstance(name, str)
        and name.isprintable()
        and "/" not in name
        and 0 < size <= _LONGEST_FILE_NAME
        and name[0] != "."
    )


def _size(text: object) -> int | None:
    """Bytes of a text; None for what is none, or cannot be written."""
    try:
        return len(text.encode()) if isinstance(text, str) else None
    except UnicodeEncodeError:
        return None


def _truth(value: object, where: str) -> bool:
    text = str(value).strip().lower()
    if text not in _YES | _NO:
        raise Refused(f"{where} is neither true nor false.")
    return text in _YES


def _ssh_keys(given: Mapping[str, Any], meta: Mapping[str, Any]) -> tuple[str, ...]:
    mine, where = given.get("ssh_keys"), "the argument ssh_keys"
    if mine is None:
        mine, where = meta.get("public_keys"), "public_keys in the meta data"
    if isinstance(mine, Mapping):  # as OpenStack writes them: by name
        mine = list(mine.values())
    keys = mine.splitlines() if isinstance(mine, str) else mine or []
    if not isinstance(keys, list | tuple) or not all(isinstance(key, str) for key in keys):
        raise Refused(f"{where} is neither a list of SSH keys nor a text with them.")
    trimmed = [key.strip() for key in keys if key.strip()]
    if not all(_KEY.fullmatch(key) for key in trimmed):
        raise Refused(f"{where} holds something that is not a public SSH key.")
    return tuple(trimmed)


def _given_name(meta: Mapping[str, Any]) -> str | None:
    """The name that somebody chose for the machine. Whoever writes meta data fills in the host's own name where nobody did, so
    that one counts only under a key that is never filled in."""
    return _name({key: name for key, name in meta.items() if key == "hostname" or name != meta.get(_HOST)})


def _name(meta: Mapping[str, Any]) -> str | None:
    names = (meta.get(key) for key in ("local-hostname", "local_hostname", "hostname", "name"))
    return next((name for name in names if isinstance(name, str) and is_hostname(name)), None)


def is_hostname(name: str) -> bool:
    """Whether a machine can have this name, and it says which machine it is."""
    words = name.split(".")
    fits = len(name) <= 64 and all(_LABEL.fullmatch(word) for word in words)
    return fits and words[0].lower() != "localhost"


_LABEL: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")


def _image(instance: Mapping[str, Any]) -> Image | None:
    url = instance.get("image_source")
    if not url:
        return None
    if not isinstance(url, str) or not re.fullmatch(r"[\x21-\x7e]+", url):
        raise Refused("image_source is not a URL.")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise Refused(f"image_source is not a URL: {error}.") from None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise Refused(f"the image {shown(url)} is not at an http or https URL.")
    if parts.path.lower().endswith(".iso"):
        raise Refused(
            f"the image {shown(url)} is an ISO; what is written to a disk is the metal image (raw, raw.gz, raw.xz)."
        )
    return Image(url, checksum.wanted(instance, shown(url)))
