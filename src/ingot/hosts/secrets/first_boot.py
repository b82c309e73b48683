"""What a new operating system is told at its first boot: user data, metadata, and its network.

Owns reading them out of the Secrets that the host names, and finding out before the machine is touched whether what is to be
installed can read them. What is wrong is a `Block` with a sentence that repeats nothing of what may be secret.
"""

from __future__ import annotations

from dataclasses import replace

import yaml

from ingot.api.baremetalhost import INSTALL_COREOS, BareMetalHost, CustomDeploy, ErrorType, Image
from ingot.api.inputs import coreos
from ingot.api.inputs.documents import TooMuch, load
from ingot.api.installed import deploy_method
from ingot.api.meta import Malformed, SecretReference
from ingot.hosts.host_pass import Pass
from ingot.hosts.metrics import METRICS
from ingot.hosts.outcome import Block
from ingot.hosts.secrets.network import network_data, own_network
from ingot.hosts.secrets.reading import named_secret
from ingot.provisioner import ConfigDrive
from ingot.trust import Secret


async def first_boot_data(
    p: Pass, image: Image | None, custom_deploy: CustomDeploy | None
) -> ConfigDrive | Block:
    """What this installation is told; or what is wrong with the Secrets, or why it cannot read them."""
    method = deploy_method(image, custom_deploy)
    try:
        drive = ConfigDrive(
            user_data=await _value(p, p.host.spec.user_data, "userData"),
            meta_data=_meta_data(p.host, await _value(p, p.host.spec.meta_data, "metaData")),
        )
        if method == INSTALL_COREOS:
            return await _for_coreos(p, drive)
        if not method and image is not None and image.format == "live-iso":
            # It has no disk of its own for a config drive.
            return drive
        return replace(drive, network_data=await network_data(p))
    except Malformed as error:
        return Block(ErrorType.PROVISIONING, str(error))


async def _for_coreos(p: Pass, drive: ConfigDrive) -> ConfigDrive:
    """CoreOS reads no config drive: whoever installs it finds its network in the metadata."""
    if (problem := coreos.problem_with(drive.user_data.reveal(), drive.meta_data)) is not None:
        raise Malformed(f"CoreOS cannot be installed: {problem}")
    keyfiles = await own_network(p, drive.meta_data)
    return replace(drive, meta_data={**drive.meta_data, coreos.KEYFILES: keyfiles}) if keyfiles else drive


async def _value(p: Pass, ref: SecretReference | None, key: str) -> Secret:
    """The value under `key`, or under the key `value` that Cluster API writes."""
    try:
        secret = await named_secret(p, ref, f"spec.{key}")
        if secret is None:
            return Secret("")
        text = secret.text(key)
        if text is None:
            text = secret.text("value")
        if text is None:
            raise Malformed(
                f"Secret {secret.metadata.name}, named by spec.{key}, has neither the key {key} nor the key value."
            )
    except Malformed:
        METRICS.unreadable(key)
        raise
    return Secret(text)


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
