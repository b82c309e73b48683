"""The wire between one actuator and the API, with everything that can happen on it.

News may come late: a kind's watch can be held back, so that the cache of that kind lags behind, and is let through in batches.
Writes may be slow: what is on its way lies in the post until it is delivered, is lost, or its answer is. An actuator can die
before any of its writes, or after one whose answer it never hears; what it sent before may still arrive after its death.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from ingot.api.meta import Key, Object, Resource
from ingot.kube import Client, Unavailable
from ingot.kube.watching import News

T = TypeVar("T", bound=Object)
Send = Callable[[Client], Awaitable[Any]]
Fate = Literal["delivered", "unanswered", "lost"]


class Killed(Exception):
    """The actuator is dead, and whatever it was about to do is not done."""


@dataclass(eq=False)
class Letter:
    """A write on its way."""

    what: str
    send: Send
    answer: asyncio.Future[Any]

    async def meet(self, fate: Fate, client: Client) -> None:
        """Whoever sent it may be dead by now; the API does not know that."""
        try:
            answer = await self.send(client) if fate != "lost" else None
            if fate != "delivered":
                raise Unavailable(0, "Unavailable", "the connection broke", doing=self.what, sent=True)
        except Exception as error:  # whatever it is, it is the sender's
            if not self.answer.done():
                self.answer.set_exception(error)
        else:
            if not self.answer.done():
                self.answer.set_result(answer)


@dataclass
class Wire:
    """What becomes of what one actuator says and hears."""

    api: Client
    """The plain way to the API."""
    post: list[Letter]
    """Where slow writes lie, those of all actuators."""
    slow: bool = False
    dead: bool = False
    doom: int | None = None
    """How many more writes it makes."""
    unheard: bool = False
    """Whether the last of them is done, and only its answer is not heard."""
    writes: list[str] = field(default_factory=list)
    calls: int = 0
    waiting: int = 0
    """Writes of its own that lie in the post."""
    _held: dict[str, int] = field(default_factory=dict)
    """For each kind that is held back, how much of its news may still come through."""
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    # Hearing

    def hold_back(self, kind: str) -> None:
        self._held.setdefault(kind, 0)

    def let_through(self, kind: str, news: int | None) -> None:
        """So much of what is held back, or all of it and everything after it."""
        if news is None:
            self._held.pop(kind, None)
        elif kind in self._held:
            self._held[kind] += news
        self._moved.set()

    @property
    def held(self) -> list[str]:
        return sorted(self._held)

    async def in_step(self, kind: str) -> None:
        while self._held.get(kind) == 0:
            self._moved.clear()
            await self._moved.wait()
        if kind in self._held:
            self._held[kind] -= 1

    # Saying

    def call(self) -> None:
        self.calls += 1
        if self.dead:
            raise Killed

    async def write(self, what: str, send: Send) -> Any:
        self.call()
        last = self._is_last()
        if last and not self.unheard:
            raise Killed
        self.writes.append(what)
        answer = await (self._posted(what, send) if self.slow else send(self.api))
        if last:
            raise Killed
        return answer

    def _is_last(self) -> bool:
        if self.doom is None:
            return False
        self.doom -= 1
        self.dead = self.dead or self.doom <= 0
        return self.dead

    async def _posted(self, what: str, send: Send) -> Any:
        letter = Letter(what, send, asyncio.get_running_loop().create_future())
        self.post.append(letter)
        self.waiting += 1
        try:
            return await letter.answer
        finally:
            self.waiting -= 1


class WiredClient(Client):
    """A client at one end of a wire."""

    wire: Wire

    async def get(self, kind: Resource[T], key: Key) -> T:
        self.wire.call()
        return await super().get(kind, key)

    async def create(self, kind: Resource[T], body: T | Mapping[str, object], *, namespace: str = "") -> T:
        return await self._write(
            f"create {kind.kind} {namespace}", lambda client: client.create(kind, body, namespace=namespace)
        )

    async def apply(self, kind: Resource[T], body: T | Mapping[str, object], **how: Any) -> T:
        return await self._write(f"apply {kind.kind}", lambda client: client.apply(kind, body, **how))

    async def patch(self, kind: Resource[T], key: Key, patch: Mapping[str, object], **how: Any) -> T:
        return await self._write(
            f"patch {kind.kind} {key.name} {how.get('subresource', '')} {patch}",
            lambda client: client.patch(kind, key, patch, **how),
        )

    async def delete(self, kind: Resource[T], key: Key, **how: Any) -> None:
        await self._write(f"delete {kind.kind} {key.name}", lambda client: client.delete(kind, key, **how))

    async def watch(self, kind: Resource[T], **how: Any) -> AsyncGenerator[News[T], None]:
        async with aclosing(super().watch(kind, **how)) as news:
            async for item in news:
                await self.wire.in_step(kind.kind)
                yield item

    async def _write(self, what: str, send: Send) -> Any:
        return await self.wire.write(what, send)
