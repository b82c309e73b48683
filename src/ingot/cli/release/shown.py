"""What the verbs of `ingot release` share: errors as sentences, progress, options for registries."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from ingot.cli.release.bars import shown_progress

if TYPE_CHECKING:
    from ingot.images.fetching import Progress
    from ingot.images.release.registry import RegistrySession

output_option: Final = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """How registries are reached, as it was said on the command line."""

    ca: str | None
    authfile: str | None
    plain_http: bool

    def session(self, *places: str) -> RegistrySession:
        """The way to the registries among these places; where all are folders, nobody's credentials are looked at."""
        from ingot.images.release.places import names_registry
        from ingot.images.release.registry import (
            PullSecrets,
            RegistrySession,
            RegistrySettings,
            find_pull_secrets,
        )

        named = Path(self.authfile) if self.authfile else None
        settings = RegistrySettings(
            pull_secrets=find_pull_secrets(os.environ, named)
            if any(names_registry(place) for place in places)
            else PullSecrets(),
            authorities=Path(self.ca) if self.ca else None,
            plain_http=self.plain_http,
        )
        return RegistrySession(settings)


def registry_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options of a command that may talk to registries; it gets them as one value, `registry`."""

    @functools.wraps(command)
    def with_registry(*, ca: str | None, authfile: str | None, plain_http: bool, **others: Any) -> None:
        command(registry=RegistryOptions(ca, authfile, plain_http), **others)

    for option in (
        click.option("--plain-http", is_flag=True, help="Talk to registries without TLS."),
        click.option(
            "--authfile",
            metavar="FILE",
            help="Credentials for registries, as podman, docker and clusters keep them.  [default: theirs]",
        ),
        click.option("--ca", metavar="FILE", help="More certificate authorities (PEM) for registries."),
    ):
        with_registry = option(with_registry)
    return with_registry


def pairs(values: tuple[str, ...], option: str) -> dict[str, str]:
    """`ARCH=VALUE` options as a mapping."""
    found: dict[str, str] = {}
    for value in values:
        architecture, equals, rest = value.partition("=")
        if not equals or not rest:
            raise click.UsageError(f"{option} {value}: give ARCH=VALUE, such as x86_64=…")
        if architecture in found:
            raise click.UsageError(f"{option} is given twice for {architecture}")
        found[architecture] = rest
    return found


@contextlib.contextmanager
def errors_as_sentences() -> Iterator[None]:
    from ingot.formats import FormatError
    from ingot.images.fetching import FetchError
    from ingot.images.release import ReleaseError

    try:
        yield
    except (FormatError, FetchError, ReleaseError) as error:
        raise click.ClickException(str(error)) from error
    except BrokenPipeError:
        raise  # click ends quietly when nobody reads
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise click.ClickException(f"{where}{error.strerror or error}") from error


@contextlib.contextmanager
def told_progress() -> Iterator[Callable[[Progress], None]]:
    """Somebody to tell how far it is, whether anybody watches or not."""
    with shown_progress() as tell:
        yield tell or (lambda _: None)


def print_json(report: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(report)).decode())


def human(size: int) -> str:
    if size < 1 << 20:
        return f"{size / 1024:.0f} KiB"
    return f"{size / (1 << 20):.1f} MiB" if size < 1 << 30 else f"{size / (1 << 30):.2f} GiB"
