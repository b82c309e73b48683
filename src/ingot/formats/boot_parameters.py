"""The kernel's parameters as boot loaders write them: GRUB's and isolinux' configuration, and the command line itself.

Owns finding the parameters of the entry that boots by itself (the first one). Leaves their meaning to the reader.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

from ingot.formats.errors import FormatError

_GRUB_KERNEL: Final = ("linux", "linuxefi", "linux16")
_ISOLINUX_KERNEL: Final = ("append",)


def kernel_parameters(config: str) -> dict[str, str]:
    """The parameters of the first kernel line in a boot loader's configuration; the value of a bare word is ""."""
    for line in config.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word.lower() in _GRUB_KERNEL:
            return parameters(rest.strip().partition(" ")[2])  # the first word is the kernel's path
        if word.lower() in _ISOLINUX_KERNEL:
            return parameters(rest)
    raise FormatError("the boot loader's configuration has no kernel line")


def parameters(command_line: str) -> dict[str, str]:
    """A kernel command line as names and values; of a name given twice the last one counts, as in the kernel."""
    try:
        words = shlex.split(command_line)
    except ValueError as error:
        raise FormatError(f"the kernel command line has a quote that does not end: {error}") from error
    return {
        name: value for name, _, value in (word.partition("=") for word in words) if name not in ("--", "---")
    }


def grub_config(*, kernel: str, initrd: str, values: Mapping[str, str]) -> str:
    """A GRUB configuration with one entry that boots at once."""
    for name, value in values.items():
        if any(character.isspace() or character in "\"'\\${};" for character in name + value):
            raise FormatError(
                f"the kernel parameter {name} has a blank, a quote or another character that GRUB reads"
            )
    line = " ".join(f"{name}={value}" if value else name for name, value in values.items())
    return (
        "set default=0\nset timeout=0\n\n"
        f'menuentry "ramdisk" {{\n    linux {kernel} {line}\n    initrd {initrd}\n}}\n'
    )
