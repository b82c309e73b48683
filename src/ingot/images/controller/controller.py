"""The images of one API, ready to be run: what wakes an object, what runs beside it, and when the server may answer.

After a restart the shelf is empty. What was noted of it before comes back first, whatever it was made with; then every object is
looked at once, and until that is over, the server says "later", not "no", of what is not there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final

from ingot.api.core import SECRETS
from ingot.api.meta import Key, now
from ingot.api.preprovisioningimage import FINALIZER, PREPROVISIONING_IMAGES, PreprovisioningImage
from ingot.images.controller.journal import Journal
from ingot.images.controller.publishing import Publisher
from ingot.images.controller.reconciling import ImageReconciler
from ingot.images.controller.settings import ImageSettings
from ingot.images.controller.stock import StockKeeper
from ingot.images.ramdisk import SettingsError
from ingot.images.server import ImageWorkers, Names, Shelf
from ingot.kube import Again, Client, Controller, Done, EventRecorder, Informer, follow, metadata_of, named_in
from ingot.trust import ServingTls

BY_SECRET: Final = "secret"  # noqa: S105 - the name of an index
NAMES_KEY: Final = "image-names-key"
GIVE_UP: Final = 30.0
"""Seconds after which objects that cannot be looked after are not waited for any more, at the start."""
_EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")  # noqa: S104 - told apart here, not listened on

Job = Callable[[], Coroutine[Any, Any, None]]


def _secrets_of(image: PreprovisioningImage) -> Iterable[str]:
    name = image.spec.network_data_name
    return [str(Key(image.metadata.namespace, name))] if name else []


class ImageController:
    """Made by `serving`: while it lasts, images are served; to build them, run the informers, the controllers and the tasks."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        settings: ImageSettings,
        publisher: Publisher,
        *,
        namespace: str,
        workers: int,
        clock: Callable[[], datetime],
    ) -> None:
        self.images = Informer(
            client, PREPROVISIONING_IMAGES, namespace=namespace, indexes={BY_SECRET: _secrets_of}
        )
        self.secrets = Informer(client, metadata_of(SECRETS), namespace=namespace)
        self._keeper = StockKeeper(settings, publisher, changed=self._wake_all)
        self._reconcile = ImageReconciler(
            client,
            recorder,
            images=self.images,
            secrets=self.secrets,
            keeper=self._keeper,
            publisher=publisher,
            architecture=settings.architecture,
            clock=clock,
        )
        self._publisher = publisher
        self._controller = Controller("images", self._once, workers=workers)
        self._looked_at: set[Key] = set()
        self._failed: set[Key] = set()
        """Objects whose last pass failed."""
        self._missing: set[Key] | None = None
        """Objects that were there at the start and were not looked at yet; None while the start is not over."""
        self._was_ready = False
        self.port = 0
        follow(self._controller, self.images, when=self._is_news)
        follow(self._controller, self.secrets, named_in(self.images, BY_SECRET))

    @property
    def informers(self) -> list[Informer[Any]]:
        return [self.images, self.secrets]

    @property
    def controllers(self) -> list[Controller]:
        return [self._controller]

    @property
    def tasks(self) -> list[Job]:
        return [self._keeper.keep, self._count_those_there]

    @property
    def troubles(self) -> list[str]:
        """Why what is there now is not what images are made of; empty when it is."""
        return [*self._keeper.stock.troubles.values(), *filter(None, [self._publisher.trouble])]

    def ready(self) -> bool:
        """Whether everything that is advertised is there."""
        return self._missing is not None and not self._missing

    async def _count_those_there(self) -> None:
        self._missing = {image.key for image in self.images.items()} - self._looked_at
        while not self._say_when_ready():
            await asyncio.sleep(GIVE_UP)
            # An object that fails again and again must not keep all others from being served.
            self._missing -= self._failed

    def _say_when_ready(self) -> bool:
        if (ready := self.ready()) and not self._was_ready:
            self._was_ready = True
            self._reconcile.forget_strangers()
            self._publisher.complete()
        return ready

    async def _once(self, key: Key) -> Done | Again:
        try:
            result = await self._reconcile(key)
        except Exception:
            self._failed.add(key)
            raise
        self._failed.discard(key)
        if self._missing is None:
            self._looked_at.add(key)
        else:
            self._missing.discard(key)
            self._say_when_ready()
        return result

    def _wake_all(self) -> None:
        for image in self.images.items():
            self._controller.wake(image.key, low=True)

    def _is_news(self, old: PreprovisioningImage, new: PreprovisioningImage) -> bool:
        """Whether a change is more than what we wrote ourselves. Finalizers of others count when they are waited for."""
        before, after = old.metadata, new.metadata
        return (
            before.generation != after.generation
            or FINALIZER not in after.finalizers
            or (after.deletion_timestamp is not None and before.finalizers != after.finalizers)
            or before.deletion_timestamp != after.deletion_timestamp
            or before.labels != after.labels
            or before.uid != after.uid
            or new.status != self._reconcile.told.get(new.key)
        )


@asynccontextmanager
async def serving(
    client: Client,
    recorder: EventRecorder,
    settings: ImageSettings,
    *,
    tls: ServingTls | None,
    namespace: str = "",
    workers: int = 8,
    clock: Callable[[], datetime] = now,
) -> AsyncIterator[ImageController]:
    """Listen, and make the controller whose images are served there. Raises `OSError` where it cannot listen."""
    shelf = Shelf()
    names = await asyncio.to_thread(Names.kept_in, settings.state / NAMES_KEY)
    async with ImageWorkers(shelf, listen=settings.listen, tls=tls) as server:
        url = settings.public_url or _own_url(settings.listen.host, server.port, tls=tls is not None)
        journal = Journal(settings.served, clock=lambda: clock().timestamp())
        publisher = Publisher(shelf, names, url, linger=settings.linger, journal=journal)
        controller = ImageController(
            client, recorder, settings, publisher, namespace=namespace, workers=workers, clock=clock
        )
        controller.port = server.port
        try:
            yield controller
        finally:
            await asyncio.to_thread(journal.close)


def _own_url(host: str, port: int, *, tls: bool) -> str:
    if host in _EVERY_ADDRESS:
        raise SettingsError(
            f"Images are served on every address of this machine (INGOT_IMAGES_LISTEN is {host}:{port}), and BMCs have to be "
            "told one: set INGOT_IMAGES_URL to https://HOST:PORT."
        )
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
