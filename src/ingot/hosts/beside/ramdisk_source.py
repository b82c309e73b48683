"""Whether a ramdisk is one of the release's. Pure.

The release serves its ramdisks under one URL, which whoever runs the operator says. Whatever a PreprovisioningImage comes to
name, by whoever may write its status, by a builder that a label of the host called in: what is elsewhere is not booted. That
goes for the image, for its kernel, and for what its kernel is told to fetch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ingot.api.preprovisioningimage import PreprovisioningImageStatus
from ingot.trust import redact

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S*")


def leads_elsewhere(made: PreprovisioningImageStatus, source: str) -> str | None:
    """The first URL of it that is not below `source`, as it may be shown; None where all are, or where no source is known."""
    below = f"{source.rstrip('/')}/"
    return next((redact(url) for url in _urls(made) if not url.startswith(below)), None) if source else None


def _urls(made: PreprovisioningImageStatus) -> Iterator[str]:
    yield from filter(None, (made.image_url, made.kernel_url))
    yield from _URL.findall(made.extra_kernel_params)
