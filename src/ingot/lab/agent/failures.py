"""The agent's names for what goes wrong, as ironic-python-agent has them: a class, a summary and an HTTP status each."""

from __future__ import annotations

from ingot.lab.errors import StepFailed


class AgentDied(Exception):
    """The agent ended in the middle of something; nobody is left to say so."""


def command_failed(details: str) -> StepFailed:
    return StepFailed(details, kind="CommandExecutionError", summary="Command execution failed")


def bad_parameters(details: str) -> StepFailed:
    return StepFailed(
        details, kind="InvalidCommandParamsError", summary="Invalid command parameters", code=400
    )


def deployment_failed(details: str) -> StepFailed:
    return StepFailed(details, kind="DeploymentError", summary="Deploy step failed")


def download_failed(image: str, why: str, *, fatal: bool = False) -> StepFailed:
    kind = "ImageDownloadFatalError" if fatal else "ImageDownloadError"
    return StepFailed(
        f"Download of image {image} failed: {why}", kind=kind, summary="Error downloading image"
    )


def checksum_wrong(*, url: str, image: str, wanted: str, found: str) -> StepFailed:
    return StepFailed(
        f"Image failed to verify against checksum. location: {url}; image ID: {image}; "
        f"image checksum: {wanted}; verification checksum: {found}",
        kind="ImageChecksumError",
        summary="Error verifying image checksum",
    )


def write_failed(device: str, why: str) -> StepFailed:
    return StepFailed(
        f"Writing image to device {device} failed: {why}",
        kind="ImageWriteError",
        summary="Error writing image to device",
    )


def invalid_image(details: str) -> StepFailed:
    return StepFailed(details, kind="InvalidImage", summary="The provided image is not valid for use")


def device_not_found(details: str) -> StepFailed:
    return StepFailed(
        details,
        kind="DeviceNotFound",
        summary="Error finding the disk or partition device to deploy the image onto",
        code=404,
    )


def raid_failed(details: str) -> StepFailed:
    return StepFailed(details, kind="SoftwareRAIDError", summary="Software RAID caused unknown error")
