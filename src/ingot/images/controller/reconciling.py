"""A pass over one PreprovisioningImage: from what it asks for to an image that is served, and a status that says so.

The order is what this module is about. An image is served before its URL is written, and goes only after a status without that
URL was written; so whoever reads the status can have what it names. A status that is right is not written again. While an
object is being deleted and somebody else still holds it, its image is served as it was, and nothing is written while that can be.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
from collections.abc import Callable
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from ingot.api.core import SECRETS, SecretObject
from ingot.api.meta import Key, Malformed, PartialObjectMetadata
from ingot.api.preprovisioningimage import (
    FINALIZER,
    PREPROVISIONING_IMAGES,
    ConditionReason,
    ConditionType,
    NetworkDataStatus,
    PreprovisioningImage,
    PreprovisioningImageStatus,
)
from ingot.api.wire import status_patch
from ingot.formats import FormatError
from ingot.formats.network import keyfiles_of_secret
from ingot.images.controller.choosing import Choice, choose
from ingot.images.controller.publishing import Publisher
from ingot.images.controller.statuses import (
    EARLY_NETWORK,
    UP_TO_DATE,
    Built,
    Outcome,
    Refused,
    condition_of,
    next_look,
    status_of,
)
from ingot.images.controller.stock import StockKeeper
from ingot.images.ramdisk import CannotBuild, HostImage
from ingot.kube import Again, Client, Done, EventRecorder, Informer, NotFound

FOREIGN: Final = "infraenvs.agent-install.openshift.io"
"""A label of images that another installer looks after."""
_IMAGE: Final = "image "
"""Begins the name of an owner that is a host's."""
_FILES: Final = {"iso": "coreos.iso", "initrd": "initrd.img"}


class ImageReconciler:
    """`told` is what was last written of each object, so that our own writes wake nobody."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        *,
        images: Informer[PreprovisioningImage],
        secrets: Informer[PartialObjectMetadata],
        keeper: StockKeeper,
        publisher: Publisher,
        architecture: str,
        clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._images = images
        self._secrets = secrets
        self._keeper = keeper
        self._publisher = publisher
        self._architecture = architecture
        self._clock = clock
        self._owners: dict[Key, str] = {}
        self._version_is_dropped = False
        """An API with the published schema has no such field: whoever writes it in vain should stop."""
        self.told: Final[dict[Key, PreprovisioningImageStatus]] = {}

    async def __call__(self, key: Key) -> Done | Again:
        image = self._images.get(key)
        if image is None or FOREIGN in image.metadata.labels:
            self._forget(key)
            return Done()
        if self._owners.setdefault(key, _owner(image)) != _owner(image):
            self._forget(key)
            self._owners[key] = _owner(image)
        if image.metadata.deletion_timestamp is not None:
            await self._leave(image)
            return Done()
        if FINALIZER not in image.metadata.finalizers:
            image = await self._claim(image)
        outcome = await self._outcome(image)
        status = await self._tell(image, outcome)
        if isinstance(outcome, Refused) and outcome.reason is ConditionReason.MISSING_NETWORK_DATA:
            return Again(next_look(status, self._clock()), outcome.message)
        return Done()

    # Coming and going

    async def _claim(self, image: PreprovisioningImage) -> PreprovisioningImage:
        return await self._set_finalizers(image, [*image.metadata.finalizers, FINALIZER])

    async def _leave(self, image: PreprovisioningImage) -> None:
        held = image.metadata.finalizers
        if any(finalizer != FINALIZER for finalizer in held):
            # Its host may still boot it. Where what it lay in was lost with a restart of ours, and it cannot be made anew either,
            # the host must not be sent to where nothing is.
            outcome = await self._outcome(image)
            advertised = image.status.image_url
            if advertised and not self._publisher.serves(_owner(image), advertised):
                await self._tell(image, outcome)
            return
        self._forget(image.key)
        if held:
            with contextlib.suppress(NotFound):
                await self._set_finalizers(image, [])

    async def _set_finalizers(
        self, image: PreprovisioningImage, finalizers: list[str]
    ) -> PreprovisioningImage:
        written = await self._client.patch(
            PREPROVISIONING_IMAGES,
            image.key,
            {"metadata": {"finalizers": finalizers}},
            resource_version=image.metadata.resource_version,
        )
        self._images.observe(written)
        return written

    def _forget(self, key: Key) -> None:
        if (owner := self._owners.pop(key, None)) is not None:
            self._publisher.forget(owner)
        self.told.pop(key, None)

    def forget_strangers(self) -> None:
        """What was served for objects that are not there any more goes. For when every object was looked at."""
        ours = {_owner(image) for image in self._images.items() if FOREIGN not in image.metadata.labels}
        for owner in self._publisher.owners:
            if owner.startswith(_IMAGE) and owner not in ours:
                self._publisher.forget(owner)

    # Building

    async def _outcome(self, image: PreprovisioningImage) -> Outcome:
        """Build what is asked for, and serve it; or why that cannot be."""
        stock = await self._keeper.known()
        chosen = choose(image.spec, stock, ours=self._architecture)
        if isinstance(chosen, Refused):
            return chosen
        secret: SecretObject | None = None
        if name := image.spec.network_data_name:
            secret = await self._read_secret(Key(image.metadata.namespace, name))
            if secret is None:
                return Refused(
                    reason=ConditionReason.MISSING_NETWORK_DATA,
                    message=f"NetworkData secret not found: there is no Secret {name} in namespace "
                    f"{image.metadata.namespace}. Create it; the image is built as soon as it is there.",
                    format=chosen.format,
                )
        try:
            return await self._build(image, chosen, secret)
        except (CannotBuild, FormatError, Malformed) as error:
            return Refused(
                reason=ConditionReason.BUILD_INVALID,
                message=f"Cannot generate image: {error}",
                format=chosen.format,
            )

    async def _read_secret(self, key: Key) -> SecretObject | None:
        if self._secrets.get(key) is None:
            return None
        try:
            return await self._client.get(SECRETS, key)
        except NotFound:
            return None

    async def _build(self, image: PreprovisioningImage, chosen: Choice, secret: SecretObject | None) -> Built:
        made = await asyncio.to_thread(_made, image, chosen, secret)
        base = chosen.maker.base
        version = secret.metadata.resource_version if secret is not None else ""
        return Built(
            format=chosen.format,
            architecture=image.spec.architecture,
            network=NetworkDataStatus(name=image.spec.network_data_name, version=version),
            image_url=self._publisher.publish(_owner(image), made.image, _FILES[chosen.format]),
            kernel_url=self._keeper.kernel_url(chosen.maker) if chosen.format == "initrd" else "",
            kernel_params=made.kernel_params,
            version=base.version,
            trouble=chosen.trouble,
            network_is_late=made.network_is_late,
            remarks=chosen.remarks,
        )

    # Telling

    async def _tell(self, image: PreprovisioningImage, outcome: Outcome) -> PreprovisioningImageStatus:
        before = image.status
        after = status_of(before, outcome, generation=image.metadata.generation, at=self._clock())
        if self._version_is_dropped:
            after = replace(after, version="")
        patch = status_patch(before, after)
        self.told[image.key] = after
        if patch is not None:
            await self._publisher.served()
            written = await self._client.patch(
                PREPROVISIONING_IMAGES,
                image.key,
                patch,
                subresource="status",
                resource_version=image.metadata.resource_version,
            )
            self._version_is_dropped |= bool(after.version) and not written.status.version
            self.told[image.key] = after = written.status
            self._images.observe(written)
            self._record(image, before, after)
        # Only now: until it was written, the URL of before was advertised.
        now = asyncio.get_running_loop().time()
        self._publisher.settle(_owner(image), after.image_url, now=now)
        return after

    def _record(
        self,
        image: PreprovisioningImage,
        before: PreprovisioningImageStatus,
        after: PreprovisioningImageStatus,
    ) -> None:
        """An Event for what went wrong, when it is new."""
        for kind, bad in ((ConditionType.ERROR, "True"), (UP_TO_DATE, "False"), (EARLY_NETWORK, "False")):
            old, new = condition_of(before, kind), condition_of(after, kind)
            if new is None or new.status != bad:
                continue
            if old is None or (old.status, old.message) != (new.status, new.message):
                self._recorder.record(image, type="Warning", reason=new.reason, message=new.message)


def _owner(image: PreprovisioningImage) -> str:
    """Another object of the same name is somebody else."""
    return f"{_IMAGE}{image.key} {image.metadata.uid}"


def _made(image: PreprovisioningImage, chosen: Choice, secret: SecretObject | None) -> HostImage:
    """Runs in a thread: what users wrote can be long."""
    keyfiles = keyfiles_of_secret(_values(secret)) if secret is not None else {}
    return chosen.maker.make(chosen.format, hostname=image.metadata.name, keyfiles=keyfiles)


def _values(secret: SecretObject) -> dict[str, bytes]:
    try:
        return {name: base64.b64decode(value, validate=True) for name, value in secret.data.items()}
    except binascii.Error:
        raise Malformed(f"Secret {secret.key} has a value that is not base64") from None
