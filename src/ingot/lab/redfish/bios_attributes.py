"""The BIOS attributes of a server, and the registry that describes them. Pure; the rules for a value are here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from ingot.lab.components import Value
from ingot.lab.labfile import Plate
from ingot.lab.profiles import Profile
from ingot.lab.redfish.answers import Document

REGISTRY: Final = "BiosAttributeRegistry.v1_0_0"
_NICS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    name: str
    default: Value
    values: tuple[str, ...] = ()
    lowest: int = 0
    highest: int = 0
    longest: int = 0
    read_only: bool = False

    @property
    def type(self) -> str:
        if self.values:
            return "Enumeration"
        if isinstance(self.default, bool):
            return "Boolean"
        return "Integer" if isinstance(self.default, int) else "String"

    def fault(self, value: object) -> str:
        """Why this value cannot be; empty when it can."""
        if self.read_only:
            return f"{self.name} is read-only"
        match self.type:
            case "Enumeration":
                return "" if value in self.values else f"{self.name} must be one of {', '.join(self.values)}"
            case "Boolean":
                return "" if isinstance(value, bool) else f"{self.name} must be true or false"
            case "Integer":
                right = isinstance(value, int) and not isinstance(value, bool)
                if right and self.lowest <= int(str(value)) <= self.highest:
                    return ""
                return f"{self.name} must be a whole number from {self.lowest} to {self.highest}"
        if isinstance(value, str) and len(value) <= self.longest:
            return ""
        return f"{self.name} must be text of at most {self.longest} characters"

    def entry(self) -> Document:
        """The attribute in the registry."""
        found: dict[str, Any] = {
            "AttributeName": self.name,
            "DisplayName": self.name,
            "Type": self.type,
            "ReadOnly": self.read_only,
            "Immutable": False,
            "IsSystemUniqueProperty": self.name == "AssetTag",
            "ResetRequired": True,
            "DefaultValue": self.default,
        }
        match self.type:
            case "Enumeration":
                found["Value"] = [{"ValueName": one, "ValueDisplayName": one} for one in self.values]
            case "Integer":
                found |= {"LowerBound": self.lowest, "UpperBound": self.highest}
            case "String":
                found |= {"MinLength": 0, "MaxLength": self.longest}
        return found


def _switch(name: str, *, on: bool) -> Attribute:
    return Attribute(name=name, default="Enabled" if on else "Disabled", values=("Enabled", "Disabled"))


_PLAIN: Final = (
    _switch("ProcVirtualization", on=True),
    _switch("LogicalProc", on=True),
    _switch("SriovGlobalEnable", on=False),
    _switch("ProcTurboMode", on=True),
    _switch("WorkloadProfile", on=False),
    Attribute(name="BootMode", default="Uefi", values=("Uefi", "Bios")),
    Attribute(name="NumaNodesPerSocket", default=1, lowest=1, highest=4),
    Attribute(name="BootTimeout", default=5, lowest=0, highest=300),
    Attribute(name="QuietBoot", default=True),
    Attribute(name="AssetTag", default="", longest=63),
    Attribute(name="SystemModelName", default="", longest=63, read_only=True),
)
_HPE: Final = (_switch("ProcHyperthreading", on=True), _switch("Sriov", on=False))
"""The same switches under other names."""


def _dell() -> Iterator[Attribute]:
    """Which interfaces boot from the network."""
    interfaces = tuple(f"NIC.Integrated.1-{number}-1" for number in range(1, _NICS + 1))
    for number in range(1, 5):
        there = number <= _NICS
        yield _switch(f"PxeDev{number}EnDis", on=number == 1)
        yield Attribute(
            name=f"PxeDev{number}Interface",
            default=interfaces[number - 1] if there else interfaces[0],
            values=interfaces,
        )


@cache
def attributes(profile: Profile) -> dict[str, Attribute]:
    listed = [*_PLAIN, *(_HPE if profile.name == "hpe" else ()), *(_dell() if profile.dell else ())]
    return {attribute.name: attribute for attribute in listed}


def values(profile: Profile, plate: Plate, changed: dict[str, Value]) -> dict[str, Value]:
    """All attributes with their values now."""
    now = {name: attribute.default for name, attribute in attributes(profile).items()}
    return now | {"SystemModelName": profile.model} | changed


@cache
def registry(profile: Profile) -> Document:
    return {
        "@odata.type": "#AttributeRegistry.v1_3_6.AttributeRegistry",
        "Id": REGISTRY,
        "Name": "BIOS attribute registry",
        "Language": "en",
        "OwningEntity": profile.vendor,
        "RegistryVersion": "1.0.0",
        "RegistryEntries": {"Attributes": [one.entry() for one in attributes(profile).values()]},
    }
