"""Bare metal to practise on: simulated servers that boot honestly and keep what was written.

A farm is one process with any number of servers. Each has a BMC (`redfish/`), disks, and a boot process (`machine`,
`firmware`) that fetches what it was told to boot, reads it, and runs what it finds: the ramdisk's agent (`agent/`), or the
operating system of a live medium or of a disk (`instance`).
Nothing is claimed that was not done: images are downloaded, checked, converted and written, and what a server reports to run is
read back from its disk. First file to read: `machine.py`.

Errors:

    LabError            a person must act; the message says what to do
    BootFailure         the server found nothing it could boot; it stays on and says so in its log
    StepFailed          a command of the agent failed; Ironic is told in the agent's own words
"""

from ingot.lab.errors import BootFailure, LabError, StepFailed
from ingot.lab.labfile import LabFile, Plate, SampleImage

__all__ = ["BootFailure", "LabError", "LabFile", "Plate", "SampleImage", "StepFailed"]
