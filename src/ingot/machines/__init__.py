"""Who gets which host: Machine and MachineSet, HostClaim and HostDeployPolicy.

demands      what is asked of the labels of a host
vacancies    whether a host can be had, and why not
choosing     which of those that can be had a claimant gets
"""
