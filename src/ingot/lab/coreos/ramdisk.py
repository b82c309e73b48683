"""The agent in a live system: a unit that runs a container with it, and what the container finds in the way of configuration.

Pure, over what Ignition has applied. There is an agent only if there is everything that a real one needs: the unit, enabled; a
container image; a configuration that the container can see, and that says whom to call; the CA that it names. Otherwise the
sentence says what is missing.
"""

from __future__ import annotations

import configparser
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ingot.lab.coreos.ignition import Applied

UNIT: Final = "ironic-agent.service"
CONFIGURATION: Final = "/etc/ironic-python-agent.conf"
_OWN_OF_CONTAINERS: Final = ("/etc/pki/tls/", "/etc/ssl/", "/usr/share/ca-certificates/")
"""Where an image of a container keeps certificates of its own."""
_ALONE: Final = re.compile(
    r"-[diqt]+|--(detach|env-host|http-proxy|init|interactive|no-healthcheck|no-hosts|oom-kill-disable|privileged|quiet|read-only"
    r"|replace|rmi?|tls-verify|tty)"
)
"""Options of podman that have no value, unless one is put behind an equals sign."""
_CONCATENATION: Final = re.compile(r"\bcat (?P<of>[^>|;&']+) > ?(?P<made>/[^\s'\"]+)")


@dataclass(frozen=True, slots=True)
class AgentFound:
    """An agent as its container starts it."""

    image: str
    parameters: Mapping[str, str]
    """What it was configured with, by the names that kernel arguments have for it."""
    ca: str = ""
    insecure: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


class NoAgent(Exception):
    """Nothing in the system calls Ironic; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Container:
    """What `podman run` is told."""

    image: str
    environment: Mapping[str, str]
    mounts: Mapping[str, str]
    """Path in the container, and what it is on the host."""

    def on_host(self, path: str) -> str | None:
        """The path on the host of a file that the container sees; None for one of its own."""
        for inside, outside in sorted(self.mounts.items(), key=lambda mount: -len(mount[0])):
            if path == inside:
                return outside
            if path.startswith(inside.rstrip("/") + "/"):
                return outside.rstrip("/") + "/" + path.removeprefix(inside.rstrip("/") + "/")
        return None


def agent_in(system: Applied, arguments: Mapping[str, str]) -> AgentFound:
    """The agent that such a system starts, on a kernel with these arguments. Raises `NoAgent`."""
    unit = system.units.get(UNIT)
    if unit is None:
        raise NoAgent(f"Ignition makes no unit {UNIT}")
    if not unit.enabled:
        raise NoAgent(f"the unit {UNIT} is not enabled")
    container = container_of(unit.text)
    if container is None:
        raise NoAgent(f"the unit {UNIT} runs no container")
    configuration = system.files.get(CONFIGURATION)
    if configuration is None:
        raise NoAgent(f"Ignition writes no {CONFIGURATION}")
    if CONFIGURATION not in container.mounts.values():
        raise NoAgent(f"the container does not see {CONFIGURATION}")
    files = {path: file.text for path, file in system.files.items()}
    return _configured(container, configuration.text, files | _put_together(unit.text, files), arguments)


def _configured(
    container: Container, text: str, files: Mapping[str, str], arguments: Mapping[str, str]
) -> AgentFound:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise NoAgent(f"{CONFIGURATION} cannot be read: {error.message}") from error
    given = parser.defaults()
    names = {"api_url": "ipa-api-url", "inspection_callback_url": "ipa-inspection-callback-url"}
    # Where there are several the real one tries them in turn; all of them are the same Ironic.
    told = {name: given[option].split(",")[0].strip() for option, name in names.items() if given.get(option)}
    parameters = {**arguments, **told}
    if not any(parameters.get(name) for name in names.values()):
        raise NoAgent(f"{CONFIGURATION} does not say whom to call")
    insecure = given.get("insecure", "").lower() in ("true", "yes", "on", "1")
    ca = "" if insecure else _authority(given.get("cafile", ""), container, files)
    return AgentFound(container.image, parameters, ca, insecure, container.environment)


def _authority(path: str, container: Container, files: Mapping[str, str]) -> str:
    if not path or path.startswith(_OWN_OF_CONTAINERS):
        return ""
    on_host = container.on_host(path)
    found = files.get(on_host) if on_host is not None else None
    if found is None:
        raise NoAgent(f"the agent's cafile {path} is not in its container")
    return found


def _put_together(unit: str, files: Mapping[str, str]) -> dict[str, str]:
    """Files that the unit makes of others before it starts the container; those of the live system itself are not known here."""
    return {
        found["made"]: "".join(files.get(path, "") for path in found["of"].split())
        for line in unit.splitlines()
        if line.startswith("ExecStartPre=") and (found := _CONCATENATION.search(line)) is not None
    }


def container_of(unit: str) -> Container | None:
    """The container that a unit of systemd starts; None for a unit that starts something else."""
    for line in unit.replace("\\\n", " ").splitlines():
        name, _, value = line.strip().partition("=")
        if name.strip() == "ExecStart":
            words = _words(value)
            if words and words[0].rpartition("/")[2] == "podman" and words[1:2] == ["run"]:
                return _container(words[2:])
    return None


def _words(command: str) -> list[str]:
    """The words of a command line in a unit; none of one that nobody can read."""
    # What systemd itself gives a meaning is written twice where it has none.
    plain = command.strip().lstrip("-+!@:").replace("%%", "%").replace("$$", "$")
    try:
        return shlex.split(plain)
    except ValueError:
        return []


def _container(words: list[str]) -> Container | None:
    environment: dict[str, str] = {}
    mounts: dict[str, str] = {}
    left = iter(words)
    for word in left:
        if not word.startswith("-"):
            return Container(word, environment, mounts)
        option, equals, value = word.partition("=")
        if not equals and not _ALONE.fullmatch(option):
            value = next(left, "")
        if option in ("-e", "--env"):
            name, _, text = value.partition("=")
            environment[name] = text
        elif option in ("-v", "--volume"):
            mounts |= _volume(value)
        elif option == "--mount":
            mounts |= _mount(value)
    return None


def _volume(value: str) -> Mapping[str, str]:
    parts = value.split(":")
    return {parts[1]: parts[0]} if len(parts) > 1 else {}


def _mount(value: str) -> Mapping[str, str]:
    given = dict(_fields(value))
    inside = given.get("dst") or given.get("destination") or given.get("target")
    outside = given.get("src") or given.get("source")
    return {inside: outside} if inside and outside else {}


def _fields(value: str) -> Iterator[tuple[str, str]]:
    for part in value.split(","):
        name, _, text = part.partition("=")
        yield name, text
