"""The BMC of a simulated server: Redfish over TLS."""

from ingot.lab.redfish.bmc import Bmc

__all__ = ["Bmc"]
