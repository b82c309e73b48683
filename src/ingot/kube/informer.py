"""A cache of one kind that follows the API: list once, then watch, whatever happens to the stream.

Owns the conversation; what the news means for the cache is decided in `cache`. A stream that ends or breaks is taken up at
the last version seen; a version that the API has forgotten leads to a new list, whose missing objects are told as removed. A
connection that died without a word is noticed by a deadline of our own. Every wait has jitter, and trouble is told once, not
on every try. Reading the cache never waits and never asks the API.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, Final, Generic, Literal, TypeVar, overload

from ingot.api.meta import Key, Object, PartialObjectMetadata, Resource
from ingot.kube.backoff import Backoff
from ingot.kube.cache import Cache, Change, HistoryWentBack, IndexFunction
from ingot.kube.client import PAGE_SIZE, Client, metadata_of
from ingot.kube.errors import Gone, KubeError, TooManyRequests, Unavailable
from ingot.kube.metrics import CACHED_OBJECTS, WATCH_RESTARTS
from ingot.kube.watching import Bookmark, Put, Removed

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)

WATCH_SECONDS: Final = 180
"""How long a watch lasts, give or take a third; a new one costs a single request."""
SILENCE: Final = 15.0
"""How much longer than that we wait for the server to end it before we do."""
STEADY: Final = 1.0
"""A watch that lived this long, or brought a newer version, ends a row of failures."""
BACKOFF: Final = Backoff(first=0.1, limit=10.0)
NO_INDEXES: Final[Mapping[str, IndexFunction[Any]]] = MappingProxyType({})


class Informer(Generic[T]):
    """The objects of one kind, in one namespace or in all."""

    @overload
    def __init__(
        self,
        client: Client,
        kind: Resource[T],
        *,
        namespace: str = "",
        metadata_only: Literal[False] = False,
        indexes: Mapping[str, IndexFunction[T]] = NO_INDEXES,
        watch_seconds: float = WATCH_SECONDS,
        silence: float = SILENCE,
        backoff: Backoff = BACKOFF,
    ) -> None: ...

    @overload
    def __init__(
        self: Informer[PartialObjectMetadata],
        client: Client,
        kind: Resource[Any],
        *,
        namespace: str = "",
        metadata_only: Literal[True],
        indexes: Mapping[str, IndexFunction[PartialObjectMetadata]] = NO_INDEXES,
        watch_seconds: float = WATCH_SECONDS,
        silence: float = SILENCE,
        backoff: Backoff = BACKOFF,
    ) -> None: ...

    def __init__(
        self,
        client: Client,
        kind: Resource[Any],
        *,
        namespace: str = "",
        metadata_only: bool = False,
        indexes: Mapping[str, IndexFunction[Any]] = NO_INDEXES,
        watch_seconds: float = WATCH_SECONDS,
        silence: float = SILENCE,
        backoff: Backoff = BACKOFF,
    ) -> None:
        self._client = client
        self._kind: Resource[Any] = metadata_of(kind) if metadata_only else kind
        self._namespace = namespace
        self._watch_seconds = watch_seconds
        self._silence = silence
        self._backoff = backoff
        self._cache: Cache[T] = Cache(indexes)
        self._subscribers: list[Callable[[Change[T]], None]] = []
        self._synced = asyncio.Event()
        self._must_list = True
        self._steady = False
        self._failures = 0
        self.trouble = ""
        """Why the cache does not follow the API right now; "" while it does."""

    @property
    def name(self) -> str:
        return f"{self._kind.kind}s" + (f" in {self._namespace}" if self._namespace else "")

    @property
    def version(self) -> str:
        """Every change up to this version is in the cache; "" before the first list has ended."""
        return self._cache.version

    def get(self, key: Key) -> T | None:
        return self._cache.get(key)

    def items(self) -> Iterable[T]:
        return self._cache.items()

    def by_index(self, name: str, value: str) -> list[T]:
        return self._cache.by_index(name, value)

    def subscribe(self, callback: Callable[[Change[T]], None]) -> None:
        """Call back on every change, on the event loop; what is known already comes first, as initial changes."""
        self._subscribers.append(callback)
        for item in self._cache.items():
            self._call(callback, Change(item.key, None, item, initial=True))

    def observe(self, obj: T) -> None:
        """Take the answer to our own write as the newest news."""
        self._tell(self._cache.observe(obj))

    async def synced(self) -> None:
        """Returns once the first list is in the cache."""
        await self._synced.wait()

    async def run(self) -> None:
        """Follow the API until cancelled."""
        while True:
            self._steady = False
            trouble = ""
            try:
                if self._must_list:
                    await self._list()
                await self._watch()
            except (KubeError, HistoryWentBack) as error:
                trouble = str(error)
                self._must_list = self._must_list or _needs_list(error)
            await self._pause(trouble)

    async def _list(self) -> None:
        try:
            await self._list_pages(PAGE_SIZE)
        except Gone:
            # The API forgot the version of the first page before we had the last one: take it all at once.
            await self._list_pages(0)
        self._must_list = False
        self._synced.set()

    async def _list_pages(self, page_size: int) -> None:
        """Bring the cache to what the API holds now, a page at a time so that the loop is never held up."""
        self._cache.begin_list()
        version = ""
        async for page in self._client.pages(self._kind, namespace=self._namespace, page_size=page_size):
            version = page.version
            for item in page.items:
                self._tell(self._cache.listed(item))
        for change in self._cache.end_list(version):
            self._tell(change)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        began, start = loop.time(), self._cache.version
        seconds = max(1, int(self._watch_seconds * random.uniform(0.67, 1.33)))  # noqa: S311 - jitter
        try:
            async with asyncio.timeout(seconds + self._silence):
                await self._follow(start, seconds)
        except TimeoutError:
            log.info("%s: a watch of %d s did not end in time; starting a new one", self.name, seconds)
        finally:
            self._steady = self._cache.version != start or loop.time() - began > STEADY

    async def _follow(self, version: str, seconds: int) -> None:
        watch = self._client.watch(
            self._kind, resource_version=version, seconds=seconds, namespace=self._namespace
        )
        async with aclosing(watch) as news:
            async for item in news:
                match item:
                    case Put(found):
                        self._tell(self._cache.put(found))
                    case Removed(key, gone_at):
                        self._tell(self._cache.remove(key, gone_at))
                    case Bookmark(reached):
                        self._cache.bookmark(reached)
                self._well()

    async def _pause(self, trouble: str) -> None:
        """Wait before the next try, unless the last watch was a good one that simply ended."""
        if self._steady:
            self._failures = 0
        if self._steady and not trouble:
            return
        self._failures += 1
        delay = self._backoff.delay(self._failures)
        if trouble and trouble != self.trouble:
            log.warning("%s: %s; next try in %.1f s", self.name, trouble, delay)
            self.trouble = trouble
        WATCH_RESTARTS.labels(self._kind.kind).inc()
        await asyncio.sleep(delay)

    def _well(self) -> None:
        if self.trouble:
            log.info("%s: the API is followed again", self.name)
            self.trouble = ""

    def _tell(self, change: Change[T] | None) -> None:
        if change is None:
            return
        CACHED_OBJECTS.labels(self._kind.kind).set(len(self._cache))
        for callback in self._subscribers:
            self._call(callback, change)

    def _call(self, callback: Callable[[Change[T]], None], change: Change[T]) -> None:
        try:
            callback(change)
        except Exception:  # one subscriber's bug must not cost the others the news
            log.exception("%s: a subscriber failed on %s", self.name, change.key)


def _needs_list(error: Exception) -> bool:
    """Whether a watch that failed like this can only go on after a new list.

    A connection that broke or a server that is busy says nothing about our version. 504 does: it is how a server answers a
    version that it has not reached yet, which after a restore from a backup it never will.
    """
    match error:
        case Unavailable(code=code):
            return code == 504
        case TooManyRequests():
            return False
        case _:
            return True
