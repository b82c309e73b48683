"""A room in which servers boot CoreOS: the front server, boot files for iPXE and the image controller stand beside the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import aiohttp
from coreos_payloads import OLD, made_payload, switch_to
from ironic_room import NAMESPACE, Host, Room, free_ports

from ingot.api.meta import Key
from ingot.api.preprovisioningimage import PREPROVISIONING_IMAGES, PreprovisioningImage
from ingot.kube import Client
from ingot.lab.record import CoreOs
from ingot.trust import client_context


class CoreosRoom(Room):
    def __init__(self, state: Path, client: Client, *, servers: int) -> None:
        super().__init__(state, client, servers=servers)
        private, boot, self._images_port = free_ports(3)
        self.settings = replace(
            self.settings,
            reverse_proxy=True,
            private_port=str(private),
            network_boot=True,
            boot_port=boot,
            use_coreos=True,
            http_url=None,
        )
        self._access = replace(self._access, endpoint=f"{self.settings.api_url}/v1")
        self._payloads = state / "payloads"
        self._payloads.mkdir()
        self.payload = self._payloads / "current"
        self.use(OLD)
        self.cast: dict[str, Host] = {}
        """Hosts of one story that matter in another."""

    # Payloads

    def payload_of(self, label: str) -> Path:
        folder = self._payloads / label
        return folder if folder.exists() else made_payload(folder, label)

    def use(self, label: str) -> None:
        """Ramdisks are made of this build from now on."""
        switch_to(self.payload, self.payload_of(label))

    # Processes

    def start_ironic(self, *, patient: bool = False) -> None:
        super().start_ironic(patient=patient)
        self.start("front", "service", "front", environment=self.settings.to_environment())

    def start_farm(self, *options: str) -> None:
        super().start_farm("--ipxe-url", self.settings.boot_url, *options)

    def start_images(self) -> None:
        self.start(
            "images",
            *("operator", "--state", str(self.state), "--controllers", "images", "--namespace", NAMESPACE),
            *("--payload", str(self.payload), "--payload-seconds", "0.5"),
            *("--images-listen", f"127.0.0.1:{self._images_port}"),
            environment={
                "KUBECONFIG": str(self.state / "kubeconfig"),
                "IRONIC_BASE_URL": self.settings.base_url,
                "IRONIC_CACERT_FILE": str(self.settings.ca_file),
            },
        )

    def start_operator(self, **more: str) -> None:
        self.start_images()
        super().start_operator(IRONIC_USE_COREOS_IPA="true", **more)

    # Hosts

    async def image_of(self, host: Host) -> PreprovisioningImage:
        return await self.client.get(PREPROVISIONING_IMAGES, Key(NAMESPACE, host.name))

    async def until_image(self, host: Host, version: str) -> PreprovisioningImage:
        """Until the ramdisk of the host is made of this build."""
        return await self.until_object(
            PREPROVISIONING_IMAGES,
            host.name,
            lambda found: found.status.version == version and bool(found.status.image_url),
        )

    async def until_not_newest(self, host: Host) -> str:
        """Until the status of its ramdisk says that a newer one cannot be used, and why."""

        def said(found: PreprovisioningImage) -> list[str]:
            return [
                one.message
                for one in found.status.conditions
                if (one.type, one.status) == ("UpToDate", "False")
            ]

        return said(
            await self.until_object(PREPROVISIONING_IMAGES, host.name, lambda found: bool(said(found)))
        )[0]

    async def until_served(self, url: str) -> None:
        trusted = client_context(self.settings.ca_file)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusted)) as session:

            async def is_there() -> None:
                async with session.head(url) as answer:
                    assert answer.status == 200

            await self._ready(is_there)


def over_the_network(host: Host) -> str:
    """The address of the host's BMC with the scheme of those that boot over the network."""
    return host.plate.bmc_address.replace("redfish-virtualmedia", "redfish")


async def booted_coreos(host: Host) -> CoreOs:
    """What the server itself says that it booted last."""
    booted = (await host.seen()).booted
    assert booted is not None
    assert booted.coreos is not None, booted
    return booted.coreos
