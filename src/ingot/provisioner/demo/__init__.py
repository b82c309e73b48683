"""A back end without hardware: its machines are rows in a file, and a script says how they behave.

To try Ingot, to test what no real machine does on demand, and to measure what ten thousand of them would cost. Start reading at
`provisioner`; `machine` is what there is, `script` how it behaves, `carrying_out` how an order goes, `hall` where all is kept.
"""

from ingot.provisioner.demo.errors import DemoStateError
from ingot.provisioner.demo.provisioner import DemoProvisioner
from ingot.provisioner.demo.script import (
    AT_ONCE,
    BENCHMARK,
    FOREVER,
    Behaviour,
    HostScript,
    Outage,
    Script,
    ScriptError,
    read_script,
)

__all__ = [
    "AT_ONCE",
    "BENCHMARK",
    "FOREVER",
    "Behaviour",
    "DemoProvisioner",
    "DemoStateError",
    "HostScript",
    "Outage",
    "Script",
    "ScriptError",
    "read_script",
]
