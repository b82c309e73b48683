"""Kernel arguments: the one place where users' text gets into the script of a boot loader."""

from __future__ import annotations

from ingot.api.inputs.kernel_arguments import problem_with
from ingot.provisioner.ironic.firewall.rejection import reject


def kernel_arguments(field: str, found: str) -> None:
    if (problem := problem_with(found)) is not None:
        raise reject(field, found, problem)
