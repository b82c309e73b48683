"""Credentials from a program: the exec plugins of a kubeconfig.

Speaks `client.authentication.k8s.io` in its versions v1 and v1beta1: the program is told in KUBERNETES_EXEC_INFO what is wanted
of it, and prints an ExecCredential with a token or a certificate. What it gave is used until it ends, or until the API
refuses it, which has the program run once more. Its answer is a secret: no error and no log line of ours quotes it. What it
says on its standard error goes to ours, as with kubectl, because that is where it asks people to log in.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

from ingot.kube.errors import UNDECODABLE, CredentialError
from ingot.kube.identity import ClientCertificate, Identity
from ingot.trust import Secret

API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
PATIENCE: Final = 60.0
"""Seconds that a program gets which nobody can talk to; one that asks a person is waited for."""
LONGEST_ANSWER: Final = 1024 * 1024

InteractiveMode = Literal["Never", "IfAvailable", "Always"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecSettings:
    """The `exec` of a kubeconfig's user. `cluster` is what the program is told of the cluster, if it asks for that."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    install_hint: str = ""
    interactive_mode: InteractiveMode = "IfAvailable"
    cluster: Mapping[str, object] | None = None
    patience: float = PATIENCE


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


@dataclass(frozen=True, slots=True)
class _Given:
    identity: Identity
    until: datetime | None


class ExecPlugin:
    """An identity that a program hands out."""

    def __init__(self, settings: ExecSettings) -> None:
        self._settings = settings
        self._given: _Given | None = None
        self._asking = asyncio.Lock()

    async def identity(self) -> Identity:
        async with self._asking:
            if self._given is None or _is_over(self._given):
                self._given = await self._ask()
            return self._given.identity

    async def refused(self, identity: Identity) -> bool:
        async with self._asking:
            if self._given is not None and self._given.identity == identity:
                self._given = await self._ask()
            return self._given is None or self._given.identity != identity

    async def _ask(self) -> _Given:
        interactive = self._interactive()
        answer = await self._run(interactive)
        try:
            credential = msgspec.json.decode(answer, type=_ExecCredential)
        except UNDECODABLE:
            # The error of the decoder can quote what it found.
            raise self._error("did not print an ExecCredential as JSON") from None
        if (credential.api_version, credential.kind) != (self._settings.api_version, "ExecCredential"):
            raise self._error(f"did not print an ExecCredential of {self._settings.api_version}")
        return self._given_by(credential.status or _Status())

    def _given_by(self, status: _Status) -> _Given:
        certificate, key = status.client_certificate_data, status.client_key_data
        if bool(certificate) != bool(key):
            raise self._error("gave a certificate without its key, or a key without its certificate")
        if not (status.token or certificate):
            raise self._error("gave neither a token nor a certificate")
        identity = Identity(
            token=Secret(status.token) if status.token else None,
            certificate=ClientCertificate(certificate.encode(), Secret(key)) if certificate else None,
        )
        until = status.expiration_timestamp
        return _Given(identity, until.replace(tzinfo=until.tzinfo or UTC) if until else None)

    def _interactive(self) -> bool:
        mode = self._settings.interactive_mode
        possible = mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not possible:
            raise self._error("wants to talk to a person, and there is no terminal here")
        return possible

    async def _run(self, interactive: bool) -> bytes:
        settings = self._settings
        try:
            process = await asyncio.create_subprocess_exec(
                settings.command,
                *settings.args,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, **settings.env, "KUBERNETES_EXEC_INFO": self._told(interactive)},
                limit=LONGEST_ANSWER,
                # A group of its own, so that what it started ends with it; but only the terminal's group may read from it.
                start_new_session=not interactive,
            )
        except OSError as error:
            advice = settings.install_hint or "Install it, or correct the kubeconfig."
            raise self._error(f"cannot be started: {error.strerror}", advice) from error
        ended = False
        try:
            async with asyncio.timeout(None if interactive else settings.patience):
                answer = await _all_of(process)
                if answer is None:
                    raise self._error(f"printed more than {LONGEST_ANSWER} bytes")
                code = await process.wait()
                ended = True
        except TimeoutError:
            raise self._error(f"did not end within {settings.patience:g} s") from None
        finally:
            if not ended:
                await _end(process, whole_session=not interactive)
        if code != 0:
            raise self._error(f"ended with exit code {code}")
        return answer

    def _told(self, interactive: bool) -> str:
        spec: dict[str, object] = {"interactive": interactive}
        if self._settings.cluster is not None:
            spec["cluster"] = self._settings.cluster
        told = {"apiVersion": self._settings.api_version, "kind": "ExecCredential", "spec": spec}
        return msgspec.json.encode(told).decode()

    def _error(self, what: str, advice: str = "Run it by hand to see what it says.") -> CredentialError:
        return CredentialError(
            f"the program {self._settings.command}, which should log us in, {what}. {advice.rstrip()}"
        )


async def _all_of(process: asyncio.subprocess.Process) -> bytes | None:
    """What it prints until it ends; None if that is too much."""
    assert process.stdout is not None
    found = b""
    while chunk := await process.stdout.read(65536):
        found += chunk
        if len(found) > LONGEST_ANSWER:
            return None
    return found


async def _end(process: asyncio.subprocess.Process, *, whole_session: bool) -> None:
    assert process.stdout is not None
    with contextlib.suppress(ProcessLookupError):
        if whole_session:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    await process.wait()
    # Read to the end of the pipe, which closes it; one that somebody in a session of their own still holds is left to them.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1):
            while await process.stdout.read(65536):
                pass


def _is_over(given: _Given) -> bool:
    return given.until is not None and datetime.now(UTC) >= given.until
