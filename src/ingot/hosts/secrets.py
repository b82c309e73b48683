"""The Secrets of a host: the BMC's credentials, and what its operating system is told.

Owns reading them, always from the host's own namespace, and the marks that are put on the BMC's Secret (label, owner,
finalizer) so that it lives as long as the host. Values are read for one pass and kept nowhere. A Secret that is missing or
incomplete is a `Block` with a sentence: nothing is tried until it changes, and its change is noticed at once.
"""

from __future__ import annotations

from typing import Any

import yaml

from ingot.api.baremetalhost import (
    BARE_METAL_HOSTS,
    SECRET_FINALIZER,
    SECRET_LABEL,
    BareMetalHost,
    CredentialsStatus,
    ErrorType,
    State,
)
from ingot.api.core import SECRETS, SecretObject
from ingot.api.meta import Key, Malformed, OwnerReference, SecretReference
from ingot.api.wire import wire
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import Block
from ingot.kube import NotFound
from ingot.provisioner import ConfigDrive, Credentials
from ingot.trust import Secret


def secret_keys(host: BareMetalHost) -> list[Key]:
    """Every Secret the host names; a change of one of them concerns the host."""
    spec = host.spec
    named = [spec.bmc.credentials_name, spec.preprovisioning_network_data_name]
    named += [ref.name for ref in (spec.user_data, spec.network_data, spec.meta_data) if ref is not None]
    return [Key(host.metadata.namespace, name) for name in dict.fromkeys(named) if name]


# The credentials of the BMC


async def bmc_credentials(p: Pass) -> tuple[Credentials, CredentialsStatus] | Block:
    """The credentials and which version of the Secret they are; or what is wrong with it."""
    name = p.host.spec.bmc.credentials_name
    if not name:
        return _no_credentials(
            "spec.bmc.credentialsName is empty. Name the Secret with the BMC's user name and password."
        )
    secret = await _read(p, name)
    if secret is None:
        return _no_credentials(
            f"Secret {name} with the BMC's user name and password does not exist in namespace {p.key.namespace}. "
            "Create it with the keys username and password; the next try starts as soon as it is there."
        )
    try:
        username, password = ((secret.text(part) or "").strip() for part in ("username", "password"))
    except Malformed as error:
        return _no_credentials(str(error))
    missing = [part for part, value in (("username", username), ("password", password)) if not value]
    if missing:
        return _no_credentials(
            f"Secret {name} has no {' and no '.join(missing)}. Add it; the next try starts as soon as it is there."
        )
    secret = await _claim(p, secret)
    version = CredentialsStatus(
        credentials=SecretReference(name=name, namespace=p.key.namespace),
        credentials_version=secret.metadata.resource_version,
    )
    return Credentials(username=username, password=Secret(password)), version


def _no_credentials(message: str) -> Block:
    return Block(ErrorType.REGISTRATION, message)


async def _claim(p: Pass, secret: SecretObject) -> SecretObject:
    """Mark the Secret as in use by the host, once."""
    label, value = SECRET_LABEL
    meta = secret.metadata
    change: dict[str, Any] = {}
    if meta.labels.get(label) != value:
        change["labels"] = {label: value}
    if not any(owner.uid == p.host.metadata.uid for owner in meta.owner_references):
        change["ownerReferences"] = wire([*meta.owner_references, owner_of(p.host)])
    if SECRET_FINALIZER not in meta.finalizers:
        change["finalizers"] = [*meta.finalizers, SECRET_FINALIZER]
    if not change or p.deleting:
        return secret
    claimed = await p.tools.client.patch(
        SECRETS, secret.key, {"metadata": change}, resource_version=meta.resource_version
    )
    p.tools.claimed.add(claimed.metadata.resource_version)
    return claimed


async def release_bmc_secret(p: Pass) -> None:
    """Take our finalizer off the BMC's Secret, unless another host uses it too."""
    name = p.host.spec.bmc.credentials_name
    if not name or _used_by_others(p, name):
        return
    secret = await _read(p, name)
    if secret is None or SECRET_FINALIZER not in secret.metadata.finalizers:
        return
    left = [finalizer for finalizer in secret.metadata.finalizers if finalizer != SECRET_FINALIZER]
    await p.tools.client.patch(
        SECRETS,
        secret.key,
        {"metadata": {"finalizers": left}},
        resource_version=secret.metadata.resource_version,
    )


def _used_by_others(p: Pass, name: str) -> bool:
    """A host that the back end is already forgetting needs it no more: two that go at once must not wait for each other."""
    return any(
        other.key != p.key
        and other.key.namespace == p.key.namespace
        and other.spec.bmc.credentials_name == name
        and other.state is not State.DELETING
        for other in p.tools.hosts.items()
    )


def owner_of(host: BareMetalHost, *, controller: bool | None = None) -> OwnerReference:
    return OwnerReference(
        api_version=BARE_METAL_HOSTS.api_version,
        kind=BARE_METAL_HOSTS.kind,
        name=host.metadata.name,
        uid=host.metadata.uid,
        controller=controller,
        block_owner_deletion=controller,
    )


# What the operating system is told


async def config_drive(p: Pass) -> ConfigDrive | Block:
    """User data, network data and metadata for the first boot; or what is wrong with their Secrets."""
    spec = p.host.spec
    network = spec.network_data or (
        SecretReference(name=spec.preprovisioning_network_data_name)
        if spec.preprovisioning_network_data_name
        else None
    )
    try:
        return ConfigDrive(
            user_data=await _value(p, spec.user_data, "userData"),
            network_data=await _value(p, network, "networkData", needed=False),
            meta_data=_meta_data(p.host, await _value(p, spec.meta_data, "metaData")),
        )
    except Malformed as error:
        return Block(ErrorType.PROVISIONING, str(error))


async def _value(p: Pass, ref: SecretReference | None, key: str, *, needed: bool = True) -> Secret:
    """The value under `key`, or under the key `value` that Cluster API writes."""
    if ref is None or not ref.name:
        return Secret("")
    if ref.namespace not in ("", p.key.namespace):
        raise Malformed(
            f"spec.{key} names a Secret in namespace {ref.namespace}. A host reads Secrets of its own namespace only; "
            f"put the Secret into {p.key.namespace}."
        )
    secret = await _read(p, ref.name)
    if secret is None:
        raise Malformed(
            f"Secret {ref.name}, named by spec.{key}, does not exist in namespace {p.key.namespace}. Create it; "
            "provisioning starts as soon as it is there."
        )
    text = secret.text(key)
    if text is None:
        text = secret.text("value")
    if text is None and needed:
        raise Malformed(
            f"Secret {ref.name}, named by spec.{key}, has neither the key {key} nor the key value."
        )
    return Secret(text or "")


def _meta_data(host: BareMetalHost, extra: Secret) -> dict[str, object]:
    name = host.metadata.name
    made: dict[str, object] = {
        "uuid": host.metadata.uid,
        "metal3-namespace": host.metadata.namespace,
        "metal3-name": name,
        "local-hostname": name,
        "local_hostname": name,
        "name": name,
    }
    if not extra:
        return made
    try:
        given = yaml.safe_load(extra.reveal())
    except (yaml.YAMLError, ValueError):
        # A date that does not exist is no YAMLError.
        given = None
    if not isinstance(given, dict):
        raise Malformed("The Secret named by spec.metaData does not hold a YAML or JSON mapping.")
    return made | {str(key): value for key, value in given.items()}


async def _read(p: Pass, name: str) -> SecretObject | None:
    try:
        return await p.tools.client.get(SECRETS, Key(p.key.namespace, name))
    except NotFound:
        return None
