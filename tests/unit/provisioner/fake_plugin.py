"""The plugin inside the fake Ironic: posts each change to the operator as the real one does, and can lose or repeat messages."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp

from ingot.trust import Secret, client_context

WATCHED = (
    "provision_state",
    "target_provision_state",
    "power_state",
    "target_power_state",
    "maintenance",
    "fault",
    "last_error",
    "health",
    "instance_uuid",
    "inspection_finished_at",
    "provision_updated_at",
    "clean_step",
    "deploy_step",
)


class FakePlugin:
    """Sends one message per change, in order. `lossy`: the change gets its number and is never sent."""

    def __init__(self, port: int, token: Secret, ca_file: Path, sender: str = "ironic-1-abc") -> None:
        self.url = f"https://127.0.0.1:{port}/v1/push"
        self.sender = sender
        self.token = token
        self.lossy = False
        self.answers: list[int] = []
        self.patches: dict[str, bool] = {}
        self._ca_file = ca_file
        self._seq = 0
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._task = asyncio.create_task(self._run())

    def changed(self, node: dict[str, Any], deleted: bool) -> None:
        fields = {} if deleted else {name: node[name] for name in WATCHED}
        for step in ("clean_step", "deploy_step"):
            if step in fields:
                fields[step] = (fields[step] or {}).get("step")
        self._seq += 1
        event = {
            "seq": self._seq,
            "uuid": node["uuid"],
            "name": node["name"],
            "deleted": deleted,
            "fields": fields,
        }
        if not self.lossy:
            self.send(
                {
                    "sender": self.sender,
                    "first": self._seq,
                    "gap": False,
                    "patches": self.patches,
                    "events": [event],
                }
            )

    def heartbeat(self) -> None:
        self.send(
            {
                "sender": self.sender,
                "first": self._seq + 1,
                "gap": False,
                "patches": self.patches,
                "events": [],
            }
        )

    def send(self, message: dict[str, Any]) -> None:
        self._queue.put_nowait(message)

    async def delivered(self) -> None:
        await self._queue.join()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        connector = aiohttp.TCPConnector(ssl=client_context(self._ca_file))
        async with aiohttp.ClientSession(connector=connector) as session:
            while True:
                message = await self._queue.get()
                headers = {"Authorization": f"Bearer {self.token.reveal()}"}
                async with session.post(self.url, json=message, headers=headers) as answer:
                    self.answers.append(answer.status)
                self._queue.task_done()
