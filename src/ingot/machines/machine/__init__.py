"""Machines: each takes a host that fits and has something installed on it.

linking    which host is whose, as both sides write it down
telling    what a Machine says of its host: addresses, state, phase
"""
