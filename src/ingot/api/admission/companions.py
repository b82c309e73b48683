"""The rules for what belongs to a host: its ramdisk image, its firmware, its data image, who hears of its events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from ingot.api.admission import references
from ingot.api.admission.errors import FieldError, forbidden, invalid, not_supported, required
from ingot.api.admission.others import Others
from ingot.api.admission.rules import Document, Rules
from ingot.api.admission.urls import url
from ingot.api.bmceventsubscription import BMCEventSubscription
from ingot.api.dataimage import DataImage
from ingot.api.firmwareschema import FIRMWARE_SCHEMAS, FirmwareSchema
from ingot.api.hostfirmwarecomponents import COMPONENTS, NIC_PREFIX, HostFirmwareComponents
from ingot.api.hostfirmwaresettings import HostFirmwareSettings, is_secret, problems_with_settings
from ingot.api.inputs.urls import DOWNLOAD_SCHEMES, WEB_SCHEMES, without_password
from ingot.api.meta import Key
from ingot.api.preprovisioningimage import PreprovisioningImage


def network_data(image: PreprovisioningImage) -> Iterator[FieldError]:
    yield from references.possible_names({"spec.networkDataName": image.spec.network_data_name})


def firmware_updates(components: HostFirmwareComponents) -> Iterator[FieldError]:
    for index, update in enumerate(components.spec.updates):
        path = f"spec.updates[{index}]"
        name = update.component
        if name not in COMPONENTS and not (name.startswith(NIC_PREFIX) and name != NIC_PREFIX):
            yield not_supported(
                f"{path}.component",
                name,
                f"firmware can be updated of: {', '.join(COMPONENTS)}, and {NIC_PREFIX}NAME for a network adapter.",
            )
        yield from url(f"{path}.url", update.url, DOWNLOAD_SCHEMES)


def _settings(document: Document) -> HostFirmwareSettings:
    """The settings that are present stay undecoded in the struct, so they have to be bytes first."""
    status = dict(document.get("status") or {})
    present = msgspec.convert(status.pop("settings", None) or {}, dict[str, str])
    found = msgspec.convert({**document, "status": status}, HostFirmwareSettings)
    try:
        raw = msgspec.Raw(msgspec.json.encode(present))
    except UnicodeEncodeError as error:
        raise msgspec.ValidationError(f"status.settings holds what is no text ({error.reason})") from None
    return replace(found, status=replace(found.status, settings=raw))


def firmware_settings(
    settings: HostFirmwareSettings, _: HostFirmwareSettings | None, others: Others
) -> Iterator[FieldError]:
    """Each has to be one that this firmware has, as far as anybody knows the firmware yet."""
    reference, present = settings.status.schema, settings.present()
    if reference is None or not present:
        return
    known = others.get(
        FIRMWARE_SCHEMAS, Key(reference.namespace or settings.metadata.namespace, reference.name)
    )
    if known is None:
        return
    try:
        schema = msgspec.convert(known, FirmwareSchema).spec.schema
    except msgspec.ValidationError:
        # It is not to blame on the settings that nobody can read the schema.
        return
    for name, value in settings.spec.settings.items():
        for problem in problems_with_settings({name: value}, present=present, schema=schema):
            is_password = is_secret(name) or (name in schema and schema[name].attribute_type == "Password")
            path = f"spec.settings[{name}]"
            # A password is not repeated, however it got here.
            yield forbidden(path, None, problem) if is_password else invalid(path, value, problem)


def data_image_url(image: DataImage) -> Iterator[FieldError]:
    yield from url("spec.url", image.spec.url, DOWNLOAD_SCHEMES)


def destination(subscription: BMCEventSubscription) -> Iterator[FieldError]:
    found = subscription.spec.destination
    if not found:
        yield required("spec.destination", "say where events are to be posted: https://HOST/PATH.")
        return
    problems = [*url("spec.destination", found, WEB_SCHEMES)]
    yield from problems
    if not problems and not urlsplit(found).path:
        yield invalid(
            "spec.destination",
            without_password(found),
            "management controllers refuse a URL without a path. Put at least a slash behind the host.",
        )


def subscribed_host(subscription: BMCEventSubscription) -> Iterator[FieldError]:
    if not subscription.spec.host_name:
        yield required("spec.hostName", "say whose events are wanted: the name of a BareMetalHost.")
    yield from references.possible_names({"spec.hostName": subscription.spec.host_name}, kind="BareMetalHost")


def headers(subscription: BMCEventSubscription) -> Iterator[FieldError]:
    reference = subscription.spec.http_headers_ref
    if reference is not None:
        yield from references.own_namespace(subscription, "spec.httpHeadersRef", reference)
        yield from references.possible_names({"spec.httpHeadersRef.name": reference.name})


def subscription_stays(new: BMCEventSubscription, old: BMCEventSubscription) -> Iterator[FieldError]:
    if new.spec != old.spec:
        yield forbidden(
            "spec",
            None,
            "a subscription cannot be changed: the management controller has it already. Delete it and create another.",
        )


PREPROVISIONING_IMAGE: Final = Rules(PreprovisioningImage, (network_data,))
HOST_FIRMWARE_SETTINGS: Final = Rules(HostFirmwareSettings, (), among=(firmware_settings,), decode=_settings)
HOST_FIRMWARE_COMPONENTS: Final = Rules(HostFirmwareComponents, (firmware_updates,))
DATA_IMAGE: Final = Rules(DataImage, (data_image_url,))
BMC_EVENT_SUBSCRIPTION: Final = Rules(
    BMCEventSubscription, (destination, subscribed_host, headers), (subscription_stays,)
)
