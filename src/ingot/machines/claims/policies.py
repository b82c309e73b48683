"""Which namespaces may have hosts of which: what the HostDeployPolicies beside the hosts say. Pure.

A policy speaks for the hosts of its own namespace. All demands that it makes have to be met; one of several policies is enough.
Whatever is in doubt means no: without a policy, with one that makes no demand, and with one that cannot be understood, nobody
may have anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ingot.api.admission import claims as rules
from ingot.api.core import Namespace
from ingot.api.hostdeploypolicy import HostDeployPolicy
from ingot.api.inputs.name_patterns import name_pattern

_RULES: Final = (rules.named_namespaces, rules.name_pattern, rules.namespace_labels)


def host_namespaces(policies: Iterable[HostDeployPolicy], namespace: Namespace) -> frozenset[str]:
    """The namespaces whose hosts a claim in this namespace may have."""
    allowed: set[str] = set()
    for policy in policies:
        if policy.metadata.namespace not in allowed and allows(policy, namespace):
            allowed.add(policy.metadata.namespace)
    return frozenset(allowed)


def allows(policy: HostDeployPolicy, namespace: Namespace) -> bool:
    wanted = policy.spec.host_claim_namespaces
    if wanted is None or policy.metadata.deletion_timestamp is not None or problem_with(policy) is not None:
        return False
    name, labels = namespace.metadata.name, namespace.metadata.labels
    return (
        (wanted.names is None or name in wanted.names)
        and (not wanted.name_matches or name_pattern(wanted.name_matches).is_in(name))
        and all(
            label.name in labels and label.value in (None, "", labels[label.name])
            for label in wanted.has_labels
        )
    )


def problem_with(policy: HostDeployPolicy) -> str | None:
    """Why the policy allows nobody, whoever asks, for whoever wrote it; None for one that can be used."""
    wanted = policy.spec.host_claim_namespaces
    if wanted is None:
        return "The policy says nothing about who may claim hosts, so it lets nobody. Say so in spec.hostClaimNamespaces."
    for rule in _RULES:
        for error in rule(policy):
            return f"The policy cannot be used, so it lets nobody claim hosts: {error}"
    if wanted.names is None and not wanted.name_matches and not wanted.has_labels:
        return (
            "The policy makes no demand in spec.hostClaimNamespaces, so it lets nobody claim hosts. To let every namespace do "
            "so, write nameMatches: '.*'."
        )
    return None
