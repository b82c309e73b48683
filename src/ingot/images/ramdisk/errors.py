"""What can go wrong with the ramdisk; each has a sentence for whoever can mend it.

RamdiskError
├── SettingsError      a variable of the environment is not what it has to be: nothing starts
├── BaseError          the published image cannot be used as a ramdisk
└── CannotBuild        a host's image cannot be made as it is asked for
"""

from __future__ import annotations


class RamdiskError(Exception):
    """The sentence says what was found, what is expected, and what to do."""


class SettingsError(RamdiskError, ValueError):
    """A variable of the environment is not what it has to be."""


class BaseError(RamdiskError):
    """The published image cannot be used as a ramdisk."""


class CannotBuild(RamdiskError):
    """A host's image cannot be made as it is asked for."""
