"""HostUpdatePolicy: whether a host that is in use may be changed at its next reboot.

Belongs to the host of the same namespace and name. Without one, firmware is touched only while a host is prepared for use.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from ingot.api.definition import Definition
from ingot.api.meta import Model, Object, Resource
from ingot.api.schema import doc

UpdatePolicy = Literal["onPreparing", "onReboot"]


class HostUpdatePolicySpec(Model):
    """When changes are applied."""

    firmware_settings: Annotated[
        UpdatePolicy | None,
        doc(
            "When HostFirmwareSettings are applied: `onPreparing`, before the host is available (the default), or also "
            "`onReboot`, when a host in use is rebooted."
        ),
    ] = None
    firmware_updates: Annotated[
        UpdatePolicy | None,
        doc("When HostFirmwareComponents are updated: `onPreparing` (the default) or also `onReboot`."),
    ] = None


class HostUpdatePolicyStatus(Model):
    """Nothing is said here; the kind has the field."""


class HostUpdatePolicy(Object):
    """When one host may be changed."""

    spec: Annotated[HostUpdatePolicySpec, doc("When changes are applied.")] = msgspec.field(
        default_factory=HostUpdatePolicySpec
    )
    status: Annotated[HostUpdatePolicyStatus, doc("Not used.")] = msgspec.field(
        default_factory=HostUpdatePolicyStatus
    )


HOST_UPDATE_POLICIES: Final = Resource(
    group="metal3.io",
    version="v1alpha1",
    kind="HostUpdatePolicy",
    plural="hostupdatepolicies",
    type=HostUpdatePolicy,
)

DEFINITION: Final = Definition(
    resource=HOST_UPDATE_POLICIES,
    description="Whether the BareMetalHost of the same name may get new firmware and settings while it is in use.",
    columns=(),
    has_status=False,
)
