"""Who is asking, and whether they may.

Two identities, each with a random token of its own in the state folder: `admin` may do everything, `read-only` may
look at everything but Secrets. Tokens are compared in constant time and appear nowhere but in their files and the
kubeconfigs. The admin may also ask as somebody else (`kubectl --as`), who may then what their groups may.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web

from ingot.embedded.server.errors import bad_request, forbidden, unauthorized
from ingot.embedded.server.kinds.kind import READ_VERBS
from ingot.trust import Secret, kept_token

# What anybody may ask: whether the server lives, and which one it is.
OPEN_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz", "/version"})
# Asking about oneself is not writing.
REVIEWS_OF_ONESELF: Final = frozenset(
    {"selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"}
)
_EVERYBODY: Final = "system:authenticated"


@dataclass(frozen=True, slots=True)
class Identity:
    name: str
    groups: tuple[str, ...]
    may_read: bool
    may_write: bool

    @property
    def uid(self) -> str:
        return self.name.rpartition(":")[2]

    @property
    def own_groups(self) -> tuple[str, ...]:
        """Those that say what one may do."""
        return tuple(group for group in self.groups if group != _EVERYBODY)


def subject(name: str, groups: Iterable[str]) -> Identity:
    """Somebody with these groups: what they may, they may by a group that one of ours has."""
    given = tuple(groups)
    known = [identity for identity in (ADMIN, READ_ONLY) if set(identity.own_groups) & set(given)]
    return Identity(
        name,
        given,
        may_read=any(identity.may_read for identity in known),
        may_write=any(identity.may_write for identity in known),
    )


ADMIN: Final = Identity("ingot:admin", ("system:masters", _EVERYBODY), may_read=True, may_write=True)
READ_ONLY: Final = Identity("ingot:read-only", ("ingot:readers", _EVERYBODY), may_read=True, may_write=False)


class Gate:
    """The tokens of one server."""

    def __init__(self, folder: Path) -> None:
        self.admin_token: Secret = kept_token(folder / "token-admin")
        self.read_only_token: Secret = kept_token(folder / "token-readonly")

    def admit(self, request: web.BaseRequest) -> Identity:
        """Who speaks in a request."""
        headers = request.headers
        who = self.identify(headers.get("Authorization", ""))
        name, groups = headers.get("Impersonate-User", ""), headers.getall("Impersonate-Group", [])
        if not name and not groups:
            return who
        if not name:
            raise bad_request("requested groups without a user to impersonate")
        if not who.may_write:
            raise forbidden(
                f'users "{name}" is forbidden: User "{who.name}" cannot impersonate resource "users" '
                'in API group "" at the cluster scope',
                details={"name": name, "kind": "users"},
            )
        return subject(name, dict.fromkeys((*groups, _EVERYBODY)))

    def identify(self, authorization: str) -> Identity:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise unauthorized()
        # What is no UTF-8 arrives as surrogates; it is no token of ours either.
        given = token.strip().encode(errors="surrogateescape")
        found = None
        # Both are always compared, so that the time says nothing about which one was nearly right.
        for secret, identity in ((self.admin_token, ADMIN), (self.read_only_token, READ_ONLY)):
            if hmac.compare_digest(given, secret.reveal().encode()):
                found = identity
        if found is None:
            raise unauthorized()
        return found


def allowed(who: Identity, verb: str, resource: str) -> bool:
    """`resource` is the plural with its group, as `baremetalhosts.metal3.io`; empty for paths that are no resource."""
    if who.may_write:
        return True
    plural, _, group = resource.partition(".")
    if plural in REVIEWS_OF_ONESELF:
        return verb == "create"
    holds_secrets = plural in ("secrets", "*") and group in ("", "*")
    return who.may_read and verb in READ_VERBS and not holds_secrets


def require(who: Identity, verb: str, resource: str, *, namespace: str, name: str) -> None:
    if allowed(who, verb, resource):
        return
    plural, _, group = resource.partition(".")
    what = f'{resource} "{name}"' if name else resource
    where = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
    raise forbidden(
        f'{what} is forbidden: User "{who.name}" cannot {verb} resource "{plural}" in API group "{group}"{where}',
        details={"name": name, "group": group, "kind": plural} if name else {"group": group, "kind": plural},
    )
