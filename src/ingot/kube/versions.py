"""Which of two versions of an object is the older one.

Kubernetes promises that resourceVersions of one kind are integers that grow; where a server uses something else, nothing can
be said, and the later news is believed.
"""

from __future__ import annotations


def is_older(version: str, than: str) -> bool:
    """True only if both are integers and `version` comes before `than`."""
    # isdecimal first: int() would also take "1_000", " 7" and "-1".
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)
