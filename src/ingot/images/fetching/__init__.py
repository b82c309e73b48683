"""Fetching files that are known by their sha256, from servers and over lines that fail.

    async with Fetcher(FetchSettings(keys=(Path("fedora.gpg"),))) as fetcher:
        fetched = await fetcher.fetch(Wanted.of(artifact), folder)

What is under the file's name is whole and verified at any moment, also after a kill; a try that was cut goes on where it
ended. Read `fetcher` first; `answers`, `patience` and `proxies` are the rules it goes by, without I/O.

Errors:

    FetchError          a file could not be had
    ├── Unreachable     the server could not be reached, or failed again and again: try later, it goes on from there
    ├── Refused         a clear no, or an answer that is refused on purpose: somebody must act
    │   └── Absent      the file is not there
    ├── NotVerified     the bytes or the signature are not what was promised: they are not used
    └── Unwritable      this machine cannot keep or check the file: room, permission, keys, gpg
"""

from ingot.images.fetching.errors import Absent, FetchError, NotVerified, Refused, Unreachable, Unwritable
from ingot.images.fetching.fetcher import Fetcher
from ingot.images.fetching.partial import there, write_whole
from ingot.images.fetching.patience import Patience
from ingot.images.fetching.unpacking import unpack, unpacked_name
from ingot.images.fetching.wanted import Fetched, FetchSettings, Progress, Wanted

__all__ = [
    "Absent",
    "FetchError",
    "FetchSettings",
    "Fetched",
    "Fetcher",
    "NotVerified",
    "Patience",
    "Progress",
    "Refused",
    "Unreachable",
    "Unwritable",
    "Wanted",
    "there",
    "unpack",
    "unpacked_name",
    "write_whole",
]
