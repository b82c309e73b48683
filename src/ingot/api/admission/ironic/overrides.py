"""Rules for the ramdisks and options that a user brings along."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ingot.api.admission.errors import FieldError, duplicate, invalid, required
from ingot.api.admission.urls import url
from ingot.api.ironic import AgentImages, Ironic

_SCHEMES: Final = ("file", "http", "https", "oci")
_FILE: Final = re.compile(r"file:(///|/(?!/))[\x21-\x7e]+", re.IGNORECASE)
_OPTION: Final = re.compile(r"[A-Za-z0-9_.:-]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
# A value may go over several lines.
_CONTROL_IN_VALUE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def agent_images(ironic: Ironic) -> Iterator[FieldError]:
    found = ironic.spec.overrides.agent_images if ironic.spec.overrides else []
    seen: set[str] = set()
    for index, images in enumerate(found):
        path = f"spec.overrides.agentImages[{index}]"
        yield from _sources(path, images)
        if images.architecture in seen:
            yield duplicate(
                f"{path}.architecture",
                images.architecture,
                f"there is a ramdisk for {images.architecture or 'every other architecture'} already.",
            )
        seen.add(images.architecture)


def _sources(path: str, images: AgentImages) -> Iterator[FieldError]:
    for field, written in (("kernel", images.kernel), ("initramfs", images.initramfs)):
        found = written.strip()
        if not found:
            yield required(f"{path}.{field}", "a ramdisk consists of a kernel and an initramfs: give both.")
        elif found.lower().startswith("file:"):
            yield from _file(f"{path}.{field}", found)
        else:
            yield from url(f"{path}.{field}", found, _SCHEMES)


def _file(path: str, found: str) -> Iterator[FieldError]:
    if not _FILE.fullmatch(found):
        yield invalid(path, found, "write a file as file:///PATH, with an absolute path and no host.")


def extra_config(ironic: Ironic) -> Iterator[FieldError]:
    """Each becomes an option in a file, and no more than that."""
    for index, option in enumerate(ironic.spec.extra_config):
        path = f"spec.extraConfig[{index}]"
        for field, found in (("group", option.group), ("name", option.name)):
            if found and not _OPTION.fullmatch(found):
                yield invalid(
                    f"{path}.{field}",
                    found,
                    "letters, digits, '_', '-', '.' and ':' may stand in the name of an option.",
                )
        if _CONTROL_IN_VALUE.search(option.value):
            yield invalid(f"{path}.value", None, "the value holds a control character. Remove it.")


def ramdisk(ironic: Ironic) -> Iterator[FieldError]:
    """Both are handed to the ramdisk as one line; line breaks around them do no harm."""
    found = ironic.spec.deploy_ramdisk
    for field, text in (("extraKernelParams", found.extra_kernel_params), ("sshKey", found.ssh_key)):
        if _CONTROL.search(text.strip()):
            yield invalid(f"spec.deployRamdisk.{field}", text, "this has to be one line.")
