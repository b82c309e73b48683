"""The two names of an architecture: the kernel's (x86_64), which CoreOS uses, and Go's (amd64), which container images use."""

from __future__ import annotations

from typing import Final

from ingot.formats.errors import UnsupportedFormat

_GO_NAMES: Final = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le", "s390x": "s390x"}
_KERNEL_NAMES: Final = {go: kernel for kernel, go in _GO_NAMES.items()}


def go_name(kernel: str) -> str:
    """amd64 for x86_64."""
    return _found(_GO_NAMES, kernel)


def kernel_name(go: str) -> str:
    """x86_64 for amd64."""
    return _found(_KERNEL_NAMES, go)


def _found(names: dict[str, str], name: str) -> str:
    if name not in names:
        raise UnsupportedFormat(f"there is no architecture {name!r} here; known are {', '.join(names)}")
    return names[name]
