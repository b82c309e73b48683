"""What is sent with a request so that the registry lets us in: a password, or a token that a server of its choice hands out.

Credentials go over the registry's own kind of connection or a better one, never from https down to http. Tokens are kept as long
as they are good; when a registry asks again, a new one is fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

import aiohttp
import msgspec
from yarl import URL

from ingot.formats.oci import Reference
from ingot.images.fetching.patience import WEATHER
from ingot.images.release.errors import RegistryRefused
from ingot.images.release.registry.challenges import BasicChallenge, BearerChallenge, parse_challenges
from ingot.images.release.registry.pull_secrets import Credentials, PullSecrets
from ingot.images.release.registry.wire import Answer, Interrupted, Wire, read_small


class _Token(msgspec.Struct):
    token: str = ""
    access_token: str = ""


class Authorizing:
    """Knows what to send for each repository, for reading and for writing."""

    def __init__(self, wire: Wire, secrets: PullSecrets) -> None:
        self._wire = wire
        self._secrets = secrets
        self._headers: dict[tuple[str, str], str] = {}

    def header(self, reference: Reference, *, push: bool) -> str | None:
        return self._headers.get((reference.name, _actions(push)))

    async def meet(self, asked: Sequence[str], reference: Reference, home: URL, *, push: bool) -> bool:
        """Get what a registry at `home` asks for with its 401; False when we have nothing (more) to offer."""
        key = (reference.name, _actions(push))
        used = self._headers.pop(key, None)
        credentials = self._secrets.find(reference)
        match parse_challenges(asked):
            case BearerChallenge() as challenge:
                token = await self._token(challenge, credentials, reference, home, push)
                self._headers[key] = f"Bearer {token}"
            case BasicChallenge() if credentials is not None and used is None:
                self._headers[key] = _basic(credentials)
            case _:
                return False
        return True

    def denied(self, status: int, reference: Reference, *, push: bool) -> RegistryRefused:
        verb = "written to" if push else "read"
        if self._secrets.find(reference) is None:
            return RegistryRefused(
                f"{reference.name} may not be {verb} without credentials (HTTP {status}), and "
                f"{self._secrets.why_none(reference)}. Give a file with them (--authfile), such as `podman login` writes"
            )
        return RegistryRefused(
            f"{reference.name} may not be {verb} with the credentials in {self._secrets.where} (HTTP {status}). Correct them, or "
            "ask for the right to it; a registry may also answer so for a repository that does not exist"
        )

    async def _token(
        self,
        challenge: BearerChallenge,
        credentials: Credentials | None,
        reference: Reference,
        home: URL,
        push: bool,
    ) -> str:
        realm = destination(home, challenge.realm, reference)
        asked = {"scope": f"repository:{reference.repository}:{_actions(push)}"}
        if challenge.service:
            asked["service"] = challenge.service
        answer = await self._asked(realm, asked, credentials)
        if answer.status in WEATHER:
            raise Interrupted(f"{realm.host}, which hands out tokens, answers HTTP {answer.status}")
        if answer.status != 200:
            raise self.denied(answer.status, reference, push=push)
        try:
            found = msgspec.json.decode(answer.content, type=_Token)
        except msgspec.DecodeError:
            found = _Token()
        token = found.token or found.access_token
        if not token.isprintable() or not token.isascii() or not token:
            raise RegistryRefused(
                f"{reference.name}: {realm.host} was asked for a token and answers without one"
            )
        return token

    async def _asked(self, realm: URL, asked: dict[str, str], credentials: Credentials | None) -> Answer:
        if credentials is not None and credentials.identity_token is not None:
            form = {**asked, "grant_type": "refresh_token", "client_id": "ingot"}
            form["refresh_token"] = credentials.identity_token.reveal()
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            async with self._wire.send(
                "POST", realm, headers=headers, data=urlencode(form).encode()
            ) as answer:
                return await read_small(answer)
        headers = {"Authorization": _basic(credentials)} if credentials is not None else {}
        async with self._wire.send("GET", realm.update_query(asked), headers=headers) as answer:
            return await read_small(answer)


def destination(here: URL, location: str | None, reference: Reference) -> URL:
    """Where an answer sends us, relative to where it was asked for; never from https to http, never as somebody else."""
    try:
        there = here.join(URL(location or "", encoded=True))
    except ValueError:
        there = URL()
    if (
        not location
        or there.scheme not in ("http", "https")
        or not there.host
        or there.user
        or there.password
    ):
        raise RegistryRefused(f"{reference.name}: the registry sends us to a place that is no URL")
    if here.scheme == "https" and there.scheme == "http":
        raise RegistryRefused(
            f"{reference.name}: the registry sends us from https to http, which is not followed. If it stands behind a proxy "
            "that does TLS for it, tell it so (X-Forwarded-Proto, or relative URLs)"
        )
    return there


_PULL: Final = "pull"
_PUSH: Final = "pull,push"


def _actions(push: bool) -> str:
    return _PUSH if push else _PULL


def _basic(credentials: Credentials) -> str:
    return aiohttp.encode_basic_auth(credentials.user, credentials.password.reveal())
