"""What decides how images are made and served: one value, from the environment and the state folder."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit

from ingot.api.inputs import urls
from ingot.images.ramdisk import AgentSettings, SettingsError, checks

PORT: Final = 8084
_LOOK_EVERY: Final = 10.0
_VERIFY_EVERY: Final = 6 * 3600.0
_RETRY_EVERY: Final = 300.0
_LINGER: Final = 24 * 3600.0


class Listen(NamedTuple):
    host: str
    port: int


USUAL_LISTEN: Final = Listen("127.0.0.1", PORT)
OUR_ARCHITECTURE: Final = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSettings:
    """Images come out of a release payload, or out of ISO files; one of the two is given."""

    state: Path
    """A folder of ours alone, which lasts: the key of image names, notes of what is served, what was made of published images."""
    agent: Callable[[], AgentSettings]
    """Reads what every ramdisk is told. Asked again now and then, because the files behind it may change."""
    listen: Listen = USUAL_LISTEN
    public_url: str = ""
    """As BMCs, servers and Ironic reach the listener: https://HOST:PORT. Empty: the address it listens on."""
    payload: Path | None = None
    iso: Path | None = None
    shared_folder: Path | None = None
    """Where `iso` is looked for under names for other architectures; empty: in its own folder."""
    architecture: str = OUR_ARCHITECTURE
    """Of the `iso` that is named without one, and of images that are asked for without one."""
    minimal_iso: bool = False
    """Serve ISO images without their root file system, which the server then fetches itself: for slow BMCs."""
    look_every: float = _LOOK_EVERY
    """Seconds between looks at the payload."""
    verify_every: float = _VERIFY_EVERY
    """Seconds after which all of it is read again."""
    retry_every: float = _RETRY_EVERY
    """Seconds after which something that was refused is tried again although it looks the same."""
    linger: float = _LINGER
    """Seconds for which an image that is no longer advertised is still served: a server may run from it."""

    def __post_init__(self) -> None:
        if (self.payload is None) == (self.iso is None):
            raise SettingsError(
                "Set one of INGOT_RELEASE_PAYLOAD, the folder with a release payload, and DEPLOY_ISO, a live ISO image of "
                "CoreOS: ramdisks are made of it."
            )
        if self.public_url:
            _check_public_url(self.public_url)

    @property
    def made(self) -> Path:
        """The folder with what is made of published images, and can be made again."""
        return self.state / "made"

    @property
    def served(self) -> Path:
        """The folder with notes of what is served, in which there are secrets."""
        return self.state / "served"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], *, state: Path) -> Self:
        """Raises `SettingsError` for the first thing that is wrong, also in what ramdisks are told."""

        def given(variable: str) -> str:
            return environment.get(variable, "").strip()

        def folder(variable: str) -> Path | None:
            return Path(given(variable)) if given(variable) else None

        known = dict(environment)
        AgentSettings.from_environment(known)
        iso = folder("DEPLOY_ISO") if not given("INGOT_RELEASE_PAYLOAD") else None
        minimal = given("INGOT_MINIMAL_ISO")
        return cls(
            state=state,
            agent=lambda: AgentSettings.from_environment(known),
            listen=_listen(given("INGOT_IMAGES_LISTEN")),
            public_url=given("INGOT_IMAGES_URL").rstrip("/"),
            payload=folder("INGOT_RELEASE_PAYLOAD"),
            iso=iso,
            shared_folder=folder("IMAGE_SHARED_DIR"),
            minimal_iso=checks.switch("INGOT_MINIMAL_ISO", minimal) if minimal else False,
        )


def _listen(text: str) -> Listen:
    if not text:
        return USUAL_LISTEN
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise SettingsError(f"INGOT_IMAGES_LISTEN is {text!r}; expected ADDRESS:PORT.")
    return Listen(host.strip("[]"), int(port))


def _check_public_url(url: str) -> None:
    problem = urls.problem_with(url, urls.WEB_SCHEMES)
    if problem is not None:
        raise SettingsError(f"INGOT_IMAGES_URL is {url!r}: {problem.sentence}")
    parts = urlsplit(url)
    # It becomes a part of the kernel's arguments, for the root file system.
    if urls.has_credentials(url) or parts.query or parts.fragment or set("$\"'`;&|<>\\#{}") & set(url):
        raise SettingsError(
            f"INGOT_IMAGES_URL is {urls.without_password(url)!r}; expected https://HOST:PORT, without a password or a query."
        )
