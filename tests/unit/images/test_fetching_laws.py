"""Whatever a server does: under the file's name there is the right file or what was there before, and a good day mends all."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from unruly_server import Cuts, Fault, File, Lies, Says, Stalls, unruly

from ingot.images.fetching import Fetcher, FetchError, FetchSettings, Patience, Wanted

CONTENT = hashlib.shake_256(b"an image").digest(50_000)
OTHER = hashlib.shake_256(b"another image").digest(50_000)
BEFORE = b"what was there before"
RULES = FetchSettings(patience=Patience(retries=2, first=0.001), stall=0.05, limit=60_000, deadline=20.0)

_AT = st.integers(0, len(CONTENT))
_BODIES = st.one_of(
    _AT.map(lambda at: OTHER[at:]),
    _AT.map(lambda at: CONTENT[:at] + OTHER[at:]),
    _AT.map(lambda at: CONTENT[at:]),
    st.just(bytes(70_000)),
)
_HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "ETag": st.sampled_from(['"v1"', '"v2"', 'W/"v1"', "none"]),
        "Content-Range": _AT.map(lambda at: f"bytes {at}-{len(CONTENT) - 1}/{len(CONTENT)}"),
        "Content-Length": st.integers(0, 80_000).map(str),
        "Location": st.sampled_from(["/image.iso", "ftp://x/", "", "http://[", "//"]),
        "Retry-After": st.sampled_from(["0", "never"]),
    },
)
_FAULTS: st.SearchStrategy[Fault | None] = st.one_of(
    st.none(),
    _AT.map(Cuts),
    _AT.map(Stalls),
    st.builds(Says, st.sampled_from([204, 302, 304, 404, 416, 429, 500, 503]), _HEADERS),
    st.builds(Lies, st.sampled_from([200, 206, 416]), _HEADERS, _BODIES),
)


@given(st.lists(_FAULTS, max_size=6), st.booleans(), st.booleans())
@settings(max_examples=20, deadline=None)
def test_any_misbehaviour_is_survived(faults: list[Fault | None], ranges: bool, length: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_fetched_in(Path(folder), faults, ranges=ranges, length=length))
        assert [path.name for path in Path(folder).iterdir()] == ["image.iso"]


async def _fetched_in(folder: Path, faults: list[Fault | None], *, ranges: bool, length: bool) -> None:
    target = folder / "image.iso"
    target.write_bytes(BEFORE)
    async with unruly() as server, Fetcher(RULES) as fetcher:
        server.files["/image.iso"] = File(CONTENT, etag='"v1"', ranges=ranges, length=length)
        server.faults = list(faults)
        what = Wanted(url=server.url(), sha256=hashlib.sha256(CONTENT).hexdigest(), name="image.iso")
        try:
            await fetcher.fetch(what, folder)
        except FetchError:
            assert target.read_bytes() == BEFORE
        else:
            assert target.read_bytes() == CONTENT
        server.faults = []
        async with Fetcher() as patient:
            await patient.fetch(what, folder)
    assert target.read_bytes() == CONTENT
