"""Pull secrets: with which user name and password an image is fetched from its registry.

Reads the two forms in which container tools keep such credentials, and finds in them the entry for the image at hand: the longest
one whose path leads to it. What cannot be used is an error of the host, with an Event that says which of its Secrets is meant.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec

from ingot.api.baremetalhost import ErrorType, EventReason, Image
from ingot.api.core import SecretObject
from ingot.api.meta import Malformed
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import Block
from ingot.hosts.secrets.reading import read_secret
from ingot.trust import Secret

_KEY_OF_TYPE: Final = {
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
    "kubernetes.io/dockercfg": ".dockercfg",
}
_SCHEME: Final = "oci://"


class UnsupportedForm(Malformed):
    """It is not one of the two forms."""


class _Entry(msgspec.Struct):
    auth: str = ""
    username: str = ""
    password: str = ""


class _Config(msgspec.Struct):
    auths: dict[str, _Entry] = {}


async def pull_secret(p: Pass, image: Image | None) -> Secret | Block:
    """`user:password` for the image's registry, "" where none is named; or what is wrong with the Secret."""
    name = image.oci_auth_secret_name if image is not None else ""
    if image is None or not name or not image.url.startswith(_SCHEME):
        return Secret("")
    found = await read_secret(p, name)
    if found is None:
        return Block(
            ErrorType.PROVISIONING,
            f"Secret {name}, named by spec.image.ociAuthSecretName, does not exist in namespace {p.key.namespace}. Create it; "
            "provisioning starts as soon as it is there.",
        )
    try:
        return credentials_in(found, image.url)
    except UnsupportedForm as error:
        return Block(ErrorType.PROVISIONING, str(error), EventReason.IMAGE_AUTH_FORMAT_UNSUPPORTED)
    except Malformed as error:
        return Block(ErrorType.PROVISIONING, str(error), EventReason.IMAGE_AUTH_PARSE_ERROR)


def credentials_in(secret: SecretObject, url: str) -> Secret:
    """What the Secret says for this image. Raises `Malformed` where that is nothing that could be used."""
    key = _KEY_OF_TYPE.get(secret.type)
    if key is None:
        raise UnsupportedForm(
            f"Secret {secret.metadata.name}, named by spec.image.ociAuthSecretName, is of the type {secret.type!r}. Make one of "
            "the type kubernetes.io/dockerconfigjson, as `kubectl create secret docker-registry` does."
        )
    entries = _entries(secret, key)
    wanted = url.removeprefix(_SCHEME)
    fitting = [registry for registry in entries if _leads_to(registry, wanted)]
    if not fitting:
        raise Malformed(
            f"Secret {secret.metadata.name}, named by spec.image.ociAuthSecretName, has no entry for {wanted.partition('/')[0]}. "
            "Add one for the registry of the image."
        )
    return Secret(
        _user_and_password(secret, entries[max(fitting, key=lambda registry: len(_path(registry)))])
    )


def _entries(secret: SecretObject, key: str) -> dict[str, _Entry]:
    text = secret.text(key)
    try:
        if text is not None and key == ".dockercfg":
            return msgspec.json.decode(text, type=dict[str, _Entry])
        if text is not None:
            return msgspec.json.decode(text, type=_Config).auths
    except (msgspec.DecodeError, RecursionError):
        # What exactly is wrong with it may repeat what is in it.
        text = None
    raise Malformed(
        f"Secret {secret.metadata.name}, named by spec.image.ociAuthSecretName, has no readable JSON under the key {key}. "
        "Make it anew with `kubectl create secret docker-registry`."
    )


def _user_and_password(secret: SecretObject, entry: _Entry) -> str:
    if entry.auth:
        try:
            pair = base64.b64decode(entry.auth, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            pair = ""
    else:
        pair = f"{entry.username}:{entry.password}"
    user, colon, password = pair.partition(":")
    if not (user and colon and password):
        raise Malformed(
            f"Secret {secret.metadata.name}, named by spec.image.ociAuthSecretName, has an entry for the registry without a user "
            "name and password. Log in with both; tokens are not supported."
        )
    return pair


def _leads_to(registry: str, wanted: str) -> bool:
    path = _path(registry)
    return wanted == path or wanted.startswith(f"{path}/")


def _path(registry: str) -> str:
    """An entry's name without what older tools wrote around it: https://index.docker.io/v1/."""
    path = registry.partition("://")[2] or registry
    path = path.rstrip("/")
    for version in ("/v1", "/v2"):
        path = path.removesuffix(version)
    return "docker.io" if path in ("index.docker.io", "registry-1.docker.io") else path
