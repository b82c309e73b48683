"""What a Machine wants: which hosts will do, and what is installed on the one it gets. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ingot.api.baremetalhost import INSTALL_COREOS, BareMetalHost
from ingot.api.installed import deploy_method
from ingot.api.machine import BareMetalMachineProviderSpec, InvalidProviderSpec, Machine, read_provider_spec
from ingot.api.meta import Malformed, SecretReference
from ingot.machines.choosing import FAILURE_DOMAIN, Wish
from ingot.machines.defaults import Resolved
from ingot.machines.demands import UnusableSelector, demands_of
from ingot.machines.machine.linking import consumer_of
from ingot.machines.machine.telling import Unusable
from ingot.machines.targets import Target, difference

Resolve = Callable[[BareMetalMachineProviderSpec], Resolved]
_WHERE: Final = "spec.providerSpec.value"
_INSTALLED: Final = frozenset({"image", "customDeploy", "userData"})
"""The fields, of a provider spec and of a host, that say what is installed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    wish: Wish
    target: Target
    source: str
    """Who says what is installed."""


def wanted_of(machine: Machine, resolve: Resolve) -> Wanted | Unusable:
    """What is to be done for the Machine, or why nothing can be. `resolve` knows what is installed where it does not say."""
    try:
        spec = read_provider_spec(machine.spec.provider_spec.value)
        demands = demands_of(spec.host_selector, path=f"{_WHERE}.hostSelector")
        found = resolve(spec)
        user_data = _user_data(machine, spec.user_data)
    except (Malformed, UnusableSelector) as error:
        return Unusable(str(error))
    return Wanted(
        Wish(
            claimant=machine.metadata.uid,
            demands=demands,
            failure_domain=machine.metadata.labels.get(FAILURE_DOMAIN, ""),
            coreos=deploy_method(found.image, found.custom_deploy) == INSTALL_COREOS,
        ),
        Target(
            consumer=consumer_of(machine),
            online=True,
            image=found.image,
            custom_deploy=found.custom_deploy,
            user_data=user_data,
        ),
        found.source,
    )


def _user_data(machine: Machine, given: SecretReference | None) -> SecretReference | None:
    """A host reads Secrets in its own namespace only, which is the Machine's."""
    if given is None or not given.name:
        return None
    here = machine.metadata.namespace
    if given.namespace not in ("", here):
        raise InvalidProviderSpec(
            f"{_WHERE}.userData names a Secret in namespace {given.namespace}, and a host reads those of its own alone. "
            f"Put the Secret into {here}, and leave userData.namespace out."
        )
    return SecretReference(name=given.name, namespace=here)


def keeping(host: BareMetalHost, wanted: Wanted) -> Target:
    """The target on this host. Network and meta data are the host's own, and a Machine says nothing about them."""
    return replace(wanted.target, network_data=host.spec.network_data, meta_data=host.spec.meta_data)


def asks_for_something_else(host: BareMetalHost, wanted: Wanted | Unusable) -> bool:
    """Whether the Machine of this host would have something else installed, if it could choose again."""
    if isinstance(wanted, Unusable):
        return True
    return not _INSTALLED.isdisjoint(difference(host, keeping(host, wanted)).get("spec", ()))


def is_another_target(one: Machine, other: Machine) -> bool:
    """Whether two provider specs differ in what is installed, and not merely in which hosts would do."""
    return any(
        (one.spec.provider_spec.value or {}).get(field) != (other.spec.provider_spec.value or {}).get(field)
        for field in _INSTALLED
    )
