"""The Secrets of a host, and in particular the BMC's credentials.

Owns reading them, always from the host's own namespace. Values are read for one pass and kept nowhere. A Secret that is missing
or incomplete is a `Block` with a sentence: nothing is tried until it changes, and its change is noticed at once. Credentials are
told apart by what they are: a Secret that got another label is no reason to try them anew. The marks on Secrets are those of
`secret_marks`. Leaves what the operating system is told to `first_boot`.
"""

from __future__ import annotations

from ingot.api.baremetalhost import (
    BARE_METAL_HOSTS,
    BareMetalHost,
    CredentialsStatus,
    ErrorType,
    EventReason,
)
from ingot.api.core import SECRETS, SecretObject
from ingot.api.meta import Key, Malformed, OwnerReference, SecretReference
from ingot.hosts.host_pass import Pass
from ingot.hosts.metrics import METRICS
from ingot.hosts.outcome import Block
from ingot.hosts.secrets.marks import claim
from ingot.kube import NotFound
from ingot.provisioner import Credentials
from ingot.trust import Secret


async def bmc_credentials(p: Pass) -> tuple[Credentials, CredentialsStatus] | Block:
    """The credentials and which version of the Secret they are; or what is wrong with it."""
    bmc = p.host.spec.bmc
    name = bmc.credentials_name
    if not name:
        return _no_credentials(
            "spec.bmc.credentialsName is empty. Name the Secret with the BMC's user name and password."
        )
    if not bmc.address:
        return _no_credentials("spec.bmc.address is empty. Write the address of the host's BMC.")
    secret = await read_secret(p, name)
    if secret is None:
        METRICS.count("credentials_missing")
        return _no_credentials(
            f"Secret {name} with the BMC's user name and password does not exist in namespace {p.key.namespace}. "
            "Create it with the keys username and password; the next try starts as soon as it is there."
        )
    try:
        username, password = ((secret.text(part) or "").strip() for part in ("username", "password"))
    except Malformed as error:
        METRICS.count("credentials_unhandled_error")
        return _no_credentials(str(error))
    missing = [part for part, value in (("username", username), ("password", password)) if not value]
    if missing:
        METRICS.count("credentials_invalid")
        return _no_credentials(
            f"Secret {name} has no {' and no '.join(missing)}. Add it; the next try starts as soon as it is there."
        )
    secret = p.secrets[name] = await claim(p, secret, owner_of(p.host))
    version = _version(p, name, secret.metadata.resource_version)
    _recognise(p, version, p.tools.known_credentials.digest(name, username, password))
    return Credentials(username=username, password=Secret(password)), version


def unchanged_credentials(p: Pass) -> CredentialsStatus | None:
    """Which version of the Secret the back end has, where it is the one that is there now: there is no need to read it."""
    name = p.host.spec.bmc.credentials_name
    found = p.tools.secrets.get(Key(p.key.namespace, name)) if name and p.host.spec.bmc.address else None
    if found is None:
        return None
    version = _version(p, name, found.metadata.resource_version)
    same = version == p.status.tried_credentials and p.tools.known_credentials.were_given(p.key, version)
    return version if same else None


def _version(p: Pass, name: str, version: str) -> CredentialsStatus:
    return CredentialsStatus(
        credentials=SecretReference(name=name, namespace=p.key.namespace), credentials_version=version
    )


def _no_credentials(message: str) -> Block:
    return Block(ErrorType.REGISTRATION, message, EventReason.BMC_CREDENTIAL_ERROR)


def _recognise(p: Pass, version: CredentialsStatus, digest: bytes) -> None:
    """A Secret that was written with what it held before has another version, and the credentials are those of before."""
    same = p.tools.known_credentials.same_as(p.key, version, digest)
    if p.status.tried_credentials in same:
        p.change(tried_credentials=version)
    if p.status.good_credentials in same:
        p.change(good_credentials=version)


def owner_of(host: BareMetalHost, *, controller: bool | None = None) -> OwnerReference:
    return OwnerReference(
        api_version=BARE_METAL_HOSTS.api_version,
        kind=BARE_METAL_HOSTS.kind,
        name=host.metadata.name,
        uid=host.metadata.uid,
        controller=controller,
        block_owner_deletion=controller,
    )


async def named_secret(p: Pass, ref: SecretReference | None, field: str) -> SecretObject | None:
    """The Secret that a field of the host's spec names; None where it names none. Raises `Malformed` where there is none."""
    if ref is None or not ref.name:
        return None
    if ref.namespace not in ("", p.key.namespace):
        raise Malformed(
            f"{field} names a Secret in namespace {ref.namespace}. A host reads Secrets of its own namespace only; "
            f"put the Secret into {p.key.namespace}."
        )
    secret = await read_secret(p, ref.name)
    if secret is None:
        raise Malformed(
            f"Secret {ref.name}, named by {field}, does not exist in namespace {p.key.namespace}. Create it; "
            "provisioning starts as soon as it is there."
        )
    return secret


async def read_secret(p: Pass, name: str) -> SecretObject | None:
    """A Secret of the host's namespace, read once in a pass; None where there is none of that name."""
    if name not in p.secrets:
        try:
            p.secrets[name] = await p.tools.client.get(SECRETS, Key(p.key.namespace, name))
        except NotFound:
            return None
    return p.secrets[name]
