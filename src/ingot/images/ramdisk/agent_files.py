"""The files that the agent in the ramdisk is started with: its configuration, its unit, and what names the machine.

Pure. ironic-python-agent runs in a container of the live system, with the machine's devices, network and file system. It verifies
whom it calls: there is no setting that turns this off. Its token it is told by Ironic when it first calls, once; an image has
none, because everybody who boots it would have the same one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ingot.images.ramdisk.settings import AgentSettings

CONFIG: Final = "/etc/ironic-python-agent.conf"
CA: Final = "/etc/ironic-python-agent/ironic.crt"
"""The same in the live system and in the container, where Ironic puts it into ramdisks of its own."""
ANCHOR: Final = "/etc/pki/ca-trust/source/anchors/ca.crt"
"""Whom the live system trusts besides."""
PULL_SECRET: Final = "/etc/authfile.json"  # noqa: S105 - the name of a file
_TRUSTED: Final = "/run/ironic-agent-ca.crt"
_SYSTEM_CAS: Final = "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"
_CONTAINER_FILE: Final = "%t/%n.ctr-id"
LONGEST_LINE: Final = 2047
"""Of a unit, in bytes: Ignition refuses a config with a longer one."""
_PLAIN_WORD: Final = re.compile(r"[A-Za-z0-9_.,:/@=+-]+")

CLIENT_ID: Final = """\
# Addresses by DHCPv6 follow the machine, not the system that happens to run on it.
[connection]
ipv6.dhcp-duid=ll
ipv6.dhcp-iaid=mac
"""


def agent_config(settings: AgentSettings, *, own_network: bool) -> str:
    """/etc/ironic-python-agent.conf. `own_network`: the host has a network configuration of its own."""
    inspection = settings.inspection_urls or [f"{url}/v1/continue_inspection" for url in settings.api_urls]
    lines = [
        "[DEFAULT]",
        f"api_url = {','.join(settings.api_urls)}",
        f"inspection_callback_url = {','.join(inspection)}",
        "insecure = False",
        *([f"cafile = {CA}"] if _trusted(settings) else []),
        f"enable_vlan_interfaces = {_vlan_interfaces(settings, own_network=own_network)}",
        "collect_lldp = True",
        # Interfaces that are configured by hand get no address by DHCP, and nobody has to wait for one.
        f"inspection_dhcp_all_interfaces = {not own_network}",
        # A machine whose clock is years behind would trust nobody.
        *(f"ntp_server = {server}" for server in settings.ntp_servers[:1]),
    ]
    return "\n".join([*lines, ""])


def _trusted(settings: AgentSettings) -> list[str]:
    """Files of the live system with those whom the agent trusts, besides those whom every system trusts."""
    return [path for path, content in ((CA, settings.ca), (ANCHOR, settings.ca_bundle)) if content]


def _vlan_interfaces(settings: AgentSettings, *, own_network: bool) -> str:
    match settings.vlan_interfaces:
        case "always":
            return "all"
        case "never":
            return ""
        case "":
            return "" if own_network else "all"


def agent_unit(settings: AgentSettings, *, hostname: str, own_network: bool) -> str:
    """ironic-agent.service."""
    return "\n".join(
        [
            "[Unit]",
            "Description=Ironic Python Agent",
            "After=network-online.target coreos-update-ca-trust.service",
            "Wants=network-online.target",
            # A registry or an API that is away for an hour is no reason to give up.
            "StartLimitIntervalSec=0",
            "",
            "[Service]",
            "Type=notify",
            "NotifyAccess=all",
            "Restart=on-failure",
            "RestartSec=5",
            "TimeoutStartSec=0",
            *(f"Environment={quoted(f'{name}={value}')}" for name, value in _proxies(settings)),
            f"ExecStartPre=/bin/rm -f {_CONTAINER_FILE}",
            *_trust_lines(settings),
            # One word a line: Ignition reads no line that is longer than LONGEST_LINE.
            " \\\n    ".join(
                ["ExecStart=/bin/podman", *_podman(settings, hostname=hostname, own_network=own_network)]
            ),
            f"ExecStop=/bin/podman stop --ignore --cidfile={_CONTAINER_FILE}",
            f"ExecStopPost=/bin/podman rm -f --ignore --cidfile={_CONTAINER_FILE}",
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )


def _proxies(settings: AgentSettings) -> Iterator[tuple[str, str]]:
    """podman hands them on into the container."""
    for name, value in (
        ("HTTP_PROXY", settings.http_proxy.reveal()),
        ("HTTPS_PROXY", settings.https_proxy.reveal()),
        ("NO_PROXY", settings.no_proxy),
    ):
        if value:
            yield name, value


def _trust_lines(settings: AgentSettings) -> list[str]:
    """The agent has one file with those it trusts, and fetches images from servers of all the world with it, too.

    A live system without a list of its own still gets ours, hence the dash.
    """
    ours = _trusted(settings)
    return [f"ExecStartPre=-/bin/sh -c 'cat {' '.join(ours)} {_SYSTEM_CAS} > {_TRUSTED}'"] if ours else []


def _podman(settings: AgentSettings, *, hostname: str, own_network: bool) -> Sequence[str]:
    mounts = [
        _mount(CONFIG, "/etc/ironic-python-agent/ignition.conf", read_only=True),
        *([_mount(_TRUSTED, CA, read_only=True)] if _trusted(settings) else []),
        _mount("/dev"),
        _mount("/sys"),
        _mount("/run/dbus/system_bus_socket"),
        _mount("/", "/mnt/coreos"),
        _mount("/run/udev"),
    ]
    environment = {
        "IPA_COREOS_IP_OPTIONS": " ".join(settings.ip_options),
        "IPA_COREOS_COPY_NETWORK": "true" if own_network else "false",
        "IPA_DEFAULT_HOSTNAME": hostname,
    }
    return [
        "run --detach --cgroups=no-conmon --sdnotify=conmon --rm",
        f"--cidfile={_CONTAINER_FILE}",
        "--privileged --network=host --ipc=host --uts=host",
        *mounts,
        *(quoted(f"--env={name}={value}", command=True) for name, value in environment.items()),
        *([f"--authfile={PULL_SECRET}"] if settings.pull_secret else []),
        "--name=ironic-agent",
        settings.image,
    ]


def _mount(source: str, target: str = "", *, read_only: bool = False) -> str:
    return f"--mount=type=bind,src={source},dst={target or source}{',ro' if read_only else ''}"


def quoted(text: str, *, command: bool = False) -> str:
    """One word for systemd, whatever is in it. In a command line a dollar has a meaning too."""
    if _PLAIN_WORD.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped.replace("$", "$$") if command else escaped}"'


def hostname_script(hostname: str) -> str:
    """For NetworkManager's dispatcher: a machine that the network gives no name has that of its host."""
    return f"""\
#!/bin/sh
case "$2" in
    up | dhcp4-change | dhcp6-change | hostname) ;;
    *) exit 0 ;;
esac
case "$DHCP6_FQDN_FQDN" in
    "" | *[!A-Za-z0-9.-]*) ;;
    *) exec hostnamectl set-hostname --transient "$DHCP6_FQDN_FQDN" ;;
esac
case "$(cat /proc/sys/kernel/hostname)" in
    "" | "(none)" | localhost | localhost.*) exec hostnamectl set-hostname --transient {hostname} ;;
esac
"""


def console_message(settings: AgentSettings, hostname: str) -> str:
    """What somebody sees who looks at the screen of the machine."""
    return (
        f"This is the ramdisk of host {hostname}. Its agent calls {', '.join(settings.api_urls)};\n"
        "`journalctl -u ironic-agent` shows what it does.\n\n"
    )
