"""Rules for what a host refers to. A host reads Secrets of its own namespace only, and only names that a Secret can have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ingot.api.admission.errors import FieldError, forbidden, invalid
from ingot.api.baremetalhost import BareMetalHost

_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def namespaces(host: BareMetalHost) -> Iterator[FieldError]:
    own = host.metadata.namespace
    spec = host.spec
    for field, reference in (
        ("userData", spec.user_data),
        ("networkData", spec.network_data),
        ("metaData", spec.meta_data),
    ):
        if reference is not None and reference.namespace not in ("", own):
            yield forbidden(
                f"spec.{field}.namespace",
                reference.namespace,
                f"the Secret has to be in the namespace of the host, {own!r}, not in {reference.namespace!r}. "
                "Copy it there and leave the namespace out.",
            )


def secret_names(host: BareMetalHost) -> Iterator[FieldError]:
    """A name that no Secret can have never resolves; in a URL it might resolve to something else."""
    spec = host.spec
    named = {
        "spec.bmc.credentialsName": spec.bmc.credentials_name,
        "spec.preprovisioningNetworkDataName": spec.preprovisioning_network_data_name,
        "spec.userData.name": spec.user_data.name if spec.user_data else "",
        "spec.networkData.name": spec.network_data.name if spec.network_data else "",
        "spec.metaData.name": spec.meta_data.name if spec.meta_data else "",
        "spec.image.ociAuthSecretName": spec.image.oci_auth_secret_name if spec.image else "",
    }
    for path, name in named.items():
        if name and (len(name) > 253 or not _SUBDOMAIN.fullmatch(name)):
            yield invalid(
                path,
                name,
                "no Secret can have this name: it consists of lower-case letters, digits, '-' and '.', "
                "and begins and ends with a letter or digit.",
            )
