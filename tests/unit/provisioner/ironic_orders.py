"""Orders and a permit for the tests of the Ironic back end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ingot.api.baremetalhost import Image
from ingot.provisioner import Act, ConfigDrive, Deployment, Refusal, Sight
from ingot.trust import Secret

MAC = "52:54:00:00:00:01"
NODE = "rack~h1"
IMAGE = Image(url="https://127.0.0.1/image.raw", checksum="ab" * 32, checksum_type="sha256", format="raw")
ORDER = Deployment(
    image=IMAGE, config_drive=ConfigDrive(user_data=Secret("#cloud-config\n"), meta_data={"role": "db"})
)


class Guard:
    """A permit that writes down what it was asked, and refuses what it is told to refuse."""

    def __init__(self) -> None:
        self.asked: list[tuple[Act, Sight]] = []
        self.refuses: set[Act] = set()

    async def __call__(self, act: Act, sight: Sight) -> Refusal | None:
        self.asked.append((act, sight))
        return Refusal(f"nobody asked for {act.value}") if act in self.refuses else None

    @property
    def acts(self) -> list[Act]:
        return [act for act, _ in self.asked]


async def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Waits for something that another task does."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - another process or task has no event for us
            await asyncio.sleep(0.01)
