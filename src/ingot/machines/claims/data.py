"""The Secrets of a claim: what its host is to be told at the first boot, and what a registry wants to see. Pure.

A host reads Secrets of its own namespace only, so each is copied there, under a name that is made of the claim's UID and that
nobody else can want. Only what the host reads is copied: of user data the one key, never annotations or other keys. What a
tenant writes never becomes the name of a Secret in a namespace that is not the tenant's.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import yaml
from msgspec.structs import replace

from ingot.api.baremetalhost import INSTALL_COREOS, Image
from ingot.api.core import SecretObject
from ingot.api.hostclaim import HostClaim
from ingot.api.inputs import coreos, documents
from ingot.api.installed import deploy_method
from ingot.api.meta import Key, Malformed, SecretReference

COPY_OF: Final = "ingot.metal3.io/hostclaim"
"""Label of a copy: the UID of the claim that it was made for."""
VERSION: Final = "ingot.metal3.io/copied-version"
"""Annotation of a copy: which version of which object it was made of."""
_OPAQUE: Final = "Opaque"
_PULL_KEYS: Final = {
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
    "kubernetes.io/dockercfg": ".dockercfg",
}


class Role(enum.Enum):
    """What a Secret is for: the end of its copy's name, the field that names it, the key that is read."""

    USER_DATA = ("user-data", "userData")
    NETWORK_DATA = ("network-data", "networkData")
    META_DATA = ("meta-data", "metaData")
    PULL_SECRET = ("pull-secret", "image.ociAuthSecretName")

    def __init__(self, ending: str, field: str) -> None:
        self.ending = ending
        self.field = field


_COPY: Final = re.compile(f"hostclaim-.+-({'|'.join(role.ending for role in Role)})")


class BadSecret(Malformed):
    """A Secret of the claim cannot be used. The sentence is for the tenant."""

    def __init__(self, role: Role, sentence: str) -> None:
        super().__init__(sentence)
        self.role = role


class Content(NamedTuple):
    """What a copy holds."""

    type: str
    data: dict[str, str]
    """In base64, as it is on the wire."""


@dataclass(frozen=True, slots=True)
class Data:
    """What the spec of a host says about the Secrets of its claim."""

    image: Image | None
    user_data: SecretReference | None
    network_data: SecretReference | None
    meta_data: SecretReference | None


def installs(claim: HostClaim) -> bool:
    """Whether the claim asks for anything to be installed. Where it does not, nobody reads its Secrets."""
    image, custom = claim.spec.image, claim.spec.custom_deploy
    return bool((image is not None and image.url) or deploy_method(image, custom))


def named_secrets(claim: HostClaim) -> dict[Role, Key]:
    """The Secrets that the claim's host needs. Raises `BadSecret` for one in a namespace that is not the claim's."""
    if not installs(claim):
        return {}
    spec, own, found = claim.spec, claim.metadata.namespace, dict[Role, Key]()
    for role, reference in {
        Role.USER_DATA: spec.user_data,
        Role.NETWORK_DATA: spec.network_data,
        Role.META_DATA: spec.meta_data,
    }.items():
        if reference is None or not reference.name:
            continue
        if reference.namespace not in ("", own):
            raise BadSecret(
                role,
                f"spec.{role.field} names a Secret in the namespace {reference.namespace}. A claim can only use Secrets of its "
                f"own namespace, {own}. Copy the Secret there and leave the namespace out.",
            )
        found[role] = Key(own, reference.name)
    if spec.image is not None and spec.image.oci_auth_secret_name and spec.image.url.startswith("oci://"):
        found[Role.PULL_SECRET] = Key(own, spec.image.oci_auth_secret_name)
    return found


def copy_name(claim: str, role: Role) -> str:
    """`claim` is its UID."""
    return f"hostclaim-{claim}-{role.ending}"


def is_copy(reference: SecretReference | None) -> bool:
    """Whether a host names what was copied for a claim, and not a Secret of its own."""
    return reference is not None and _COPY.fullmatch(reference.name) is not None


def as_copied(claim: HostClaim, roles: Mapping[Role, Key]) -> Data:
    """How the host names what it needs: by the names of the copies, and by no other."""

    def reference(role: Role) -> SecretReference | None:
        return SecretReference(name=copy_name(claim.metadata.uid, role)) if role in roles else None

    image = claim.spec.image
    if image is not None:
        pull = copy_name(claim.metadata.uid, Role.PULL_SECRET) if Role.PULL_SECRET in roles else ""
        image = replace(image, oci_auth_secret_name=pull)
    return Data(image, reference(Role.USER_DATA), reference(Role.NETWORK_DATA), reference(Role.META_DATA))


def content_of(role: Role, secret: SecretObject) -> Content:
    """What is copied of a Secret. Raises `BadSecret` where there is nothing that the host could use."""
    if role is Role.PULL_SECRET:
        key = _PULL_KEYS.get(secret.type)
        if key is None or key not in secret.data:
            raise BadSecret(
                role,
                f"Secret {secret.metadata.name}, named by spec.{role.field}, is not one for a registry (its type is "
                f"{secret.type!r}). Make one with `kubectl create secret docker-registry`.",
            )
        return Content(secret.type, {key: secret.data[key]})
    key = role.field if role.field in secret.data else "value"
    if key not in secret.data:
        if role is Role.NETWORK_DATA:
            return Content(_OPAQUE, {})
        raise BadSecret(
            role,
            f"Secret {secret.metadata.name}, named by spec.{role.field}, has neither the key {role.field} nor the key value.",
        )
    return Content(_OPAQUE, {key: secret.data[key]})


def check(claim: HostClaim, secrets: Mapping[Role, SecretObject]) -> None:
    """Raises `BadSecret` for what can be found wrong before a machine is touched; the host would tell it to no tenant."""
    texts: dict[Role, str] = {}
    for role, secret in secrets.items():
        content = content_of(role, secret)
        for key in content.data:
            try:
                texts[role] = secret.text(key) or ""
            except Malformed as error:
                raise BadSecret(role, str(error)) from None
    given = _mapping(texts[Role.META_DATA]) if texts.get(Role.META_DATA) else {}
    if deploy_method(claim.spec.image, claim.spec.custom_deploy) == INSTALL_COREOS:
        problem = coreos.problem_with(texts.get(Role.USER_DATA, ""), given)
        if problem is not None:
            role = Role.META_DATA if "spec.metaData" in problem else Role.USER_DATA
            raise BadSecret(role, f"CoreOS cannot be installed: {problem}")


def _mapping(text: str) -> dict[str, object]:
    try:
        given = documents.load(text)
    except (yaml.YAMLError, ValueError):
        given = None
    if not isinstance(given, dict):
        raise BadSecret(
            Role.META_DATA, "The Secret named by spec.metaData does not hold a YAML or JSON mapping."
        )
    return {str(key): value for key, value in given.items()}
