"""The rules for claiming hosts, and for who may."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ingot.api.admission import annotated, images, labels, references
from ingot.api.admission.errors import FieldError, invalid
from ingot.api.admission.rules import Rules
from ingot.api.hostclaim import HostClaim
from ingot.api.hostdeploypolicy import HostDeployPolicy
from ingot.api.inputs.name_patterns import LONGEST, NamePattern, UnusablePattern

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def host_selector(claim: HostClaim) -> Iterator[FieldError]:
    selector = claim.spec.host_selector
    yield from labels.selector("spec.hostSelector", selector)
    if selector.in_namespace:
        yield from _namespace("spec.hostSelector.inNamespace", selector.in_namespace)


def failure_domain(claim: HostClaim) -> Iterator[FieldError]:
    """It is the value of a label."""
    yield from labels.value("spec.failureDomain", claim.spec.failure_domain)


def secret_names(claim: HostClaim) -> Iterator[FieldError]:
    spec = claim.spec
    yield from references.possible_names(
        {
            "spec.userData.name": spec.user_data.name if spec.user_data else "",
            "spec.networkData.name": spec.network_data.name if spec.network_data else "",
            "spec.metaData.name": spec.meta_data.name if spec.meta_data else "",
            "spec.image.ociAuthSecretName": spec.image.oci_auth_secret_name if spec.image else "",
        }
    )


def named_namespaces(policy: HostDeployPolicy) -> Iterator[FieldError]:
    wanted = policy.spec.host_claim_namespaces
    for index, name in enumerate((wanted.names or ()) if wanted else ()):
        yield from _namespace(f"spec.hostClaimNamespaces.names[{index}]", name)


def name_pattern(policy: HostDeployPolicy) -> Iterator[FieldError]:
    wanted = policy.spec.host_claim_namespaces
    pattern = wanted.name_matches if wanted else ""
    path = "spec.hostClaimNamespaces.nameMatches"
    try:
        NamePattern(pattern)
    except UnusablePattern as error:
        shown = pattern if len(pattern) <= LONGEST else f"{pattern[:LONGEST]}…"
        yield invalid(path, shown, f"this is not a regular expression that can be used: {error}.")


def namespace_labels(policy: HostDeployPolicy) -> Iterator[FieldError]:
    wanted = policy.spec.host_claim_namespaces
    for index, label in enumerate(wanted.has_labels if wanted else ()):
        path = f"spec.hostClaimNamespaces.hasLabels[{index}]"
        yield from labels.key(f"{path}.name", label.name)
        yield from labels.value(f"{path}.value", label.value or "")


def _namespace(path: str, name: str) -> Iterator[FieldError]:
    if not _NAMESPACE.fullmatch(name):
        yield invalid(
            path,
            name,
            "no namespace can have this name: up to 63 lower-case letters, digits and '-', beginning and ending with a letter "
            "or digit.",
        )


HOST_CLAIM: Final = Rules(
    HostClaim,
    (
        images.image,
        host_selector,
        failure_domain,
        references.namespaces,
        secret_names,
        annotated.reboots,
    ),
)
HOST_DEPLOY_POLICY: Final = Rules(HostDeployPolicy, (named_namespaces, name_pattern, namespace_labels))
