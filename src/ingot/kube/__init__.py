"""Talking to a Kubernetes API: client, informer, queue, controller. Knows no kind of ours.

The way of a change, which is also the order in which to read: `client` and `watching` turn bytes into objects, `informer` keeps
a `cache` of them and tells what changed, `mapping` says whose concern that is, `queue` collects the keys, `controller`
reconciles them, `manager` runs it all. Below the client: `config` finds the API and who we are to it, `transport` asks it.
`events` tells people what happened; `election` decides which of several processes may do all this. What can go wrong is the
tree in `errors`. A kind is a value, `ingot.api.meta.Resource`. Two doors of their own, for those who serve: `admission` (a
webhook) and `health`.
"""

from ingot.kube.access import Access
from ingot.kube.backoff import Backoff
from ingot.kube.cache import Change
from ingot.kube.client import Client, metadata_of
from ingot.kube.controller import Again, Controller, Done, Reconcile
from ingot.kube.election import Elector, Leadership, Timing
from ingot.kube.errors import (
    REFUSALS,
    AlreadyExists,
    ApiError,
    BadRequest,
    ConfigError,
    Conflict,
    Contested,
    CredentialError,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    NotLeading,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    Unreadable,
    Untrusted,
)
from ingot.kube.events import EventRecorder, reference_to
from ingot.kube.identity import KnownIdentity
from ingot.kube.informer import Informer
from ingot.kube.manager import Manager
from ingot.kube.mapping import follow, named_in, owned_by
from ingot.kube.pages import Listing
from ingot.kube.tls import Trust

__all__ = [
    "REFUSALS",
    "Access",
    "Again",
    "AlreadyExists",
    "ApiError",
    "Backoff",
    "BadRequest",
    "Change",
    "Client",
    "ConfigError",
    "Conflict",
    "Contested",
    "Controller",
    "CredentialError",
    "Done",
    "Elector",
    "EventRecorder",
    "Forbidden",
    "Gone",
    "Informer",
    "Invalid",
    "KnownIdentity",
    "KubeError",
    "Leadership",
    "Listing",
    "Manager",
    "NotFound",
    "NotLeading",
    "Reconcile",
    "Timing",
    "TooManyRequests",
    "Trust",
    "Unauthorized",
    "Unavailable",
    "Unreadable",
    "Untrusted",
    "follow",
    "metadata_of",
    "named_in",
    "owned_by",
    "reference_to",
]
