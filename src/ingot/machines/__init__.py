"""Who gets which host: Machine and MachineSet, HostClaim and HostDeployPolicy.

demands      what is asked of the labels of a host
vacancies    whether a host can be had, and why not
choosing     which of those that can be had a claimant gets
targets      what a claimant sets on a host, and takes off it again
defaults     what a Machine installs that does not say so
pool         the hosts as claimants see them
waiting      who wants a host and has none
machine      the controller of Machines
machineset   that of MachineSets
claims       that of HostClaims
remediation  Machines whose node does not answer
running      all of them together
explaining   a Machine or a claim in words
"""
