"""A live system that has found its root: what Ignition makes of it, and what then runs on the server.

Pure. With an agent it is a ramdisk; without one it is an operating system, and its record says why there is no agent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from ingot.formats.boot_parameters import parameters
from ingot.formats.coreos import IGNITION, NETWORK
from ingot.lab.coreos.ignition import Applied, applied
from ingot.lab.coreos.ramdisk import AgentFound, NoAgent, agent_in
from ingot.lab.record import CoreOs, Instance, Ramdisk

BUILD: Final = "etc/coreos-live-initramfs"
WANTED_ROOT: Final = "etc/coreos-live-want-rootfs"
INJECTED_ROOT: Final = "etc/coreos-live-rootfs"
FEATURES: Final = "etc/coreos/features.json"
CONNECTIONS: Final = "/etc/NetworkManager/system-connections/"


def wanted_members(path: str) -> bool:
    """What of an initial RAM disk decides about a boot."""
    return path in (IGNITION, BUILD, WANTED_ROOT, INJECTED_ROOT, FEATURES) or path.startswith(f"{NETWORK}/")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSystem:
    build: str
    how: Literal["iso", "pxe"]
    arguments: str
    root: str
    """Where the root file system came from: the medium, the initial RAM disk, or a URL."""
    ignition: bytes | None = None
    """The config that Ignition runs with; None when it has none, or does not run."""
    unconfigured: str = ""
    """Why there is none."""
    keyfiles: Mapping[str, bytes] = field(default_factory=dict)
    """Network settings in the initial RAM disk, by file name."""


def started(
    system: LiveSystem, stick: Mapping[str, str], *, sha256: str, size: int
) -> tuple[CoreOs, Ramdisk | Instance]:
    """What runs once the system is up. `stick`: the parameters on a virtual one. Raises `BootFailure` when Ignition fails."""
    done = applied(system.ignition) if system.ignition is not None else Applied()
    record = CoreOs(
        build=system.build,
        how=system.how,
        arguments=system.arguments,
        root=system.root,
        ignition_sha256=hashlib.sha256(system.ignition).hexdigest() if system.ignition is not None else "",
        hostname=done.hostname,
        keyfiles=_keyfiles(system, done),
    )
    arguments = {**parameters(system.arguments), **stick}
    try:
        if system.ignition is None:
            raise NoAgent(system.unconfigured)
        agent = agent_in(done, arguments)
    except NoAgent as reason:
        record.without_agent = str(reason)
        return record, Instance(
            image_sha256=sha256,
            image_size=size,
            hostname=done.hostname,
            coreos=system.build,
            ignition=(system.ignition or b"").decode("utf-8", "replace"),
        )
    record.container_image = agent.image
    record.hostname = record.hostname or agent.environment.get("IPA_DEFAULT_HOSTNAME", "")
    return record, _ramdisk(agent, record)


def _ramdisk(agent: AgentFound, record: CoreOs) -> Ramdisk:
    given = dict(agent.parameters)
    return Ramdisk(
        parameters=given,
        ca=agent.ca,
        insecure=agent.insecure,
        token=given.get("ipa-agent-token", ""),
        boot_mac=given.get("BOOTIF", ""),
        build=record.build,
        hostname=record.hostname,
        environment=dict(agent.environment),
        keyfiles=record.keyfiles,
    )


def _keyfiles(system: LiveSystem, done: Applied) -> dict[str, str]:
    """The connections that NetworkManager has; it passes over files that others may read."""
    found = {name: content.decode("utf-8", "replace") for name, content in system.keyfiles.items()}
    for path, file in done.files.items():
        if path.startswith(CONNECTIONS) and not file.mode & 0o077:
            found[path.removeprefix(CONNECTIONS)] = file.text
    return dict(sorted(found.items()))
