"""The provider spec of a Machine: which host will do, and what is installed on it.

It stands in `spec.providerSpec.value`, which an API keeps as it is; so it is read here, strictly: a field that does not exist
is a misspelling, and a machine with the wrong operating system is worse than none.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from ingot.api.baremetalhost import CustomDeploy
from ingot.api.hostselector import HostSelector
from ingot.api.meta import Malformed, Model, SecretReference
from ingot.api.schema import ATOMIC_MAP, JsonObject, doc
from ingot.api.strict import problem_with_value

API_VERSION: Final = "baremetal.cluster.k8s.io/v1alpha1"
KIND: Final = "BareMetalMachineProviderSpec"


class InvalidProviderSpec(Malformed):
    """A Machine does not say what is wanted in a way that can be done."""


class MachineImage(Model):
    """What to write to the disk of the host."""

    checksum: Annotated[str, doc("Checksum of the image, or the URL of a file that holds it.")] = ""
    url: Annotated[str, doc("Where the image is.")] = ""


class BareMetalMachineProviderSpec(Model):
    """Which host will do, and what is installed on it."""

    api_version: Annotated[str, doc(f"Always {API_VERSION}.")] = ""
    kind: Annotated[str, doc(f"Always {KIND}.")] = ""
    custom_deploy: Annotated[CustomDeploy, doc("Install by a named deploy step.")] = msgspec.field(
        default_factory=CustomDeploy
    )
    host_selector: Annotated[HostSelector, doc("Which hosts will do.")] = msgspec.field(
        default_factory=HostSelector
    )
    image: Annotated[MachineImage, doc("What to write to the disk of the host.")] = msgspec.field(
        default_factory=MachineImage
    )
    metadata: Annotated[JsonObject | None, doc("Not used.")] = None
    user_data: Annotated[
        SecretReference | None,
        doc("Secret with what the installed system reads at its first boot.", **ATOMIC_MAP),
    ] = None


def read_provider_spec(value: JsonObject | None) -> BareMetalMachineProviderSpec:
    """The provider spec of a Machine; raises `InvalidProviderSpec` for one that cannot be understood.

    It need not say what to install: there may be a default for that, which is not known here.
    """
    # A Go program writes null where it has nothing to say.
    value = {field: found for field, found in (value or {}).items() if found is not None}
    if not value:
        raise InvalidProviderSpec(
            "spec.providerSpec.value is empty. Write a BareMetalMachineProviderSpec there."
        )
    named = (value.get("apiVersion") or API_VERSION, value.get("kind") or KIND)
    if named != (API_VERSION, KIND):
        raise InvalidProviderSpec(
            f"spec.providerSpec.value is a {named[1]} ({named[0]}), and a {KIND} ({API_VERSION}) is needed."
        )
    if problem := problem_with_value(value, BareMetalMachineProviderSpec):
        raise InvalidProviderSpec(f"spec.providerSpec.value {problem}.")
    return msgspec.convert(value, BareMetalMachineProviderSpec)
