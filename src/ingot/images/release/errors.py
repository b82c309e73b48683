"""What can go wrong with release payloads; the tree is drawn in the package's docstring."""

from __future__ import annotations


class ReleaseError(Exception):
    """A payload cannot be built, moved, unpacked or served; the message is for a person."""


class PayloadError(ReleaseError):
    """A folder does not hold what a payload has; a person has to look."""


class PayloadDamaged(PayloadError):
    """Bytes are not those that their hash says. What was served from elsewhere before goes on being served."""


class RegistryError(ReleaseError):
    """A registry did not do what was asked."""


class RegistryRefused(RegistryError):
    """It answered, and no: credentials, names, something that is not there. Asking again does not help."""


class RegistryUnreachable(RegistryError):
    """No answer, or one that says later; it was asked several times. Asking later may help."""
