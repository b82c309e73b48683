"""What is worth telling while things come up: pure decisions over the parts' states and the hosts.

A host is where it should be when it runs what its spec asks for, or stands ready where it asks for nothing. What a person reads
about a host is its own sentence: the error, else why it is where it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ingot.api.baremetalhost import BareMetalHost, ConditionType, State
from ingot.api.meta import Key
from ingot.embedded.supervisor import PartStatus
from ingot.embedded.supervisor import State as PartState


@dataclass(frozen=True, slots=True)
class HostView:
    """One host as a person sees it."""

    key: Key
    state: str
    goal: str
    sentence: str
    failed: bool

    @property
    def arrived(self) -> bool:
        return self.state == self.goal and not self.failed


def view_of(host: BareMetalHost) -> HostView:
    return HostView(
        key=host.key,
        state=host.status.provisioning.state or "new",
        goal=goal_of(host),
        sentence=_sentence(host),
        failed=bool(host.status.error_message),
    )


def views_of(hosts: Iterable[BareMetalHost]) -> list[HostView]:
    return sorted((view_of(host) for host in hosts), key=lambda view: view.key)


def goal_of(host: BareMetalHost) -> str:
    spec = host.spec
    if spec.externally_provisioned:
        return State.EXTERNALLY_PROVISIONED
    return State.PROVISIONED if spec.image or spec.custom_deploy else State.AVAILABLE


def _sentence(host: BareMetalHost) -> str:
    if host.status.error_message:
        return host.status.error_message
    said = (found.message for found in host.status.conditions if found.type == ConditionType.PROGRESSING)
    return next(said, "")


def part_line(part: PartStatus) -> str:
    return _line(part.name, part.state, part.why)


def _line(name: str, state: PartState, why: str) -> str:
    return f"{name:<24} {state:<14} {why}".rstrip()


def host_line(host: HostView) -> str:
    return f"{host.key!s:<24} {host.state:<14} {host.sentence}".rstrip()


class Teller:
    """Turns states into lines, each told once. Keeps nothing but what it told last."""

    def __init__(self) -> None:
        self._parts: dict[str, tuple[PartState, str]] = {}
        self._hosts: dict[Key, HostView] = {}

    def about_parts(self, parts: Iterable[PartStatus]) -> list[str]:
        lines = []
        for part in parts:
            # While something starts, its reason changes with every try: that it starts is told once.
            told = (part.state, "" if part.state is PartState.STARTING else part.why)
            if told == (PartState.WAITING, ""):
                continue  # its turn comes in the next moment
            if self._parts.get(part.name) != told:
                self._parts[part.name] = told
                lines.append(_line(part.name, *told))
        return lines

    def about_hosts(self, hosts: Iterable[HostView]) -> list[str]:
        lines = []
        for host in hosts:
            if self._hosts.get(host.key) != host:
                self._hosts[host.key] = host
                lines.append(host_line(host))
        return lines


def still_missing(hosts: Iterable[HostView], expected: Iterable[Key]) -> list[str]:
    """What keeps the expected hosts from being where they should be, one line a host; nothing when all are there."""
    found = {host.key: host for host in hosts}
    missing = []
    for key in expected:
        host = found.get(key)
        if host is None:
            missing.append(f"{key}: is not there (yet)")
        elif not host.arrived:
            missing.append(f"{key}: {host.state}, not yet {host.goal}. {host.sentence}".rstrip())
    return missing
