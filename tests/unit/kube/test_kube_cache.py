"""The cache: laws that hold after any sequence of lists, watches and own writes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ingot.api.meta import Key, Object, ObjectMeta
from ingot.kube.cache import Cache, HistoryWentBack

NAMES = st.sampled_from(["a", "b", "c", "d"])


def thing(name: str, version: int, uid: str = "u") -> Object:
    return Object(metadata=ObjectMeta(name=name, resource_version=str(version), uid=uid))


def last_picture(of: Object) -> Object:
    """What an API answers to the write that takes the last finalizer off: the version is the one before the end."""
    metadata = of.metadata
    return Object(
        metadata=ObjectMeta(
            name=metadata.name,
            resource_version=metadata.resource_version,
            uid=metadata.uid,
            deletion_timestamp=datetime.now(UTC),
        )
    )


def version_of(item: Object) -> int:
    return int(item.metadata.resource_version)


class CacheFollowsTheApi(RuleBasedStateMachine):
    """An API with a linear history; a cache that lists, watches and observes it at its own pace."""

    def __init__(self) -> None:
        super().__init__()
        self.version = 10
        self.objects: dict[str, Object] = {}
        self.history: list[tuple[int, str, Object | None]] = []
        self.answers: list[Object] = []
        self.cache: Cache[Object] = Cache({"name": lambda item: [item.metadata.name]})
        self.told: dict[Key, Object] = {}
        self.known_as_ended: set[str] = set()
        self.pages: list[Object] | None = None
        self.list_version = 0
        self.position = 0

    @initialize()
    def first_list(self) -> None:
        self.begin()
        self.end()

    def tell(self, *changes) -> None:
        """Rebuild the world from changes alone: a subscriber must not miss anything."""
        for change in changes:
            if change is None:
                continue
            assert self.told.get(change.key) == change.old
            if change.old and change.new:
                assert version_of(change.old) < version_of(change.new), "an entry went back in time"
            if change.new is None:
                assert self.objects.get(change.key.name) is not change.old, "what is there was told as gone"
                del self.told[change.key]
            else:
                assert change.new.metadata.uid not in self.known_as_ended, "it came back from the dead"
                self.told[change.key] = change.new

    @rule(name=NAMES, ours=st.booleans())
    def write(self, name: str, ours: bool) -> None:
        self.version += 1
        uid = self.objects[name].metadata.uid if name in self.objects else f"u{self.version}"
        self.objects[name] = thing(name, self.version, uid)
        self.history.append((self.version, name, self.objects[name]))
        if ours:
            self.answers.append(self.objects[name])

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if self.objects.pop(name, None):
            self.version += 1
            self.history.append((self.version, name, None))

    @rule(name=NAMES)
    def our_write_is_its_end(self, name: str) -> None:
        if last := self.objects.pop(name, None):
            self.version += 1
            self.history.append((self.version, name, None))
            self.answers.append(last_picture(last))

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def an_answer_arrives(self, data: st.DataObject) -> None:
        """In any order, and as late as it likes."""
        answer = self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1)))
        self.tell(self.cache.observe(answer))
        if answer.metadata.deletion_timestamp:
            self.known_as_ended.add(answer.metadata.uid)

    @precondition(lambda self: self.pages is None)
    @rule(steps=st.integers(1, 5))
    def watch(self, steps: int) -> None:
        for version, name, found in [entry for entry in self.history if entry[0] > self.position][:steps]:
            if found is None:
                self.tell(self.cache.remove(Key("", name), str(version)))
            else:
                self.tell(self.cache.put(found))
            self.position = version

    @precondition(lambda self: self.pages is None)
    @rule()
    def begin(self) -> None:
        self.cache.begin_list()
        self.pages, self.list_version = list(self.objects.values()), self.version

    @precondition(lambda self: self.pages)
    @rule()
    def page(self) -> None:
        assert self.pages
        self.tell(self.cache.listed(self.pages.pop()))

    @precondition(lambda self: self.pages == [])
    @rule(steps=st.integers(1, 5))
    def the_list_is_a_stream_on_which_things_change(self, steps: int) -> None:
        """What was there has been told, the end of the list not yet: what happens now belongs to the list."""
        for version, name, found in [entry for entry in self.history if entry[0] > self.list_version][:steps]:
            if found is None:
                self.tell(self.cache.unlisted(Key("", name), str(version)))
            else:
                self.tell(self.cache.listed(found))
            self.list_version = version

    @precondition(lambda self: self.pages is not None)
    @rule()
    def end(self) -> None:
        while self.pages:
            self.page()
        self.tell(*self.cache.end_list(str(self.list_version)))
        self.pages, self.position = None, self.list_version

    @invariant()
    def subscribers_know_what_the_cache_knows(self) -> None:
        assert self.told == {item.key: item for item in self.cache.items()}

    @invariant()
    def the_index_is_exact(self) -> None:
        for name in "abcd":
            expected = [item for item in self.cache.items() if item.metadata.name == name]
            assert self.cache.by_index("name", name) == expected

    def teardown(self) -> None:
        """Once all has been watched and every answer is in, cache and API are equal."""
        if self.pages is not None:
            self.end()
        self.watch(steps=10_000)
        for answer in self.answers:
            self.tell(self.cache.observe(answer))
        assert {item.metadata.name: item for item in self.cache.items()} == self.objects
        assert self.cache.version == str(max(self.position, self.list_version))


TestCacheFollowsTheApi = CacheFollowsTheApi.TestCase
TestCacheFollowsTheApi.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def filled(*things: Object, version: int = 10) -> Cache[Object]:
    cache: Cache[Object] = Cache({})
    cache.begin_list()
    for item in things:
        cache.listed(item)
    cache.end_list(str(version))
    return cache


def test_entries_are_kept_compact():
    cache: Cache[Object] = Cache(
        {}, compact=lambda item: thing(item.metadata.name, version_of(item), "compact")
    )
    cache.begin_list()
    change = cache.listed(thing("a", 5))
    cache.end_list("10")
    assert change is not None
    assert change.new is cache.get(Key("", "a"))
    assert change.new is not None
    assert change.new.metadata.uid == "compact"


def test_an_api_that_goes_back_in_time_is_noticed():
    cache = filled(thing("a", 5))
    with pytest.raises(HistoryWentBack, match="version 7 was told after version 10"):
        cache.put(thing("a", 7))


def test_versions_that_are_no_numbers_are_believed_in_the_order_they_come():
    cache = filled(thing("a", 5))
    odd = Object(metadata=ObjectMeta(name="a", resource_version="abc", uid="u"))
    assert cache.put(odd) is not None
    assert cache.observe(thing("a", 3)) is not None
    newcomer = Object(metadata=ObjectMeta(name="z", resource_version="abd", uid="u"))
    assert cache.observe(newcomer) is not None


def test_a_list_after_a_restore_from_backup_replaces_newer_entries():
    cache = filled(thing("a", 500), version=600)
    cache.begin_list()
    change = cache.listed(thing("a", 5))
    assert change is not None
    assert cache.end_list("9") == []
    assert cache.get(Key("", "a")) == thing("a", 5)


def test_a_page_from_before_our_own_write_does_not_undo_it():
    cache = filled(thing("a", 5))
    cache.begin_list()
    cache.observe(thing("a", 12))
    assert cache.listed(thing("a", 5)) is None
    assert cache.end_list("11") == []
    assert cache.get(Key("", "a")) == thing("a", 12)


def test_news_from_before_the_end_that_our_write_made_do_not_bring_an_object_back():
    cache = filled(thing("a", 5))
    cache.observe(thing("a", 12))
    assert cache.observe(last_picture(thing("a", 12))) is not None
    assert cache.put(thing("a", 11)) is None
    assert cache.put(thing("a", 12)) is None
    assert cache.get(Key("", "a")) is None
    assert cache.remove(Key("", "a"), "13") is None
    assert cache.put(thing("a", 14, "another")) is not None


def test_a_name_that_is_used_again_is_news_also_before_the_end_of_the_first_was_told():
    cache = filled(thing("a", 5))
    cache.observe(last_picture(thing("a", 5)))
    assert cache.observe(thing("a", 14, "another")) is not None
    assert cache.remove(Key("", "a"), "13") is None
    assert cache.get(Key("", "a")) == thing("a", 14, "another")


def test_a_page_from_before_the_end_that_our_write_made_does_not_bring_an_object_back():
    cache = filled(thing("a", 5))
    cache.begin_list()
    cache.observe(last_picture(thing("a", 5)))
    assert cache.listed(thing("a", 5)) is None
    assert cache.end_list("11") == []
    assert cache.put(thing("a", 12)) is not None


def test_after_a_restore_from_backup_an_object_is_there_again_although_we_ended_it():
    cache = filled(thing("a", 500), version=600)
    cache.observe(last_picture(thing("a", 500)))
    cache.begin_list()
    assert cache.listed(thing("a", 5)) is not None
    cache.end_list("9")
    assert cache.put(thing("a", 10)) is not None


def test_an_object_with_a_grace_period_is_still_there():
    cache = filled(thing("a", 5))
    leaving = Object(
        metadata=ObjectMeta(
            name="a",
            resource_version="11",
            uid="u",
            deletion_timestamp=datetime.now(UTC),
            deletion_grace_period_seconds=30,
        )
    )
    cache.observe(leaving)
    assert cache.get(Key("", "a")) is leaving
