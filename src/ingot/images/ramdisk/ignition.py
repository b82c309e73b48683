"""The Ignition config of a host's ramdisk.

Pure: the same settings, name and network configuration give the same bytes. Written in specification 3.2, which all live systems
in use read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ingot.api.inputs.text import shown
from ingot.formats.ignition import IgnitionConfig
from ingot.images.ramdisk import agent_files
from ingot.images.ramdisk.errors import CannotBuild
from ingot.images.ramdisk.settings import AgentSettings

SPECIFICATION: Final = "3.2.0"
UNIT: Final = "ironic-agent.service"
CONNECTIONS: Final = "/etc/NetworkManager/system-connections"
_LONGEST_NAME: Final = 63
_HOST_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_LONGEST_FILE_NAME: Final = 255


def agent_ignition(settings: AgentSettings, *, hostname: str, keyfiles: Mapping[str, bytes]) -> bytes:
    """The config that starts the agent. `keyfiles` are NetworkManager's, by file name. Raises `CannotBuild`."""
    name = machine_name(hostname)
    own_network = bool(keyfiles)
    config = IgnitionConfig(SPECIFICATION)
    _add(config, agent_files.CONFIG, agent_files.agent_config(settings, own_network=own_network), 0o644)
    for file_name, content in sorted(keyfiles.items()):
        _check_file_name(file_name)
        config.add_file(f"{CONNECTIONS}/{file_name}", content, mode=0o600, overwrite=True)
    if settings.pull_secret:
        _add(config, agent_files.PULL_SECRET, settings.pull_secret.reveal(), 0o600)
    if settings.ca:
        config.add_file(agent_files.CA, settings.ca, mode=0o644)
    if settings.ca_bundle:
        config.add_file(agent_files.ANCHOR, settings.ca_bundle, mode=0o644)
    _add(config, "/etc/NetworkManager/conf.d/clientid.conf", agent_files.CLIENT_ID, 0o644)
    if settings.ntp_servers:
        lines = "".join(f"server {server} iburst\n" for server in settings.ntp_servers)
        config.append_to_file("/etc/chrony.conf", f"\n{lines}".encode())
    _add(
        config,
        "/etc/NetworkManager/dispatcher.d/01-hostname",
        agent_files.hostname_script(name),
        0o744,
    )
    if settings.registries_conf:
        config.add_file(
            "/etc/containers/registries.conf", settings.registries_conf, mode=0o644, overwrite=True
        )
    _add(config, "/etc/issue.d/ironic-agent.issue", agent_files.console_message(settings, name), 0o644)
    if settings.ssh_key:
        config.add_user("core", [settings.ssh_key])
    config.add_unit(UNIT, _unit(settings, name, own_network=own_network))
    return config.encoded()


def _unit(settings: AgentSettings, hostname: str, *, own_network: bool) -> str:
    unit = agent_files.agent_unit(settings, hostname=hostname, own_network=own_network)
    longest = max(len(line) for line in unit.splitlines())
    if longest > agent_files.LONGEST_LINE:
        raise CannotBuild(
            f"a line of the agent's unit has {longest} bytes, and Ignition reads at most {agent_files.LONGEST_LINE}. Make "
            "NO_PROXY, HTTP_PROXY, HTTPS_PROXY or IP_OPTIONS shorter"
        )
    return unit


def machine_name(host: str) -> str:
    """The name of a machine, made of the name of its host; that of an object in Kubernetes may be longer."""
    if not _HOST_NAME.fullmatch(host):
        raise CannotBuild(f"{host!r} is no name of a host; lower case letters, digits, '-' and '.' make one")
    return host[:_LONGEST_NAME].rstrip(".-")


def _check_file_name(name: str) -> None:
    plain = name.isprintable() and "/" not in name and not name.startswith(".")
    if not plain or not 0 < len(name.encode()) <= _LONGEST_FILE_NAME:
        raise CannotBuild(f"a network connection has the file name {shown(name)!r}, which is none")


def _add(config: IgnitionConfig, path: str, text: str, mode: int) -> None:
    config.add_file(path, text.encode(), mode=mode)
