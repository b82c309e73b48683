"""`ingot release show` and `verify`: what a payload is, and whether it is what it says."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from ingot.cli.release.shown import (
    RegistryOptions,
    errors_as_sentences,
    human,
    output_option,
    print_json,
    registry_options,
    told_progress,
)

if TYPE_CHECKING:
    from ingot.formats.oci import Descriptor
    from ingot.images.fetching import Progress
    from ingot.images.release import Payload
    from ingot.images.release.places import RegistryPlace


class ImageReport(msgspec.Struct, rename="camel", kw_only=True):
    architecture: str
    version: str
    sha256: str
    size: int
    """Of the ISO image in a folder; of all layers in a registry."""


class PayloadReport(msgspec.Struct, rename="camel", kw_only=True):
    """What `-o json` tells."""

    where: str
    digest: str
    images: list[ImageReport]
    verified: bool


@click.command()
@registry_options
@output_option
@click.argument("payload", metavar="PAYLOAD")
def show(payload: str, registry: RegistryOptions, output: str) -> None:
    """What a payload holds: PAYLOAD is a folder or an image in a registry. Only a little of it is read.

    \b
    ingot release show payload
    ingot release show registry.example:5000/coreos/payload:44
    """
    with errors_as_sentences():
        _print(asyncio.run(_shown(payload, registry)), output)


@click.command()
@registry_options
@output_option
@click.argument("payload", metavar="PAYLOAD")
def verify(payload: str, registry: RegistryOptions, output: str) -> None:
    """Read all of a payload and compare its hashes: a folder, a folder it was unpacked to, or an image in a registry.

    \b
    ingot release verify payload
    ingot release verify /shared/html/images
    """
    with errors_as_sentences(), told_progress() as tell:
        report = asyncio.run(_verified(payload, registry, tell))
    _print(report, output)


async def _shown(payload: str, registry: RegistryOptions) -> PayloadReport:
    from ingot.images.release import Payload
    from ingot.images.release.places import FolderPlace, place_of

    async with registry.session(payload) as session:
        place = place_of(payload, session)
        if isinstance(place, FolderPlace):
            return _in_folder(Payload.open(place.layout.folder))
        return await _in_registry(place, await place.root())


async def _verified(
    payload: str, registry: RegistryOptions, tell: Callable[[Progress], None]
) -> PayloadReport:
    from ingot.images.release.places import FolderPlace, place_of
    from ingot.images.release.unpacking import CURRENT

    async with registry.session(payload) as session:
        place = place_of(payload, session)
        if not isinstance(place, FolderPlace):
            root = await place.root()  # once: a tag may get another meaning while a gigabyte is read
            await _read_all(place, root, tell)
            report = await _in_registry(place, root)
        elif (place.layout.folder / CURRENT).is_symlink():
            report = _unpacked(place.layout.folder, tell)
        else:
            report = _verified_folder(place.layout.folder, tell)
    report.verified = True
    return report


def _in_folder(payload: Payload) -> PayloadReport:
    images = [
        ImageReport(
            architecture=image.architecture, version=image.version, sha256=image.sha256, size=image.iso.length
        )
        for image in payload.images.values()
    ]
    return PayloadReport(where=str(payload.folder), digest=payload.digest, images=images, verified=False)


def _verified_folder(folder: Path, tell: Callable[[Progress], None]) -> PayloadReport:
    from ingot.images.fetching import Progress
    from ingot.images.release import Payload

    payload = Payload.open(folder)
    for architecture, image in payload.images.items():
        done = 0

        def more(size: int, name: str = architecture, total: int = image.iso.length) -> None:
            nonlocal done
            done += size
            tell(Progress(name=name, done=done, total=max(total, done)))

        payload.verify(architecture, more)
    return _in_folder(payload)


def _unpacked(folder: Path, tell: Callable[[Progress], None]) -> PayloadReport:
    from ingot.images.release.unpacking import check_unpacked

    stamp = check_unpacked(folder, tell)
    images = [
        ImageReport(
            architecture=architecture,
            version=stamp.versions.get(architecture, ""),
            sha256=sha256,
            size=sum(file.size for name, file in stamp.files.items() if f"-{architecture}" in name),
        )
        for architecture, sha256 in stamp.isos.items()
    ]
    return PayloadReport(where=str(folder), digest=f"sha256:{stamp.key}", images=images, verified=False)


async def _in_registry(place: RegistryPlace, root: Descriptor) -> PayloadReport:
    from ingot.formats.oci import Manifest, decode_config, decode_document
    from ingot.images.release.mirroring import walk
    from ingot.images.release.payload import SHA256_LABEL

    images = []
    async for descriptor, content in walk(place, root):
        match decode_document(content, descriptor.media_type):
            case Manifest(config=config, layers=layers):
                found = decode_config(await place.document(config))
                labels = (found.config and found.config.labels) or {}
                if SHA256_LABEL in labels:
                    images.append(
                        ImageReport(
                            architecture=labels.get("ingot.coreos.architecture", found.architecture),
                            version=labels.get("org.opencontainers.image.version", ""),
                            sha256=labels[SHA256_LABEL],
                            size=sum(layer.size for layer in layers),
                        )
                    )
    if not images:
        raise click.ClickException(
            f"{place} is no release payload: none of its images says which ISO image it has"
        )
    return PayloadReport(where=str(place), digest=root.digest, images=images, verified=False)


async def _read_all(place: RegistryPlace, root: Descriptor, tell: Callable[[Progress], None]) -> None:
    from ingot.images.fetching import Progress
    from ingot.images.release import PayloadDamaged
    from ingot.images.release.mirroring import blobs_of, walk

    blobs = {
        blob.digest: blob
        async for descriptor, content in walk(place, root)
        for blob in blobs_of(descriptor, content)
    }
    for blob in blobs.values():
        hasher, done = hashlib.sha256(), 0
        async with aclosing(place.blob(blob)) as chunks:
            async for chunk in chunks:
                await asyncio.to_thread(hasher.update, chunk)
                done += len(chunk)
                tell(Progress(name=blob.digest[7:19], done=done, total=blob.size))
        if f"sha256:{hasher.hexdigest()}" != blob.digest:
            raise PayloadDamaged(f"{place} hands out other bytes for {blob.digest}")


def _print(report: PayloadReport, output: str) -> None:
    if output == "json":
        print_json(report)
        return
    click.echo(f"{report.where}: {report.digest}" + (", verified" if report.verified else ""))
    for image in report.images:
        line = f"  {image.architecture:<8} {image.version:<34} {human(image.size):>10}  {image.sha256}"
        # A registry says what it likes in its labels.
        click.echo("".join(letter if letter.isprintable() else "?" for letter in line))
