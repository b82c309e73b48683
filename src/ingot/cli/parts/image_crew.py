"""The crew that makes ramdisks: the controller of PreprovisioningImages, and the server of what it makes.

Every process that contends listens, and only the one that leads has anything to hand out: the others say "later". So readiness
says which of them is the one to send machines to. An image that cannot be replaced by a newer one is a notice, not a reason to
send nobody here: the old one is served.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import click

from ingot.cli.parts.crews import Crew, Shop
from ingot.cli.parts.listen import AddressAndPort, Listen
from ingot.cli.parts.state import StateFolder
from ingot.images.controller import ImageController, ImageSettings, serving
from ingot.images.ramdisk import SettingsError
from ingot.trust import Authority, Certificate, ServingTls

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ImageWork:
    """What was asked for."""

    settings: ImageSettings
    certs: Path | None
    namespace: str
    """The one namespace that is looked after; "" for all."""

    def tls(self, state: StateFolder) -> ServingTls:
        try:
            return ServingTls(lambda: self._certificate(state))
        except OSError as error:
            # Also ssl.SSLError: files that are there and hold something else.
            raise click.ClickException(
                f"the image server's certificate in {self.certs or state.images} cannot be used: {error}"
            ) from error

    def _certificate(self, state: StateFolder) -> Certificate:
        if self.certs is not None:
            return Certificate(self.certs / "tls.crt", self.certs / "tls.key", self.certs / "ca.crt")
        return Authority(state.ca).issue(state.images, "images", self.names())

    def names(self) -> list[str]:
        """Names and addresses by which machines call."""
        called = urlsplit(self.settings.public_url).hostname or ""
        names = [called, self.settings.listen.host, "127.0.0.1", "localhost"]
        return list(dict.fromkeys(name for name in names if name and not _is_everywhere(name)))

    async def crew(self, shop: Shop) -> Crew:
        tls = await asyncio.to_thread(self.tls, shop.state)
        images = serving(shop.client, shop.recorder, self.settings, tls=tls, namespace=self.namespace)
        listen = Listen(*self.settings.listen)
        try:
            controller = await shop.listening(images, "for images", listen, "--images-listen")
        except SettingsError as error:
            raise click.ClickException(str(error)) from error

        async def notice() -> None:
            await _keep_notice(controller, shop.state.images_notice, self.settings.look_every / 2)

        return Crew(
            informers=controller.informers,
            controllers=controller.controllers,
            work=[*controller.tasks, notice],
            checks={"images": lambda: "" if controller.ready() else "not every image was looked at yet"},
            announcement=lambda: f"images served on port {controller.port}",
        )


async def _keep_notice(controller: ImageController, file: Path, every: float) -> None:
    """What is not as it should be, for `ingot status`."""
    shown: str | None = None
    while True:
        told = "; ".join(controller.troubles)
        if told != shown:
            shown = told
            await asyncio.to_thread(_show, told, file)
        await asyncio.sleep(every)


def _show(told: str, file: Path) -> None:
    # A disk that is full does not keep anybody from being served.
    with contextlib.suppress(OSError):
        if told:
            file.write_text(f"{told}\n")
        else:
            file.unlink(missing_ok=True)


_OPTIONS: Final[tuple[Callable[[Any], Any], ...]] = (
    click.option(
        "--payload",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="FOLDER",
        envvar="INGOT_RELEASE_PAYLOAD",
        show_envvar=True,
        help="For images: the release payload that ramdisks are made of (`ingot release`). Without it, the ISO file that "
        "DEPLOY_ISO names.",
    ),
    click.option(
        "--payload-seconds",
        type=click.FloatRange(min=0.1),
        default=10.0,
        show_default=True,
        help="For images: how often to look whether it is another one by now.",
    ),
    click.option(
        "--images-listen",
        type=AddressAndPort(),
        envvar="INGOT_IMAGES_LISTEN",
        default="127.0.0.1:8084",
        show_default=True,
        show_envvar=True,
        help="For images: serve them here, with TLS.",
    ),
    click.option(
        "--images-url",
        envvar="INGOT_IMAGES_URL",
        show_envvar=True,
        metavar="URL",
        help="For images: where BMCs, servers and Ironic reach that, if not at the address of --images-listen. For hosts: with "
        "--build-preprov-image, boot no ramdisk from anywhere else.",
    ),
    click.option(
        "--images-certs",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="For images: a folder with tls.crt, tls.key and ca.crt. Without it, a certificate of this installation's own "
        "authority.",
    ),
)


def image_options(command: Command) -> Command:
    """The options; `image_work_from` reads them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def image_work_from(options: Mapping[str, Any], state: StateFolder) -> ImageWork:
    listen: Listen = options["images_listen"]
    given = {
        "INGOT_RELEASE_PAYLOAD": str(options["payload"] or ""),
        "INGOT_IMAGES_LISTEN": f"{listen.host}:{listen.port}",
        "INGOT_IMAGES_URL": options["images_url"] or "",
    }
    try:
        settings = ImageSettings.from_environment({**os.environ, **given}, state=state.images)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
    settings = replace(settings, look_every=options["payload_seconds"])
    return ImageWork(settings, options["images_certs"], options["namespace"])


def where_images_are(options: Mapping[str, Any], *, served_here: bool) -> str:
    """The URL of the images, as far as it is known before they are served; "" where it is not."""
    listen: Listen = options["images_listen"]
    if options["images_url"]:
        return str(options["images_url"]).rstrip("/")
    if not served_here or not listen.port or _is_everywhere(listen.host):
        return ""
    return f"https://{f'[{listen.host}]' if ':' in listen.host else listen.host}:{listen.port}"


def _is_everywhere(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
