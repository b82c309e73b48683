"""Where an image goes when the user does not say."""

import pytest

from ingot.api.baremetalhost import BareMetalHostSpec, BMCDetails, RootDeviceHints
from ingot.api.meta import Malformed
from ingot.hosts.states.profiles import profile_name, root_device


@pytest.mark.parametrize(
    ("profile", "address", "name", "hints"),
    [
        ("", "redfish-virtualmedia://10.0.0.1", "unknown", RootDeviceHints(device_name="/dev/sda")),
        ("", "libvirt://10.0.0.1", "libvirt", RootDeviceHints(device_name="/dev/vda")),
        ("dell", "", "dell", RootDeviceHints(hctl="0:0:0:0")),
        ("dell-raid", "", "dell-raid", RootDeviceHints(hctl="0:2:0:0")),
        ("openstack", "", "openstack", RootDeviceHints(device_name="/dev/vdb")),
        ("empty", "", "empty", None),
    ],
)
def test_a_profile_chooses_the_disk(
    profile: str, address: str, name: str, hints: RootDeviceHints | None
) -> None:
    spec = BareMetalHostSpec(hardware_profile=profile, bmc=BMCDetails(address=address))
    assert profile_name(spec) == name
    assert root_device(spec) == hints


def test_hints_of_the_user_come_before_the_profile() -> None:
    hints = RootDeviceHints(serial_number="S1")
    assert root_device(BareMetalHostSpec(hardware_profile="dell", root_device_hints=hints)) == hints


def test_an_unknown_profile_is_named_with_those_that_exist() -> None:
    with pytest.raises(Malformed, match=r"'huge'.*unknown, libvirt"):
        profile_name(BareMetalHostSpec(hardware_profile="huge"))
