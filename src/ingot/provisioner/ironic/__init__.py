"""The Ironic back end: async client, node cache fed by push, one module per verb.

`IronicProvisioner` is the protocol; `IronicAccess.from_environment` says where Ironic is; `PushListen` is where its pushes
come in. Read on in `provisioner` (the parts and how they hang together), `carrying_out` (how a verb is done), `cache` (what
is believed when). Errors: see `errors`; all that leaves this package is a `BackendError`.
"""

from ingot.provisioner.ironic.provisioner import IronicProvisioner
from ingot.provisioner.ironic.push import PushListen
from ingot.provisioner.ironic.settings import IronicAccess, Ramdisk, SettingsError

__all__ = ["IronicAccess", "IronicProvisioner", "PushListen", "Ramdisk", "SettingsError"]
