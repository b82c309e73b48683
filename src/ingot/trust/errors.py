"""What can be wrong with the trust of an installation. All of it needs a person.

TrustError
└── AuthorityError      the CA's folder does not hold a certificate with its key
"""

from __future__ import annotations


class TrustError(Exception):
    """The sentence says what was found, where, and what to do."""


class AuthorityError(TrustError):
    """The CA's folder does not hold a certificate with its key."""
