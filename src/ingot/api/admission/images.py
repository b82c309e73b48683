"""Rules for the image that is to be installed."""

from __future__ import annotations

from collections.abc import Iterator

from ingot.api.admission.errors import FieldError, forbidden, invalid, required
from ingot.api.admission.urls import url
from ingot.api.baremetalhost import INSTALL_COREOS, BareMetalHost, CustomDeploy, Image
from ingot.api.hostclaim import HostClaim
from ingot.api.inputs import checksums
from ingot.api.inputs.urls import DOWNLOAD_SCHEMES, PRINTABLE, WEB_SCHEMES


def image(host: BareMetalHost | HostClaim) -> Iterator[FieldError]:
    found = host.spec.image
    if found is None:
        return
    if found.format == "coreos":
        yield from _coreos(host.spec.custom_deploy, found)
    if not found.url:
        if found.format == "coreos":
            return
        yield required("spec.image.url", "say where the image is, or remove spec.image to install nothing.")
        return
    yield from url("spec.image.url", found.url, DOWNLOAD_SCHEMES)
    yield from _checksum(found)


def _coreos(custom_deploy: CustomDeploy | None, found: Image) -> Iterator[FieldError]:
    """CoreOS comes with the ramdisk, and one deploy step installs it."""
    if found.checksum and not found.url:
        yield forbidden(
            "spec.image.checksum",
            found.checksum,
            "CoreOS comes with the ramdisk, which is verified already. Remove the checksum, or say which image it is of.",
        )
    method = custom_deploy.method if custom_deploy else ""
    if method not in ("", INSTALL_COREOS):
        yield invalid(
            "spec.customDeploy.method",
            method,
            f"spec.image.format is coreos, which {INSTALL_COREOS} installs. Remove one of the two.",
        )


def _checksum(found: Image) -> Iterator[FieldError]:
    path = "spec.image.checksum"
    from_registry = _scheme_of(found.url) == "oci"
    if from_registry:
        if found.checksum:
            yield forbidden(
                path,
                found.checksum,
                "an image from an OCI registry is verified by its digest. Remove the checksum.",
            )
    elif not found.checksum:
        if found.format != "live-iso":
            yield required(
                path,
                "an image that is written to disk needs a checksum, or the URL of a file that holds it. "
                "Without one nobody can tell whether what arrives is what was meant.",
            )
    elif checksums.is_url(found.checksum):
        yield from url(path, found.checksum, WEB_SCHEMES)
    elif not PRINTABLE.fullmatch(found.checksum):
        yield invalid(path, found.checksum, "a checksum is written in hexadecimal digits, without spaces.")


def _scheme_of(url: str) -> str:
    """The scheme of a URL that may be malformed."""
    return url.partition(":")[0].lower()
