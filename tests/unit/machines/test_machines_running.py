"""What is run together: every kind is watched once, and hosts not at all where somebody in the process knows them already."""

from __future__ import annotations

import pytest

from ingot.kube import Access, Client, EventRecorder, Informer
from ingot.machines.defaults import BrokenDefault
from ingot.machines.pool import host_informer
from ingot.machines.running import MachineSettings, Running, machines

NOWHERE = "https://127.0.0.1:1"


async def made(settings: MachineSettings, *, share_hosts: bool = False) -> Running:
    """Nothing is run, so nobody is asked."""
    async with Client(Access(server=NOWHERE)) as client:
        hosts = host_informer(client) if share_hosts else None
        return machines(client, EventRecorder(client), settings, hosts=hosts)


def names(informers: list[Informer[object]]) -> list[str]:
    return sorted(informer.name for informer in informers)


async def test_no_kind_is_watched_twice() -> None:
    found = names((await made(MachineSettings())).informers)
    assert len(set(found)) == len(found)
    assert "BareMetalHosts" in found


async def test_hosts_that_somebody_knows_already_are_not_watched_again() -> None:
    alone, shared = await made(MachineSettings()), await made(MachineSettings(), share_hosts=True)
    assert set(names(alone.informers)) - set(names(shared.informers)) == {"BareMetalHosts"}
    assert [one.name for one in alone.controllers] == [one.name for one in shared.controllers]


async def test_one_namespace_is_one_namespace_but_for_kinds_that_have_none() -> None:
    found = names((await made(MachineSettings(namespace="rack"))).informers)
    assert [name for name in found if not name.endswith(" in rack")] == ["Namespaces", "Nodes"]


async def test_the_default_of_the_cluster_is_read_where_a_namespace_is_named() -> None:
    assert not [name for name in names((await made(MachineSettings())).informers) if "ConfigMap" in name]
    told = await made(MachineSettings(defaults_namespace="metal"))
    assert "ConfigMaps in metal" in names(told.informers)


async def test_a_default_of_the_release_that_cannot_be_read_starts_nothing() -> None:
    with pytest.raises(BrokenDefault):
        await made(MachineSettings(release_target="image: [no, mapping]"))
