"""What a machine runs that boots over the network: the script of each host, and the CA that its ramdisk needs.

Pure. Ironic fills the template in for one host and links the result under the host's MAC addresses; `boot.ipxe`, which every
machine begins with, chains that. Ironic's own template would send iPXE to the URL of the published files, which is TLS under a
private CA: iPXE trusts none. So every path in ours is relative: a machine stays with the listener it got the script from, and
the random path of the published files is in no script.

A CoreOS ramdisk is told by the URL of its root file system. It gets no argument that switches off what it is made with, and
its CA is in its Ignition configuration. Any other ramdisk gets the CA in an archive that is loaded behind it.
"""

from __future__ import annotations

from typing import Final

from ingot.formats.initrd import pack

BOOT_SCRIPT: Final = "boot.ipxe"
CA_ARCHIVE: Final = "agent-ca.img"
"""Beside the boot script, for ramdisks that do not bring the CA along."""
CA_IN_RAMDISK: Final = "etc/ironic-python-agent/ironic.crt"
_CONFIG_IN_RAMDISK: Final = "etc/ironic-python-agent.d/ironic-tls.conf"

# `goto deploy` at the beginning of a line is what Ironic replaces when the host is to boot something else than a ramdisk.
TEMPLATE: Final = """\
#!ipxe
{%- set kernel = pxe_options.deployment_aki_path | default('', true) %}
{%- set ramdisk = pxe_options.deployment_ari_path | default('', true) %}
{%- set arguments = pxe_options.pxe_append_params | default('', true) %}
{%- set coreos = 'coreos.live.rootfs_url=' in arguments %}
{%- set patience = '--timeout %d ' | format(pxe_options.ipxe_timeout) if pxe_options.ipxe_timeout else '' %}

set attempts:int32 10
set i:int32 0

goto deploy

:deploy
imgfree
kernel {{ patience }}../{{ kernel.split('/')[-2:] | join('/') }}{{ '' if coreos else ' selinux=0 troubleshoot=0 text' }} \
{{ arguments }} BOOTIF=${mac} initrd=deploy_ramdisk{{ '' if coreos else ' initrd=@CA_ARCHIVE@' }} || goto retry
initrd {{ patience }}../{{ ramdisk.split('/')[-2:] | join('/') }} || goto retry
{%- if not coreos %}
initrd {{ patience }}../@CA_ARCHIVE@ || goto retry
{%- endif %}
boot

:retry
iseq ${i} ${attempts} && goto fail ||
inc i
echo Not everything could be loaded. Trying again in ${i} seconds.
sleep ${i}
goto deploy

:fail
echo What this machine is to boot could not be loaded. It is switched off in 30 seconds.
sleep 30
poweroff

:boot_ramdisk
echo A live ISO is not handed out over the network without TLS. Use a BMC address with virtual media.
sleep 30
poweroff

:boot_whole_disk
sanboot --no-describe || exit 0
""".replace("@CA_ARCHIVE@", CA_ARCHIVE)


def ca_archive(ca: bytes) -> bytes:
    """The CA, and the word to the agent where it is: an initial RAM disk to be loaded behind the ramdisk's own."""
    told = f"[DEFAULT]\ncafile = /{CA_IN_RAMDISK}\n".encode()
    return pack({CA_IN_RAMDISK: ca, _CONFIG_IN_RAMDISK: told})
