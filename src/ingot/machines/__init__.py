"""Who gets which host: Machine and MachineSet, HostClaim and HostDeployPolicy.

Nothing lives here yet; the import rules already hold for it.
"""
