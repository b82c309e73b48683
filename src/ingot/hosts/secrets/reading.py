"""The Secrets of a host: the BMC's credentials, and what its operating system is told.

Owns reading them, always from the host's own namespace. Values are read for one pass and kept nowhere. A Secret that is missing
or incomplete is a `Block` with a sentence: nothing is tried until it changes, and its change is noticed at once. Credentials are
told apart by what they are: a Secret that got another label is no reason to try them anew. The marks on Secrets are those of
`secret_marks`.
"""

from __future__ import annotations

import yaml

from ingot.api.baremetalhost import (
    BARE_METAL_HOSTS,
    INSTALL_COREOS,
    BareMetalHost,
    CredentialsStatus,
    CustomDeploy,
    ErrorType,
    EventReason,
    Image,
)
from ingot.api.core import SECRETS, SecretObject
from ingot.api.inputs import coreos
from ingot.api.inputs.documents import TooMuch, load
from ingot.api.installed import deploy_method
from ingot.api.meta import Key, Malformed, OwnerReference, SecretReference
from ingot.hosts.host_pass import Pass
from ingot.hosts.metrics import METRICS
from ingot.hosts.outcome import Block
from ingot.hosts.secrets.marks import claim
from ingot.kube import NotFound
from ingot.provisioner import ConfigDrive, Credentials
from ingot.trust import Secret

# The credentials of the BMC


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


async def first_boot_data(
    p: Pass, image: Image | None, custom_deploy: CustomDeploy | None
) -> ConfigDrive | Block:
    """The same for what is to be installed; or why that cannot read it."""
    drive = await config_drive(p)
    if isinstance(drive, Block) or deploy_method(image, custom_deploy) != INSTALL_COREOS:
        return drive
    problem = coreos.problem_with(drive.user_data.reveal(), drive.meta_data)
    if problem is None:
        return drive
    return Block(ErrorType.PROVISIONING, f"CoreOS cannot be installed: {problem}")


async def _value(p: Pass, ref: SecretReference | None, key: str, *, needed: bool = True) -> Secret:
    """The value under `key`, or under the key `value` that Cluster API writes."""
    try:
        return await _read_value(p, ref, key, needed=needed)
    except Malformed:
        METRICS.unreadable(key)
        raise


async def _read_value(p: Pass, ref: SecretReference | None, key: str, *, needed: bool) -> Secret:
    if ref is None or not ref.name:
        return Secret("")
    if ref.namespace not in ("", p.key.namespace):
        raise Malformed(
            f"spec.{key} names a Secret in namespace {ref.namespace}. A host reads Secrets of its own namespace only; "
            f"put the Secret into {p.key.namespace}."
        )
    secret = await read_secret(p, ref.name)
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
        given = load(extra.reveal())
    except TooMuch as error:
        raise Malformed(
            f"The Secret named by spec.metaData is {error}; nobody could have meant that."
        ) from None
    except (yaml.YAMLError, ValueError):
        # A date that does not exist is no YAMLError.
        given = None
    if not isinstance(given, dict):
        raise Malformed("The Secret named by spec.metaData does not hold a YAML or JSON mapping.")
    return made | {str(key): value for key, value in given.items()}


async def read_secret(p: Pass, name: str) -> SecretObject | None:
    """A Secret of the host's namespace, read once in a pass; None where there is none of that name."""
    if name not in p.secrets:
        try:
            p.secrets[name] = await p.tools.client.get(SECRETS, Key(p.key.namespace, name))
        except NotFound:
            return None
    return p.secrets[name]
