"""Root device hints. Ironic reads each as an expression (`s== sda`, `<in> Dell`), and `deviceName` is the one path of a user's
that reaches it: that of a device."""

from __future__ import annotations

from ingot.api.baremetalhost import RootDeviceHints
from ingot.api.inputs.hints import problems_with
from ingot.provisioner.ironic.firewall.rejection import reject


def root_device_hints(field: str, found: RootDeviceHints | None) -> None:
    for problem in problems_with(found):
        raise reject(f"{field}.{problem.field}", problem.found, problem.sentence)
