"""The Go program with client-go's informers (tools/kubernetes/informer), run beside a test and told what to do."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes_api import built


class Informer:
    """The running program: commands in, documents out."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._documents: list[Any] = []

    async def do(self, command: str) -> Any:
        """Give a command and wait for its outcome, which must be a good one."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n".encode())
        answer = await self.until(did=command.split()[0])
        assert "error" not in answer, answer
        return answer

    async def until(self, **wanted: str) -> Any:
        """The first document nobody asked for yet that has all of this. Events and outcomes may come in either order."""
        assert self._process.stdout is not None
        async with asyncio.timeout(60):
            while not (
                found := [document for document in self._documents if wanted.items() <= document.items()]
            ):
                line = await self._process.stdout.readline()
                assert line, f"the informer ended before {wanted}"
                self._documents.append(json.loads(line))
        self._documents.remove(found[0])
        return found[0]

    async def saw(self, what: str, name: str, kind: str = "BareMetalHost") -> Any:
        return await self.until(saw=what, name=name, kind=kind)


@contextlib.asynccontextmanager
async def informer(kubeconfig: Path, namespace: str) -> AsyncIterator[Informer]:
    program = built("informer")
    if program is None:
        pytest.skip("client-go's informer is not built (tools/kubernetes/build)")
    process = await asyncio.create_subprocess_exec(
        program,
        *("-kubeconfig", kubeconfig, "-namespace", namespace),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**22,
    )
    try:
        yield Informer(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        # Its pipes are closed when both ends know that it is gone.
        await process.communicate()
