"""What Ironic's API sends, as structs that decode at the edge.

`Node` is what the cache keeps of a node: the fields that push events and the bulk list carry. `FullNode` adds the record
that only a GET of one node shows. Ironic sends null for "nothing"; fields that are used as text keep None, so that "never
known" and "empty" stay apart where it matters. Passwords in `driver_info` come masked from Ironic.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
else:
    # msgspec cannot decode into a type that refers to itself; what it makes of Any is exactly the above.
    Json = Any


def step_name(value: Json) -> str | None:
    """Push sends the name of a step, the API the whole step, both send nothing when there is none."""
    if isinstance(value, dict):
        value = value.get("step")
    return value if isinstance(value, str) and value else None


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A node as the cache knows it."""

    uuid: str
    name: str | None = None
    provision_state: str = ""
    target_provision_state: str | None = None
    power_state: str | None = None
    target_power_state: str | None = None
    maintenance: bool = False
    fault: str | None = None
    last_error: str | None = None
    health: str | None = None
    instance_uuid: str | None = None
    provision_updated_at: datetime | None = None
    inspection_finished_at: datetime | None = None
    clean_step: Json = None
    deploy_step: Json = None
    service_step: Json = None

    @property
    def step(self) -> str | None:
        """The name of the step that runs now. Ironic leaves the last step of an earlier phase behind."""
        phase = self.provision_state.partition(" ")[0]
        for field, phases in (
            (self.clean_step, ("cleaning", "clean")),
            (self.deploy_step, ("deploying", "wait")),
            (self.service_step, ("servicing", "service")),
        ):
            if phase in phases:
                return step_name(field)
        return None


LIST_FIELDS: Final = tuple(Node.__struct_fields__)
"""What the bulk list asks for. Never updated_at, created_at or conductor: Ironic answers 500 to those."""

# The field appeared with this minor version of the API; asking for it earlier is an error.
FIELD_SINCE: Final = {"health": 109, "service_step": 87}


class FullNode(Node, frozen=True, kw_only=True):
    """A node with its whole record."""

    driver: str = ""
    driver_info: dict[str, Json] = msgspec.field(default_factory=dict)
    driver_internal_info: dict[str, Json] = msgspec.field(default_factory=dict)
    instance_info: dict[str, Json] = msgspec.field(default_factory=dict)
    properties: dict[str, Json] = msgspec.field(default_factory=dict)
    extra: dict[str, Json] = msgspec.field(default_factory=dict)
    """For Ironic's users to keep notes in."""
    network_data: dict[str, Json] | None = None
    reservation: str | None = None
    """Which conductor holds the node's lock."""
    automated_clean: bool | None = None
    disable_power_off: bool = False
    bios_interface: str | None = None
    boot_interface: str | None = None
    deploy_interface: str | None = None
    firmware_interface: str | None = None
    inspect_interface: str | None = None
    management_interface: str | None = None
    power_interface: str | None = None
    raid_interface: str | None = None
    vendor_interface: str | None = None

    def remembered(self) -> Node:
        """What the cache keeps of it."""
        return Node(**{name: getattr(self, name) for name in LIST_FIELDS})

    @property
    def bmc_address(self) -> str:
        for key in ("redfish_address", "ipmi_address"):
            if isinstance(address := self.driver_info.get(key), str):
                return address
        return "an unknown address"

    def interface(self, kind: str) -> str | None:
        """The node's interface of a kind, such as boot or raid."""
        found: str | None = getattr(self, f"{kind}_interface")
        return found


class NodeList(msgspec.Struct):
    nodes: list[Node]


class Port(msgspec.Struct):
    uuid: str = ""
    address: str = ""
    node_uuid: str = ""
    pxe_enabled: bool = True


class PortList(msgspec.Struct):
    ports: list[Port]


class HistoryEntry(msgspec.Struct):
    created_at: str = ""
    severity: str | None = None
    event_type: str | None = None
    event: str | None = None


class HistoryList(msgspec.Struct):
    history: list[HistoryEntry]


class BiosSetting(msgspec.Struct):
    """A firmware setting as Ironic last read it. What the BMC does not say of it is null."""

    name: str = ""
    value: str | None = None
    attribute_type: str | None = None
    allowable_values: list[str] | None = None
    lower_bound: int | None = None
    max_length: int | None = None
    min_length: int | None = None
    read_only: bool | None = None
    unique: bool | None = None
    upper_bound: int | None = None


class BiosSettings(msgspec.Struct):
    bios: list[BiosSetting]


class FirmwareComponent(msgspec.Struct):
    component: str = ""
    initial_version: str | None = None
    current_version: str | None = None
    last_version_flashed: str | None = None


class FirmwareComponents(msgspec.Struct):
    firmware: list[FirmwareComponent]


class Validation(msgspec.Struct):
    """What one interface of the driver says of the node. None: it has nothing to say."""

    result: bool | None = None
    reason: str | None = None


class VirtualMedium(msgspec.Struct):
    """One virtual drive, as the BMC shows it."""

    media_types: list[str] = msgspec.field(default_factory=list)
    inserted: bool | None = None


class BmcSubscription(msgspec.Struct, rename="pascal"):
    id: str = ""
    destination: str = ""
    context: str | None = None


class _Member(msgspec.Struct):
    path: str = msgspec.field(name="@odata.id", default="")


class BmcSubscriptions(msgspec.Struct, rename="pascal"):
    members: list[_Member] = msgspec.field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return [member.path.rstrip("/").rpartition("/")[2] for member in self.members]


class Driver(msgspec.Struct):
    name: str = ""
    hosts: list[str] = msgspec.field(default_factory=list)


class DriverList(msgspec.Struct):
    drivers: list[Driver]


class _Version(msgspec.Struct):
    version: str = ""


class Root(msgspec.Struct):
    version: _Version = msgspec.field(default_factory=_Version)


class PatchOperation(msgspec.Struct, omit_defaults=True):
    """One operation of a JSON patch. `value` is left out for `remove`."""

    op: str
    path: str
    value: Json | msgspec.UnsetType = msgspec.UNSET


def add(path: str, value: Json) -> PatchOperation:
    """Ironic takes `add` for a member that is there as well, and puts the new value in its place."""
    return PatchOperation(op="add", path=path, value=value)


def remove(path: str) -> PatchOperation:
    return PatchOperation(op="remove", path=path)
