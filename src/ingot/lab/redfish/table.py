"""All resources of a BMC in one table, made once a profile and shared by all servers of it."""

from __future__ import annotations

from functools import cache

from ingot.lab.profiles import Profile
from ingot.lab.redfish import (
    bios,
    dell,
    enclosure,
    events,
    manager,
    media,
    service,
    storage,
    system,
    tasks,
    update,
)
from ingot.lab.redfish.dispatch import Table


@cache
def table_of(profile: Profile) -> Table:
    table = Table()
    for room in (service, system, bios, storage, manager, enclosure, update, tasks, events):
        room.add(table)
    media.add(table, profile)
    if profile.dell:
        dell.add(table)
    return table
