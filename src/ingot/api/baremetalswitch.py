"""BareMetalSwitch: a network switch whose ports are configured for the hosts behind them, and how to log in to it."""

from __future__ import annotations

import enum
from typing import Annotated, Final, Literal

import msgspec

from ingot.api.baremetalhost.spec import WHOLE_MAC_PATTERN
from ingot.api.definition import Column, Definition
from ingot.api.meta import Condition, Model, Object, Resource, SecretReference
from ingot.api.schema import ATOMIC_MAP, doc, map_list

SwitchDriver = Literal["generic-switch"]


class ConditionType(enum.StrEnum):
    VALID = "Valid"


class ConditionReason(enum.StrEnum):
    RECONCILED = "Reconciled"
    CREDENTIAL_ERROR = "CredentialError"
    INVALID_SPEC = "InvalidSpec"
    """Something that admission refuses, where admission is asked."""
    SECRET_MISSING = "SecretMissing"  # noqa: S105 - a word
    """There is nowhere to write what the networking service should read."""


class BareMetalSwitchSpec(Model):
    """How to reach the switch."""

    address: Annotated[str, doc("IP address or DNS name of the switch's management.", required=True)] = ""
    credentials: Annotated[
        SecretReference | None,
        doc(
            "Secret in the same namespace with the keys `username` and either `password` or `ssh-privatekey`; "
            "`admin-password` where the switch asks for one more.",
            **ATOMIC_MAP,
        ),
    ] = None
    device_type: Annotated[
        str, doc("What sort of switch it is, in the words of its driver: netmiko_cisco_ios.", required=True)
    ] = ""
    disable_certificate_verification: Annotated[
        bool, doc("Accept any certificate from the switch. Whoever is in between can then read the password.")
    ] = False
    driver: Annotated[SwitchDriver, doc("What talks to the switch.", default="generic-switch")] = (
        "generic-switch"
    )
    mac_address: Annotated[
        str,
        doc(
            "MAC address of the switch, as it announces itself over LLDP; hosts are connected to it by this.",
            required=True,
            pattern=WHOLE_MAC_PATTERN,
        ),
    ] = ""
    port: Annotated[
        int | None,
        doc(
            "TCP port of the switch's management; the usual one of the protocol when absent.",
            minimum=1,
            maximum=65535,
            format="int32",
        ),
    ] = None


class BareMetalSwitchStatus(Model):
    conditions: Annotated[
        list[Condition],
        doc("`Valid`: all that is needed to configure the switch is there.", **map_list("type")),
    ] = msgspec.field(default_factory=list)


class BareMetalSwitch(Object):
    """A switch that hosts are connected to."""

    spec: Annotated[BareMetalSwitchSpec, doc("How to reach the switch.")] = msgspec.field(
        default_factory=BareMetalSwitchSpec
    )
    status: Annotated[BareMetalSwitchStatus, doc("Whether the switch can be used.")] = msgspec.field(
        default_factory=BareMetalSwitchStatus
    )


BARE_METAL_SWITCHES: Final = Resource(
    group="metal3.io",
    version="v1alpha1",
    kind="BareMetalSwitch",
    plural="baremetalswitches",
    type=BareMetalSwitch,
)

DEFINITION: Final = Definition(
    resource=BARE_METAL_SWITCHES,
    description="A network switch whose ports are configured for the hosts that are connected to it.",
    short_names=("bms",),
    columns=(
        Column("Driver", ".spec.driver", description="What talks to the switch"),
        Column("Device Type", ".spec.deviceType", description="What sort of switch it is"),
        Column("Address", ".spec.address", description="Where its management is"),
        Column(
            "Valid",
            '.status.conditions[?(@.type=="Valid")].status',
            description="Whether the switch can be used",
        ),
    ),
)
