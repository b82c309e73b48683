"""What the MachineSet controller follows, and what it asks of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.core import Node
from ingot.api.machine import Machine, MachineSet
from ingot.api.meta import Key
from ingot.kube import Informer
from ingot.machines.machineset.counting import is_well

VOICE: Final = "machineset"
"""Whose events these are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    sets: Informer[MachineSet]
    machines: Informer[Machine]
    nodes: Informer[Node]
    hosts: Informer[BareMetalHost]

    def node_of(self, machine: Machine) -> Node | None:
        reference = machine.status.node_ref
        return self.nodes.get(Key("", reference.name)) if reference is not None else None

    def is_well(self, machine: Machine) -> bool:
        return is_well(machine, self.node_of(machine))
