"""A cache of one kind that follows the API: list once, then watch, whatever happens to the stream.

Owns the conversation; what the news means for the cache is decided in `cache`. Where the server offers it, list and watch are
one stream that begins with all there is; elsewhere the list comes in pages. A stream that ends or breaks is taken up at the
last version seen; a version that the API has forgotten, or has not come to yet, leads to a new list, whose missing objects
are told as removed. A connection that died without a word is noticed by a deadline of our own. Every wait has jitter, and
trouble is told once, not on every try. Reading the cache never waits and never asks the API.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from ingot.api.meta import Key, Object, Resource
from ingot.kube.backoff import Backoff
from ingot.kube.cache import Cache, Change, HistoryWentBack, IndexFunction
from ingot.kube.client import PAGE_SIZE, Client
from ingot.kube.errors import ApiError, Gone, KubeError, NotFound, TooManyRequests, Unavailable
from ingot.kube.metrics import CACHED_OBJECTS, WATCH_RESTARTS
from ingot.kube.transport import LONGEST_RETRY_AFTER
from ingot.kube.versions import is_older
from ingot.kube.watching import Bookmark, Listed, News, Put, Removed, keep_read_buffers

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)

WATCH_SECONDS: Final = 180
"""How long a watch lasts, give or take a third; a new one costs two small requests."""
SILENCE: Final = 15.0
"""How much longer than that we wait for the server to end it before we do."""
STREAMED_LIST: Final = 30.0
"""Seconds in which a stream must have told all there is; one that has not may come from a server that never will."""
STEADY: Final = 1.0
"""A watch that lived this long, or brought a newer version, ends a row of failures."""
BACKOFF: Final = Backoff(first=0.1, limit=10.0)
NO_INDEXES: Final[Mapping[str, IndexFunction[Any]]] = MappingProxyType({})


class Informer(Generic[T]):
    """The objects of one kind: in one namespace or in all, those that selectors choose or all.

    With `metadata_of(kind)` for a kind it knows the metadata alone, and values never reach this process.
    """

    def __init__(
        self,
        client: Client,
        kind: Resource[T],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        indexes: Mapping[str, IndexFunction[T]] = NO_INDEXES,
        watch_seconds: float = WATCH_SECONDS,
        silence: float = SILENCE,
        streamed_list: float = STREAMED_LIST,
        backoff: Backoff = BACKOFF,
    ) -> None:
        """`streamed_list=0` lists in pages, also where the server could stream."""
        self._client = client
        self._kind = kind
        self._namespace, self._labels, self._fields = namespace, labels, fields
        self._watch_seconds = watch_seconds
        self._silence = silence
        self._streamed_list = streamed_list
        self._backoff = backoff
        # Kinds with undecoded parts have this method; it is theirs because only they know where those parts are.
        self._cache: Cache[T] = Cache(indexes, compact=getattr(kind.type, "compact", None))
        self._count = CACHED_OBJECTS.labels(kind.kind)
        self._subscribers: list[Callable[[Change[T]], None]] = []
        self._synced = asyncio.Event()
        self._must_list = True
        self._stream_next = True
        """Whether the next list is tried as a stream: not if the last one broke."""
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
        keep_read_buffers()
        while True:
            self._steady = False
            trouble: Exception | None = None
            try:
                await self._converse()
            except (KubeError, HistoryWentBack) as error:
                trouble = error
                self._must_list = self._must_list or _needs_list(error)
            await self._pause(trouble)

    async def _converse(self) -> None:
        """From where we stand to the end of one watch."""
        if not self._must_list:
            await self._check_history()
        elif await self._listed_by_stream():
            return
        else:
            await self._list()
        await self._watch(self._cache.version)

    async def _check_history(self) -> None:
        """A server that was restored from a backup would keep still about all changes up to the version we ask for."""
        try:
            async with asyncio.timeout(self._silence):
                # With our selectors: whoever may see a single object only may not ask for all.
                latest = await self._client.latest_version(
                    self._kind, namespace=self._namespace, labels=self._labels, fields=self._fields
                )
        except TimeoutError:
            raise Unavailable(
                0, "Unavailable", f"{self._client.server} keeps still", doing=self.name
            ) from None
        if is_older(latest, self._cache.version):
            raise HistoryWentBack(
                f"the API is at version {latest}, and was at {self._cache.version} before: it was restored or begun anew"
            )

    # Listing

    async def _listed_by_stream(self) -> bool:
        """List and watch in one; false if that is not to be had, and the list must come in pages."""
        if not (self._stream_next and self._streamed_list):
            return False
        self._stream_next = False
        self._cache.begin_list()
        try:
            await self._watch(None)
        except ApiError as error:
            if error.code not in (400, 422):
                raise
        if self._must_list:
            log.info("%s: the API does not stream lists; asking for pages from now on", self.name)
            self._streamed_list = 0
        return not self._must_list

    async def _list(self) -> None:
        try:
            version = await self._list_pages(PAGE_SIZE)
        except Gone:
            # The API forgot the version of the first page before we had the last one: take it all at once.
            version = await self._list_pages(0)
        self._end_list(version)

    async def _list_pages(self, page_size: int) -> str:
        """Bring the cache to what the API holds now, a page at a time so that the loop is never held up."""
        self._cache.begin_list()
        version = ""
        pages = self._client.pages(
            self._kind,
            namespace=self._namespace,
            labels=self._labels,
            fields=self._fields,
            page_size=page_size,
        )
        async with aclosing(pages) as listing:
            async for page in listing:
                version = page.version
                for item in page.items:
                    self._tell(self._cache.listed(item))
        return version

    def _end_list(self, version: str) -> None:
        for change in self._cache.end_list(version):
            self._tell(change)
        self._must_list, self._stream_next = False, True
        self._synced.set()

    # Watching

    async def _watch(self, version: str | None) -> None:
        """Follow one stream from this version, or from all there is, to its end."""
        loop = asyncio.get_running_loop()
        began, start = loop.time(), self._cache.version
        seconds = max(1, int(self._watch_seconds * random.uniform(0.67, 1.33)))  # noqa: S311 - jitter
        end = began + seconds + self._silence
        try:
            async with asyncio.timeout_at(
                end if version is not None else began + self._streamed_list
            ) as deadline:
                await self._follow(version, seconds, listed=lambda: deadline.reschedule(end))
        except TimeoutError:
            log.info("%s: a watch of %d s did not end in time; starting a new one", self.name, seconds)
        finally:
            self._steady = self._cache.version != start or loop.time() - began > STEADY

    async def _follow(self, version: str | None, seconds: int, *, listed: Callable[[], None]) -> None:
        watch = self._client.watch(
            self._kind,
            resource_version=version,
            seconds=seconds,
            namespace=self._namespace,
            labels=self._labels,
            fields=self._fields,
        )
        async with aclosing(watch) as news:
            async for item in news:
                self._take(item)
                if isinstance(item, Listed):
                    listed()

    def _take(self, item: News[T]) -> None:
        match item:
            case Put():
                put = self._cache.listed if self._must_list else self._cache.put
                self._tell(put(item.object))
            case Removed(key, gone_at) if self._must_list:
                self._tell(self._cache.unlisted(key, gone_at))
            case Removed(key, gone_at):
                self._tell(self._cache.remove(key, gone_at))
            case Listed(reached) if self._must_list:
                self._end_list(reached)
            case Bookmark(reached) | Listed(reached) if not self._must_list:
                self._cache.bookmark(reached)
        self._well()

    async def _pause(self, trouble: Exception | None) -> None:
        """Wait before the next try, unless the last watch was a good one that simply ended."""
        if self._steady:
            self._failures = 0
        if self._steady and trouble is None:
            return
        self._failures += 1
        delay = self._backoff.delay(self._failures)
        if isinstance(trouble, ApiError) and trouble.retry_after:
            delay = max(delay, min(trouble.retry_after, LONGEST_RETRY_AFTER))
        if trouble is not None and self.trouble != _gist(trouble):
            self.trouble = _gist(trouble)
            log.warning("%s cannot be followed, next try in %.1f s: %s", self.name, delay, self.trouble)
        WATCH_RESTARTS.labels(self._kind.kind).inc()
        await asyncio.sleep(delay)

    # Telling

    def _well(self) -> None:
        if self.trouble:
            log.info("%s: the API is followed again", self.name)
            self.trouble = ""

    def _tell(self, change: Change[T] | None) -> None:
        if change is None:
            return
        if change.old is None or change.new is None:
            self._count.set(len(self._cache))
        for callback in self._subscribers:
            self._call(callback, change)

    def _call(self, callback: Callable[[Change[T]], None], change: Change[T]) -> None:
        try:
            callback(change)
        except Exception:  # one subscriber's bug must not cost the others the news
            log.exception("%s: a subscriber failed on %s", self.name, change.key)


def _gist(error: Exception) -> str:
    """What went wrong, whichever request it was that met it."""
    if isinstance(error, NotFound):
        return f"{error.message}. Is the CustomResourceDefinition of the kind installed?"
    return error.message if isinstance(error, ApiError) else str(error)


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
