"""HostClaim and HostDeployPolicy: hosts for tenants, who see a claim and never the host's management controller.

Read on in `reconciling`, which is a pass over one claim. Pure: `policies` says who may have which hosts, `linking` who has which,
`data` what is copied for a host, `reboots` what is handed on to it, `telling` what tenants read. At the edge: `taking` and
`leaving`, `deserted` for hosts whose claim is gone, `secrets` and `hardware` with the copies, `writing`; `controller` says what
wakes a claim.
"""

from ingot.machines.claims.controller import claim_informer, controller
from ingot.machines.claims.secrets import secret_informer

__all__ = ["claim_informer", "controller", "secret_informer"]
