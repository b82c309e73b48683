"""The environment of ironic-image, where it is not simply ours: other spellings, what is passed over, what is refused.

Pure tables. A name that means the same here is a field of `settings`. Of the others, some are older spellings, some ask for
what happens here in another way or not at all (a warning says so), and some ask for what this service never does: then it does
not start, because whoever set it relies on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ingot.services.errors import SettingsError

SPELLINGS: Final = {
    "HTTP_BASIC_HTPASSWD": "IRONIC_HTPASSWD",
    "IRONIC_INSPECTOR_VLAN_INTERFACES": "IRONIC_ENABLE_VLAN_INTERFACES",
    "PROVISIONING_IP": "IRONIC_IP",
}
"""Another name, and the one that counts when both are set."""

PASSED_OVER: Final = {
    "VMEDIA_TLS_PORT": "the front server publishes virtual media on the port of the agents",
    "IPXE_TLS_PORT": "iPXE trusts no CA of ours: boot files are handed out on HTTP_PORT, to who switches INGOT_NETWORK_BOOT on",
    "NUMWORKERS": "API and conductor are one process, whose API always has 64 threads",
    "IRONIC_JSON_RPC_PORT": "there is no RPC: API and conductor are one process",
    "IRONIC_DBSYNC_TIMEOUT": "whoever runs the service starts it again when the database is not there yet",
    "IRONIC_DBSYNC_INTERVAL": "whoever runs the service starts it again when the database is not there yet",
    "IRONIC_IP_WAIT_TIMEOUT": "whoever runs the service starts it again when the address is not there yet",
    "IRONIC_IP_WAIT_INTERVAL": "whoever runs the service starts it again when the address is not there yet",
    "PROVISIONING_INTERFACE": "give the address itself, by IRONIC_IP",
    "PROVISIONING_MACS": "give the address itself, by IRONIC_IP",
    "RESTART_CONTAINER_CERTIFICATE_UPDATED": "renewed certificates are taken up while it runs",
    "IRONIC_TLS_12_CIPHERS": "the ciphers are OpenSSL's; OS_API__SERVER_TLS_CIPHERS changes Ironic's own listener",
    "IRONIC_TLS_13_CIPHERS": "the ciphers are OpenSSL's",
    "IRONIC_SSL_PROTOCOL": "TLS is 1.2 or newer; OS_API__SERVER_TLS_MINIMUM_VERSION changes Ironic's own listener",
    "IRONIC_IPA_DEBUG": "the agent is talkative when Ironic is: INGOT_IRONIC_DEBUG",
    "IPA_FORWARD_CONSOLE": "put what the ramdisk is told into IRONIC_KERNEL_PARAMS",
    "SEND_SENSOR_DATA": "nothing reads sensor data yet",
    "IRONIC_DEFAULT_NETWORK_INTERFACE": "there is no networking service: the network interface is noop",
    **dict.fromkeys(
        (
            "IRONIC_TLS_CURVES",
            "IRONIC_TLS_ENFORCE_SERVER_CIPHER_ORDER",
            "IPXE_SSL_PROTOCOL",
        ),
        "TLS is 1.2 or newer, with OpenSSL's ciphers and curves, on every listener",
    ),
    **dict.fromkeys(
        ("HTTPD_SERVE_NODE_IMAGES", "HTTPD_ENABLE_SENDFILE", "IRONIC_HTTPD_LOGLEVEL"),
        "there is no httpd: the front server hands out what Ironic publishes, and nothing else",
    ),
    **dict.fromkeys(
        (
            "DHCP_RANGE",
            "DHCP_OPTIONS",
            "DHCP_HOSTS",
            "DHCP_IGNORE",
            "GATEWAY_IP",
            "DNS_IP",
            "DNS_PORT",
            "DNSMASQ_EXCEPT_INTERFACE",
            "SNP_BASENAME",
            "IPXE_CUSTOM_FIRMWARE_DIR",
            "IRONIC_TFTP_URL",
        ),
        "this service answers no DHCP, DNS or TFTP. Your DHCP server points iPXE to boot.ipxe",
    ),
    **dict.fromkeys(
        ("CUSTOM_CONFIG_DIR", "CUSTOM_DATA_DIR"),
        "every file is below INGOT_IRONIC_STATE, or set apart by a name of ours",
    ),
    "IRONIC_IPA_BASE_URL": "what hosts boot is named whole, by DEPLOY_KERNEL_URL and DEPLOY_RAMDISK_URL",
    "IRONIC_IPA_INSPECTION_DHCP_ALL_INTERFACES": "the ramdisk always asks for an address on all its interfaces",
    "IRONIC_SCHEME": "every listener of Ironic has TLS; IRONIC_BASE_URL says where machines call",
    "IRONIC_URL_HOST": "IRONIC_BASE_URL says where machines call",
}
"""What nothing is done about, and why."""

PASSED_OVER_WHOLE: Final = {
    "IRONIC_NETWORKING_": "there is no networking service",
    "IRONIC_VMEDIA_": "virtual media is published where agents call, over TLS 1.2 or newer",
}
"""The same for every variable whose name begins like this."""

_TRUE: Final = frozenset({"true", "yes", "on", "1"})
REFUSED: Final = {
    "IRONIC_INSECURE": ("image servers are always verified. Name their CA by WEBSERVER_CACERT_FILE"),
    "IRONIC_IPA_INSECURE": (
        "an agent that verifies nothing sends its token to whoever answers. The ramdisk is given the CA of this "
        "installation; take the variable away or set it to 0"
    ),
    "DISABLE_DEEP_IMAGE_INSPECTION": (
        "an image whose content is not looked at can make qemu-img read any file of this machine. Convert the image to raw "
        "or qcow2 instead"
    ),
    "IRONIC_ENABLE_DISCOVERY": "nodes are made from hosts, and those that no host owns are removed. Create the hosts",
    "IRONIC_INSPECTOR_ENABLE_DISCOVERY": (
        "nodes are made from hosts, and those that no host owns are removed. Create the hosts"
    ),
    "IRONIC_EXPOSE_JSON_RPC": "this service is one Ironic with nothing to listen for RPC. Take the variable away",
    "IRONIC_NETWORKING_ENABLED": "there is no networking service to talk to. Take the variable away",
}
"""What is not done when it is switched on, and what to do instead."""


def translated(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment under our names. Raises for what is refused."""
    for name, reason in REFUSED.items():
        if environment.get(name, "").lower() in _TRUE:
            raise SettingsError(f"{name} is {environment[name]!r}, which Ingot does not do: {reason}.")
    if environment.get("IRONIC_DEPLOYMENT"):
        raise SettingsError(
            f"IRONIC_DEPLOYMENT is {environment['IRONIC_DEPLOYMENT']!r}; this service is always API and conductor in one. "
            "Take the variable away."
        )
    ours = dict(environment)
    for other, name in SPELLINGS.items():
        if environment.get(other) and not environment.get(name):
            # With a prefix length, as an interface has it, PROVISIONING_IP is still the address.
            ours[name] = environment[other].partition("/")[0] if name == "IRONIC_IP" else environment[other]
    return ours | _by_architecture(ours)


def _by_architecture(environment: Mapping[str, str]) -> dict[str, str]:
    """DEPLOY_KERNEL_URL_AARCH64 and the like, as one list for all architectures, where that one is not given."""
    found = {}
    for name in ("DEPLOY_KERNEL", "DEPLOY_RAMDISK"):
        prefix = f"{name}_URL_"
        each = [
            f"{variable.removeprefix(prefix).lower()}:{url}"
            for variable, url in sorted(environment.items())
            if variable.startswith(prefix) and variable != f"{prefix}BY_ARCH" and url
        ]
        if each and not environment.get(f"{name}_BY_ARCH"):
            found[f"{name}_BY_ARCH"] = ",".join(each)
    return found


def passed_over(environment: Mapping[str, str]) -> list[str]:
    """A sentence for each variable that is set and makes no difference."""
    whole = {
        name: reason
        for name in sorted(environment)
        for beginning, reason in PASSED_OVER_WHOLE.items()
        if name.startswith(beginning) and name not in REFUSED
    }
    return [
        f"{name} is set and makes no difference: {reason}."
        for name, reason in (PASSED_OVER | whole).items()
        if environment.get(name)
    ]
