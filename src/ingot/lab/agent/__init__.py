"""The simulated ironic-python-agent: what runs on a server that booted the ramdisk."""

from ingot.lab.agent.agent import Agent

__all__ = ["Agent"]
