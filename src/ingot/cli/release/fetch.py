"""`ingot release fetch`: the images of a CoreOS stream, downloaded and verified, in the manner of `coreos-installer download`.

What differs: sha256 is always checked, against the stream metadata; signatures are checked when keys are given; the metadata
of RHEL CoreOS and CentOS Stream CoreOS is understood too; a download that was cut goes on.
"""

from __future__ import annotations

import asyncio
import platform as machine
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

import click
import msgspec

from ingot.cli.release.bars import shown_progress
from ingot.cli.release.shown import errors_as_sentences, output_option, print_json

if TYPE_CHECKING:
    from ingot.formats.streams import Stream, StreamArtifact
    from ingot.images.fetching import Fetched, Fetcher, FetchSettings
    from ingot.images.fetching.wanted import Tell

_STREAMS: Final = "https://builds.coreos.fedoraproject.org/streams/"
STREAM: Final = "coreos-stream.json"
"""The metadata that the images of a folder were fetched with."""
_STREAM_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class FileReport(msgspec.Struct, rename="camel", kw_only=True):
    """What `-o json` tells of a file."""

    path: str
    sha256: str
    size: int
    reused: bool
    resumed: int
    signer: str | None
    stream: str
    release: str
    architecture: str
    platform: str
    format: str
    part: str
    location: str


class _Retries(click.ParamType["int | None"]):
    name = "number"

    def convert(
        self, value: str | int | None, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        if value == "infinite" or value is None:
            return None
        if str(value).isdecimal():
            return int(value)
        self.fail(f"{value!r} is neither a number nor 'infinite'", param, ctx)


@click.command()
@click.option("-s", "--stream", metavar="NAME", help="A stream of Fedora CoreOS.  [default: stable]")
@click.option("--stream-base-url", metavar="URL", help="Where the metadata of streams by name is.")
@click.option("--stream-url", metavar="URL", help="Where the stream metadata is.")
@click.option("--stream-file", metavar="FILE", help="The stream metadata itself; - is standard input.")
@click.option(
    "-a",
    "--architecture",
    "architectures",
    metavar="NAME",
    multiple=True,
    help="x86_64, aarch64, ppc64le or s390x; may be repeated.  [default: that of this machine]",
)
@click.option("-p", "--platform", metavar="NAME", default="metal", show_default=True)
@click.option("-f", "--format", metavar="NAME", default="iso", show_default=True, help="iso, pxe, raw.xz, …")
@click.option("-C", "--directory", metavar="DIR", default=".", show_default=True, help="Where the files go.")
@click.option(
    "-d", "--decompress", is_flag=True, help="Unpack raw.xz, raw.gz, …; the packed file is not kept."
)
@click.option(
    "--keys",
    metavar="FILE",
    multiple=True,
    help="Public GPG keys: what they did not sign is refused. May be repeated.",
)
@click.option("--insecure", is_flag=True, help="Take files without a signature although there are keys.")
@click.option("--ca", metavar="FILE", help="More certificate authorities (PEM) to trust.")
@click.option(
    "--fetch-retries",
    type=_Retries(),
    default="5",
    show_default=True,
    help='Failures in a row before it is given up, or "infinite".',
)
@output_option
def fetch(
    stream: str | None,
    stream_base_url: str | None,
    stream_url: str | None,
    stream_file: str | None,
    architectures: tuple[str, ...],
    platform: str,
    format: str,
    directory: str,
    decompress: bool,
    keys: tuple[str, ...],
    insecure: bool,
    ca: str | None,
    fetch_retries: int | None,
    output: str,
) -> None:
    """Fetch the images of a CoreOS stream, verified; what is there already is not fetched again.

    The stream metadata goes to the same folder, as coreos-stream.json: `ingot release build` takes both.

    \b
    ingot release fetch -a x86_64 -a aarch64 -C images
    ingot release fetch --stream-file rhcos.json -f pxe -C images
    ingot release fetch -s testing --keys fedora.gpg -C images
    """
    from ingot.images.fetching import FetchSettings, Patience

    if sum(option is not None for option in (stream or stream_base_url, stream_url, stream_file)) > 1:
        raise click.UsageError("name the stream once: --stream, --stream-url or --stream-file")
    settings = FetchSettings(
        keys=tuple(Path(key) for key in keys),
        allow_unsigned=insecure,
        authorities=Path(ca) if ca else None,
        patience=Patience(retries=fetch_retries),
    )
    url = None if stream_file else stream_url or _url_of(stream or "stable", stream_base_url or _STREAMS)
    reports: list[FileReport] = []
    try:
        with errors_as_sentences():
            asyncio.run(
                _fetch(
                    settings,
                    document=_document(stream_file) if stream_file else None,
                    url=url,
                    architectures=architectures or (machine.machine(),),
                    platform=platform,
                    format=format,
                    folder=Path(directory),
                    decompress=decompress,
                    done=reports.append,
                )
            )
    finally:
        # Those that came before one that did not are there, and good.
        if output == "text":
            for report in reports:
                click.echo(report.path)
    if output == "json":
        print_json(reports)


async def _fetch(
    settings: FetchSettings,
    *,
    document: bytes | None,
    url: str | None,
    architectures: Sequence[str],
    platform: str,
    format: str,
    folder: Path,
    decompress: bool,
    done: Callable[[FileReport], None],
) -> None:
    from ingot.formats.streams import parse_stream
    from ingot.images.fetching import Fetcher, write_whole

    async with Fetcher(settings) as fetcher:
        content = document if document is not None else await _downloaded(fetcher, settings, url or "")
        artifacts = _chosen(parse_stream(content), architectures, platform, format)
        with shown_progress() as tell:
            for artifact in artifacts:
                fetched = await _one(fetcher, artifact, folder, tell, decompress=decompress)
                done(_report(artifact, fetched))
    # A release payload is built of the images with it, and whoever checks them later needs no network.
    await asyncio.to_thread(write_whole, folder / STREAM, content)


async def _one(
    fetcher: Fetcher, artifact: StreamArtifact, folder: Path, tell: Tell | None, *, decompress: bool
) -> Fetched:
    from ingot.images.fetching import Wanted, there, unpack, unpacked_name

    name = unpacked_name(artifact.file_name) if decompress else None
    if name is not None and artifact.uncompressed_sha256 is not None:
        found = await there(folder / name, artifact.uncompressed_sha256)
        if found is not None:
            return found
    fetched = await fetcher.fetch(Wanted.of(artifact), folder, tell)
    if name is None:
        return fetched
    unpacked = await unpack(fetched.path, sha256=artifact.uncompressed_sha256)
    for packed in (fetched.path, fetched.path.with_name(f"{fetched.path.name}.sig")):
        packed.unlink(missing_ok=True)
    return replace(unpacked, signer=fetched.signer, resumed=fetched.resumed)


async def _downloaded(fetcher: Fetcher, settings: FetchSettings, url: str) -> bytes:
    from ingot.formats.streams import LARGEST

    if not url.startswith("https://") and (not settings.keys or settings.allow_unsigned):
        raise click.ClickException(
            f"the stream metadata would come over a connection that nobody verifies ({url.partition(':')[0]}), and the hashes "
            "with it. Use an https URL, a file, or check signatures with --keys"
        )
    return await fetcher.read(url, limit=LARGEST)


def _chosen(stream: Stream, architectures: Sequence[str], platform: str, format: str) -> list[StreamArtifact]:
    artifacts = [
        artifact
        for architecture in dict.fromkeys(architectures)
        for artifact in stream.artifacts(architecture=architecture, platform=platform, format=format)
    ]
    named: dict[str, StreamArtifact] = {}
    for artifact in artifacts:
        other = named.setdefault(artifact.file_name, artifact)
        if other is not artifact:
            raise click.ClickException(
                f"{artifact.file_name} is the name of the {other.part} for {other.architecture} and of the {artifact.part} for "
                f"{artifact.architecture}. Fetch them into folders of their own"
            )
    return artifacts


def _report(artifact: StreamArtifact, fetched: Fetched) -> FileReport:
    return FileReport(
        path=str(fetched.path),
        sha256=fetched.sha256,
        size=fetched.size,
        reused=fetched.reused,
        resumed=fetched.resumed,
        signer=fetched.signer,
        stream=artifact.stream,
        release=artifact.release,
        architecture=artifact.architecture,
        platform=artifact.platform,
        format=artifact.format,
        part=artifact.part,
        location=artifact.location,
    )


def _url_of(stream: str, base: str) -> str:
    if not _STREAM_NAME.fullmatch(stream):
        raise click.UsageError(f"{stream!r} is no name of a stream; stable, testing and next are some")
    return urljoin(base if base.endswith("/") else f"{base}/", f"{stream}.json")


def _document(path: str) -> bytes:
    return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
