"""The kernel command line of ramdisks that Ironic puts together from a kernel and an initramfs.

Pure. A CoreOS ramdisk has what it needs in its Ignition configuration (an SSH key too), and in the arguments that whoever
serves it adds; it boots with those of no other system. Whom a ramdisk trusts is not said here: the CA is a file that is put into
it, so the agent always verifies whom it calls. A deploy ISO is booted as it is and holds its own command line.
"""

from __future__ import annotations

from ingot.services.settings import IronicSettings


def for_every_ramdisk(settings: IronicSettings) -> str:
    """What each of them is told."""
    words = [] if settings.use_coreos else ["nofb", "nomodeset", "vga=normal"]
    if settings.fips_ramdisk:
        words.append("fips=1")
    if settings.ramdisk_ssh_key and not settings.use_coreos:
        words.append(f'sshkey="{settings.ramdisk_ssh_key}"')
    return " ".join([*words, *settings.kernel_params.split()])


def for_inspection(settings: IronicSettings) -> str:
    """What those are told besides that are to report the hardware."""
    return " ".join(
        (
            f"ipa-inspection-collectors={settings.inspection_collectors}",
            f"ipa-enable-vlan-interfaces={settings.vlan_interfaces}",
            "ipa-inspection-dhcp-all-interfaces=1",
            f"ipa-collect-lldp={int(settings.collect_lldp)}",
        )
    )
