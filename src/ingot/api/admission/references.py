"""Rules for what an object refers to. Secrets are read in its own namespace only, and only under names that a Secret can have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from ingot.api.admission.errors import FieldError, forbidden, invalid
from ingot.api.baremetalhost import BareMetalHost
from ingot.api.hostclaim import HostClaim
from ingot.api.meta import Object, SecretReference

_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def namespaces(host: BareMetalHost | HostClaim) -> Iterator[FieldError]:
    spec = host.spec
    yield from own_namespace(host, "spec.userData", spec.user_data)
    yield from own_namespace(host, "spec.networkData", spec.network_data)
    yield from own_namespace(host, "spec.metaData", spec.meta_data)


def own_namespace(owner: Object, path: str, reference: SecretReference | None) -> Iterator[FieldError]:
    own = owner.metadata.namespace
    if reference is not None and reference.namespace not in ("", own):
        yield forbidden(
            f"{path}.namespace",
            reference.namespace,
            f"the Secret has to be in the namespace of this object, {own!r}, not in {reference.namespace!r}. "
            "Copy it there and leave the namespace out.",
        )


def secret_names(host: BareMetalHost) -> Iterator[FieldError]:
    spec = host.spec
    named = {
        "spec.bmc.credentialsName": spec.bmc.credentials_name,
        "spec.preprovisioningNetworkDataName": spec.preprovisioning_network_data_name,
        "spec.userData.name": spec.user_data.name if spec.user_data else "",
        "spec.networkData.name": spec.network_data.name if spec.network_data else "",
        "spec.metaData.name": spec.meta_data.name if spec.meta_data else "",
        "spec.image.ociAuthSecretName": spec.image.oci_auth_secret_name if spec.image else "",
    }
    yield from possible_names(named)


def possible_names(named: Mapping[str, str], *, kind: str = "Secret") -> Iterator[FieldError]:
    """A name that no object can have never resolves; in a URL it might resolve to something else. Paths and names."""
    for path, name in named.items():
        if name and (len(name) > 253 or not _SUBDOMAIN.fullmatch(name)):
            yield invalid(
                path,
                name,
                f"no {kind} can have this name: it consists of lower-case letters, digits, '-' and '.', "
                "and begins and ends with a letter or digit.",
            )
