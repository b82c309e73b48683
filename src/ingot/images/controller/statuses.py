"""What the status of a PreprovisioningImage says, worked out from what came of building it.

Pure. Condition types, reasons and the beginnings of their messages are those that Metal3's clients know. Conditions of ours are
added where an image is served that is not the newest, that nobody could verify, that is larger than what was asked for, or that
fetches its root file system without the host's network configuration: it can be booted, and somebody should know.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from ingot.api.meta import Condition, ConditionStatus
from ingot.api.preprovisioningimage import (
    ConditionReason,
    ConditionType,
    ImageFormat,
    NetworkDataStatus,
    PreprovisioningImageStatus,
)

UP_TO_DATE: Final = "UpToDate"
"""False: what is served is older than what is there, which cannot be used. Absent otherwise."""
STALE: Final = "NewerImageUnusable"
EARLY_NETWORK: Final = "EarlyNetwork"
"""False: the host's network configuration holds only once the root file system was fetched. Absent otherwise."""
LATE: Final = "NoNetworkInInitialRamDisk"
VERIFIED: Final = "Verified"
"""False: nothing says what the hash of the published image is, so nobody can tell whether it is that. Absent otherwise."""
UNVERIFIED: Final = "NoHashToCompareWith"
MINIMAL: Final = "MinimalImage"
"""False: ISO images without their root file system were asked for, and this one has it. Absent otherwise."""
NO_RECIPE: Final = "NoRecipe"
FIRST_DELAY: Final = timedelta(seconds=10)
LONGEST_DELAY: Final = timedelta(minutes=10)
LONGEST_MESSAGE: Final = 4096


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that should be known of an image that can be booted: a condition that is False."""

    kind: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """There is an image, and it is served."""

    format: ImageFormat
    architecture: str
    network: NetworkDataStatus
    image_url: str
    version: str
    kernel_url: str = ""
    kernel_params: str = ""
    trouble: str = ""
    """Why a newer one is not used."""
    network_is_late: bool = False
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """There is none, and why."""

    reason: ConditionReason
    message: str
    format: ImageFormat | None = None


Outcome = Built | Refused
_Told = tuple[ConditionStatus, str, str]
"""Of a condition: status, reason, message."""


def status_of(
    before: PreprovisioningImageStatus, outcome: Outcome, *, generation: int, at: datetime
) -> PreprovisioningImageStatus:
    """The status that tells the outcome, in place of the one before; what has not changed keeps its times."""
    told: dict[str, _Told]
    match outcome:
        case Built():
            told = {
                ConditionType.READY: ("True", ConditionReason.SUCCESS, "Generated image"),
                ConditionType.ERROR: ("False", ConditionReason.SUCCESS, ""),
            }
            if outcome.trouble:
                told[UP_TO_DATE] = ("False", STALE, outcome.trouble)
            if outcome.network_is_late:
                told[EARLY_NETWORK] = ("False", LATE, _late(outcome))
            for remark in outcome.remarks:
                told[remark.kind] = ("False", remark.reason, remark.message)
            made = PreprovisioningImageStatus(
                architecture=outcome.architecture,
                format=outcome.format,
                image_url=outcome.image_url,
                kernel_url=outcome.kernel_url,
                extra_kernel_params=outcome.kernel_params,
                network_data=outcome.network,
                version=outcome.version,
            )
        case Refused():
            told = {
                ConditionType.READY: ("False", outcome.reason, outcome.message),
                ConditionType.ERROR: ("True", outcome.reason, outcome.message),
            }
            made = replace(
                before,
                format=outcome.format or before.format,
                image_url="",
                kernel_url="",
                extra_kernel_params="",
                version="",
            )
    return replace(made, conditions=_conditions(before.conditions, told, generation=generation, at=at))


def _late(built: Built) -> str:
    return (
        f"The initial RAM disk of {built.version} takes no network configuration: its root file system is fetched with an "
        f"address from DHCP, and what Secret {built.network.name} says holds only after that. Without DHCP, use a newer "
        "CoreOS, or virtual media with the whole ISO image."
    )


def _conditions(
    before: list[Condition],
    told: dict[str, _Told],
    *,
    generation: int,
    at: datetime,
) -> list[Condition]:
    had = {condition.type: condition for condition in before}
    made = []
    for kind, (status, reason, message) in told.items():
        same = had.get(kind)
        turned = same is None or same.status != status
        made.append(
            Condition(
                type=str(kind),
                status=status,
                reason=str(reason),
                message=message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 1]}…",
                last_transition_time=at if same is None or turned else same.last_transition_time,
                observed_generation=generation,
            )
        )
    ours = {ConditionType.READY, ConditionType.ERROR, UP_TO_DATE, EARLY_NETWORK, VERIFIED, MINIMAL}
    return made + [condition for condition in before if condition.type not in ours]


def condition_of(status: PreprovisioningImageStatus, kind: str) -> Condition | None:
    return next((found for found in status.conditions if found.type == kind), None)


def next_look(status: PreprovisioningImageStatus, at: datetime) -> float:
    """Seconds until a missing Secret is looked for again; the longer it has been missing, the more. A watch comes first."""
    error = condition_of(status, ConditionType.ERROR)
    since = at - error.last_transition_time if error is not None else timedelta(0)
    return min(max(since, timedelta(0)) + FIRST_DELAY, LONGEST_DELAY).total_seconds()
