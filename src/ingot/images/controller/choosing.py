"""Which image a PreprovisioningImage asks for, of those that can be made. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ingot.api.preprovisioningimage import ConditionReason, ImageFormat, PreprovisioningImageSpec
from ingot.images.controller.statuses import MINIMAL, Refused, Remark
from ingot.images.controller.stock import Stock
from ingot.images.ramdisk import RamdiskMaker


@dataclass(frozen=True, slots=True)
class Choice:
    format: ImageFormat
    maker: RamdiskMaker
    trouble: str
    """Why what is there for this architecture is not the newest; "" when it is."""
    remarks: tuple[Remark, ...] = ()


def choose(spec: PreprovisioningImageSpec, stock: Stock, *, ours: str) -> Choice | Refused:
    """`ours` is the architecture of a spec that names none."""
    architecture = spec.architecture or ours
    maker = stock.makers.get(architecture)
    if maker is None:
        return _not_to_be_had(architecture, stock.makers, stock.trouble_with(architecture))
    if not spec.accept_formats:
        return Refused(
            reason=ConditionReason.CONFIGURATION_ERROR,
            message="No acceptable image format supported: spec.acceptFormats is empty; iso and initrd are built.",
        )
    # Both are made of every base, so the first one that is accepted will do.
    form = spec.accept_formats[0]
    remarks = stock.remarks.get(architecture, ())
    # Whoever boots kernel and initial RAM disk reads no ISO image.
    told = tuple(remark for remark in remarks if form == "iso" or remark.kind != MINIMAL)
    return Choice(form, maker, stock.trouble_with(architecture), told)


def _not_to_be_had(architecture: str, there: Mapping[str, RamdiskMaker], trouble: str) -> Refused:
    if trouble:
        return Refused(reason=ConditionReason.BUILD_INVALID, message=f"Cannot generate image: {trouble}")
    return Refused(
        reason=ConditionReason.CONFIGURATION_ERROR,
        message=f"Architecture not supported: {architecture}; there are images for {', '.join(there) or 'none'}.",
    )
