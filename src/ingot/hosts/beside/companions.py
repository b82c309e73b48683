"""The objects that stand beside a host and carry its name.

They are looked after in the host's own pass, never by a worker of their own: so nothing overtakes anything, and what the pass
reads of them is what it decides on. A change of one of them wakes the host of that name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from ingot.api.dataimage import DATA_IMAGES
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.hostfirmwarecomponents import HOST_FIRMWARE_COMPONENTS
from ingot.api.hostfirmwaresettings import HOST_FIRMWARE_SETTINGS
from ingot.api.hostupdatepolicy import HOST_UPDATE_POLICIES
from ingot.api.meta import Key, Object
from ingot.api.preprovisioningimage import PREPROVISIONING_IMAGES
from ingot.hosts.beside.schemas import BY_SCHEMA, Schemas, named_schema
from ingot.hosts.echoes import Echoes
from ingot.kube import Client, Informer, metadata_of

T = TypeVar("T", bound=Object)


class Companions:
    """The informers of these kinds."""

    def __init__(self, client: Client, echoes: Echoes, *, namespace: str = "") -> None:
        self._echoes = echoes
        self.hardware = Informer(client, metadata_of(HARDWARE_DATA), namespace=namespace)
        """Without its contents: they are large, and read when they matter."""
        self.firmware_settings = Informer(
            client, HOST_FIRMWARE_SETTINGS, namespace=namespace, indexes={BY_SCHEMA: named_schema}
        )
        self.schemas = Schemas(client, self.firmware_settings, namespace=namespace)
        """Not of one host: those with the same firmware share one."""
        self.firmware_components = Informer(client, HOST_FIRMWARE_COMPONENTS, namespace=namespace)
        self.update_policies = Informer(client, HOST_UPDATE_POLICIES, namespace=namespace)
        self.data_images = Informer(client, DATA_IMAGES, namespace=namespace)
        self.ramdisks = Informer(client, PREPROVISIONING_IMAGES, namespace=namespace)
        self.unread_firmware: set[Key] = set()
        """Hosts whose firmware has not been read since something happened to it; see `firmware`."""

    def wrote(self, informer: Informer[T], written: T) -> None:
        """Our own write was answered: that answer is newer than anything the watch has brought, and no news to us."""
        self._echoes.wrote(written.metadata.resource_version)
        informer.observe(written)

    def written_by_users(self) -> tuple[Informer[Any], ...]:
        """Those in whose specs somebody asks for something."""
        return self.firmware_settings, self.firmware_components, self.update_policies, self.data_images

    def __iter__(self) -> Iterator[Informer[Any]]:
        yield from (
            self.hardware,
            self.firmware_settings,
            self.firmware_components,
            self.update_policies,
            self.data_images,
            self.ramdisks,
        )
