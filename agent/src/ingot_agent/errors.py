"""What can go wrong with an install, each as a sentence for whoever reads the host's error message.

InstallError
├── Refused        what was asked for cannot be done; a person has to change it
└── Failed         the attempt went wrong
    └── Hopeless   and would go wrong again
"""

from __future__ import annotations


class InstallError(Exception):
    """CoreOS was not installed."""


class Refused(InstallError):
    """What was asked for cannot be done; the disk was not touched."""


class Failed(InstallError):
    """An attempt to install went wrong; another one may succeed."""


class Hopeless(Failed):
    """An attempt went wrong in a way that the next one would too."""
