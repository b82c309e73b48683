"""A host's ramdisk: the base, with the few kilobytes that are this host's own.

Nothing is written down. An ISO image is the base with its Ignition area and its kernel arguments patched; an initial RAM disk is
that of the base with an archive behind it, and needs arguments that say where the root file system is. The same base, settings,
name and network configuration give the same bytes, and so the same entity tag. What does not fit is said when the image is
made, not when a BMC reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from ingot.api.inputs import kernel_arguments
from ingot.api.preprovisioningimage import ImageFormat
from ingot.formats import DoesNotFit, FormatError
from ingot.formats.coreos import IGNITION, NETWORK, ArgumentChanges, LiveIso, Patch, minimal_changes
from ingot.formats.initrd import Members, pack
from ingot.images.ramdisk.base import Base
from ingot.images.ramdisk.errors import BaseError, CannotBuild
from ingot.images.ramdisk.ignition import agent_ignition
from ingot.images.ramdisk.minimal import Minimal
from ingot.images.ramdisk.settings import AgentSettings
from ingot.images.server.pieces import Image, Piece, appended, entity_tag, patched

_ISO_TYPE: Final = "application/x-iso9660-image"
_LARGEST_ARCHIVE: Final = 16 << 20
"""Of what is put behind an initial RAM disk, where nothing else limits it: far more than anybody needs."""


@dataclass(frozen=True, slots=True)
class HostImage:
    """What a host boots; where it is served is not known here. `kernel_params` are for an initial RAM disk."""

    format: ImageFormat
    image: Image
    kernel_params: str = ""
    network_is_late: bool = False
    """The root file system is fetched before the host's network configuration holds."""


def kernel_params(settings: AgentSettings, rootfs_url: str) -> str:
    """The arguments for a kernel with the initial RAM disk. There is no `coreos.liveiso`: it would look for the ISO image."""
    made = " ".join(
        (
            f"coreos.live.rootfs_url={rootfs_url}",
            "ignition.firstboot",
            "ignition.platform.id=metal",
            *settings.ip_options,
        )
    )
    if problem := kernel_arguments.problem_with(made):
        raise BaseError(
            f"IP_OPTIONS and the URL of the root file system cannot be arguments of the kernel: {problem}"
        )
    return made


class RamdiskMaker:
    """Makes hosts' images out of one base, with one set of settings. Reads what they share when it is made, and blocks then."""

    def __init__(
        self,
        base: Base,
        settings: AgentSettings,
        *,
        rootfs_url: str,
        kernel: Image | None = None,
        minimal: Minimal | None = None,
    ) -> None:
        """`kernel` where it is not the one in the ISO image. With `minimal`, ISO images are made of that. Raises `BaseError`."""
        self.base: Final = base
        self.settings: Final = settings
        self.kernel: Final = kernel or base.kernel_image()
        self.kernel_params: Final = kernel_params(settings, rootfs_url)
        self._fetches_root = minimal is not None
        """Whether an ISO image does; an initial RAM disk always does."""
        self._boot = minimal.iso if minimal else base.iso
        self._sha256 = minimal.sha256 if minimal else base.sha256
        try:
            with self._boot.open() as file:
                live = LiveIso(file)
                self._area = live.ignition_area
                self._shared = _shared_patches(live, settings, rootfs_url if minimal else "")
        except DoesNotFit as error:
            raise BaseError(
                f"{self._boot.path} has no room for the arguments of the kernel ({error}). Make IP_OPTIONS or "
                "IRONIC_KERNEL_PARAMS shorter"
            ) from error
        except FormatError as error:
            raise BaseError(f"{self._boot.path} cannot be told what hosts need: {error}") from error
        except OSError as error:
            raise BaseError(f"{self._boot.path} cannot be read: {error.strerror}") from error

    def make(self, form: ImageFormat, *, hostname: str, keyfiles: Mapping[str, bytes]) -> HostImage:
        """The image of one host. Raises `CannotBuild`."""
        members = self._members(hostname, keyfiles)
        made = self._iso(members) if form == "iso" else self._initrd(members)
        late = bool(keyfiles) and not self.base.early_network and (form == "initrd" or self._fetches_root)
        return replace(made, network_is_late=late)

    def _members(self, hostname: str, keyfiles: Mapping[str, bytes]) -> Members:
        members = {IGNITION: agent_ignition(self.settings, hostname=hostname, keyfiles=keyfiles)}
        if self.base.early_network:
            members |= {f"{NETWORK}/{name}": content for name, content in keyfiles.items()}
        return members

    def _iso(self, members: Members) -> HostImage:
        packed = pack(members, limit=self._area.length)
        if len(packed) > self._area.length:
            sizes = ", ".join(f"{name} {len(content)}" for name, content in members.items())
            raise CannotBuild(
                f"what goes into the image has {len(packed)} bytes when it is compressed, and {self.base.version} has room for "
                f"{self._area.length} (bytes before: {sizes}). Make the network configuration, CA_BUNDLE, REGISTRIES_CONF_PATH "
                "or the pull secret smaller"
            )
        patch = Patch(self._area.offset, packed.ljust(self._area.length, b"\0"))
        pieces = patched(self._boot, [*self._shared, patch])
        tag = entity_tag(self._boot, self._sha256, pieces)
        return HostImage("iso", Image(pieces, tag, self.base.modified, _ISO_TYPE))

    def _initrd(self, members: Members) -> HostImage:
        packed = pack(members)
        if len(packed) > _LARGEST_ARCHIVE:
            raise CannotBuild(
                f"what goes into the image has {len(packed)} bytes when it is compressed; at most {_LARGEST_ARCHIVE} are put "
                "behind an initial RAM disk"
            )
        pieces: tuple[Piece, ...] = appended(self.base.initramfs, packed)
        tag = entity_tag(self.base.iso, self.base.sha256, pieces)
        return HostImage("initrd", Image(pieces, tag, self.base.modified), self.kernel_params)


def _shared_patches(live: LiveIso, settings: AgentSettings, rootfs_url: str) -> tuple[Patch, ...]:
    """What is changed for all hosts: the kernel's arguments, and in a minimal image what says where the rest is."""
    added = (*settings.iso_arguments, *settings.ip_options)
    if rootfs_url:
        return tuple(minimal_changes(live, rootfs_url, added))
    if live.argument_areas is None and not added:
        return ()
    wanted = ArgumentChanges(append=added).applied_to(live.default_arguments)
    return tuple(live.arguing(wanted))
