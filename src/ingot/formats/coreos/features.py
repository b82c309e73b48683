"""What a CoreOS live image says it can do, in the image itself and in its initial RAM disk."""

from __future__ import annotations

from typing import Final

import msgspec

from ingot.formats.errors import FormatError, UnsupportedFormat
from ingot.formats.iso9660 import Iso

IN_INITRD: Final = "etc/coreos/features.json"
_IN_ISO: Final = "COREOS/FEATURES.JSO"
_LARGEST: Final = 64 << 10


class _Directives(msgspec.Struct, rename="kebab"):
    console: bool = False


class Features(msgspec.Struct, rename="kebab", frozen=True):
    """An image that says nothing can do none of it."""

    installer_config: bool = False
    """Its installer reads /etc/coreos/installer.d."""
    installer_config_directives: _Directives = msgspec.field(default_factory=_Directives)
    live_initrd_network: bool = False
    """Its initial RAM disk reads NetworkManager keyfiles from etc/coreos-firstboot-network."""

    def check_network(self) -> None:
        if not self.live_initrd_network:
            raise UnsupportedFormat("This OS image does not support customizing network settings.")

    def check_installer(self) -> None:
        if not self.installer_config:
            raise UnsupportedFormat("This OS image does not support customizing installer configuration.")

    def check_console(self) -> None:
        if not self.installer_config_directives.console:
            raise UnsupportedFormat("This OS image does not support customizing the destination console.")


def features_of(iso: Iso) -> Features:
    """The features of a live ISO image."""
    return parse_features(iso.read(_IN_ISO, limit=_LARGEST)) if _IN_ISO in iso else Features()


def parse_features(content: bytes | None) -> Features:
    """Features out of their file; None where an initial RAM disk has no such file."""
    if content is None:
        return Features()
    try:
        return msgspec.json.decode(content, type=Features)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(
            f"features.json of the CoreOS image is not what is expected there: {error}"
        ) from error
