"""The campaign: hosts parked one in each moment of a host's life, kill -9 of the operator, of Ironic, of both, then all let go.

A server is parked by the farm (it waits in the middle of its boot, of its inspection, of a step) or by a BMC so slow that nothing
comes to its end. Every host has to come to where it was going, with no error that a person has to look after, and the servers
count: none is deployed twice, none is cleaned twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from ironic_room import Host, Room

from ingot.api.baremetalhost import BARE_METAL_HOSTS, Annotation, BareMetalHost
from ingot.api.hostupdatepolicy import HOST_UPDATE_POLICIES
from ingot.lab.faults import Faults
from ingot.provisioner.ironic.model import FullNode

CLEANING = "erase_devices_metadata"
GOING = "powering off before delete"
SLOW = Faults(slow_seconds=3)
"""Registering asks a BMC some eighteen times, so this lasts for as long as the kills do."""

SLOWER = Faults(slow_seconds=12)
"""Switching asks it three times."""

Kill = tuple[str, ...]
KILLS: tuple[Kill, ...] = (("ironic",), ("operator",), ("operator", "ironic"))
"""Who dies, one after the other. Ironic first: it is at work in every moment, and some do not last."""


class Moment(NamedTuple):
    """A moment of a host's life: the way to it, where it goes on from there, and what the server has seen at the end."""

    name: str
    park: Callable[[Host], Awaitable[object]]
    arrives: Callable[[Host], Awaitable[object]]
    deployments: int
    cleanings: int
    is_in: Callable[[Host], Awaitable[bool]]
    """Whether the host is in this moment now."""
    slow_down: Callable[[Host], Awaitable[object]] | None = None
    """The last piece of the way, for a moment that a slow BMC makes last: it begins when all others are parked."""
    is_brief: bool = False
    """A few calls, and it is over, however slow the BMC is: it begins last of all, right before the first kill."""
    is_told: bool = False
    """Its user may be warned: firmware that was being changed when somebody was killed. Of no other moment."""


def held(place: str) -> Callable[[Host], Awaitable[bool]]:
    """In the moment for as long as the server is held there."""

    async def is_held(host: Host) -> bool:
        return (await host.seen()).held_at == place

    return is_held


def as_a_node(condition: Callable[[FullNode], bool]) -> Callable[[Host], Awaitable[bool]]:
    """In the moment for as long as Ironic has it like this."""

    async def is_like_this(host: Host) -> bool:
        node = await host.node()
        return node is not None and condition(node)

    return is_like_this


def at_rest(state: str) -> Callable[[Host], Awaitable[bool]]:
    return as_a_host(lambda found: found.status.provisioning.state == state)


def as_a_host(condition: Callable[[BareMetalHost], bool]) -> Callable[[Host], Awaitable[bool]]:
    async def is_like_this(host: Host) -> bool:
        found = host.room.hosts.get(host.key)
        return found is not None and condition(found)

    return is_like_this


async def _held(host: Host, place: str) -> None:
    await host.until_seen(lambda seen: seen.held_at == place, f"held at {place}")


async def _let_go(host: Host) -> None:
    await host.room.lab.release(host.name)
    await host.behave()


async def _nowhere(_: Host) -> None:
    """No object describes it."""


async def _registering(host: Host) -> None:
    await host.behave(SLOW)
    await host.create(inspectionMode="disabled")
    await host.until_node(_is_verified, "being verified")


def _is_verified(node: FullNode) -> bool:
    return node.provision_state == "verifying"


async def _inspecting(host: Host) -> None:
    await host.hold("inspection")
    await host.create()
    await _held(host, "inspection")


async def _cleaning(host: Host) -> None:
    await host.hold(CLEANING)
    await host.create(inspectionMode="disabled", image=host.image(), automatedCleaningMode="metadata")
    await _held(host, CLEANING)


async def _wiped(host: Host) -> None:
    """What comes after a cleaning is its end: the agent is switched off, which a slow BMC makes last."""
    await host.behave(SLOW)
    await host.room.lab.release(host.name)
    await host.until_seen(lambda seen: seen.cleanings == 1, "wiped")
    await host.until_node(_is_past_its_wipe, "past its wipe")


def _is_past_its_wipe(node: FullNode) -> bool:
    return node.provision_state == "cleaning" and not node.step


async def _booting_to_deploy(host: Host) -> None:
    await host.hold("boot")
    await host.create(inspectionMode="disabled", image=host.image())
    await _held(host, "boot")


async def _writing(host: Host) -> None:
    await host.hold("write_image")
    await host.create(inspectionMode="disabled", image=host.image("qcow2"))
    await _held(host, "write_image")


async def _written(host: Host) -> None:
    """What comes after the image is over in a second; a slow BMC makes it last."""
    await host.behave(SLOW)
    await host.room.lab.release(host.name)
    await host.until_node(_is_past_its_image, "past its image")


def _is_past_its_image(node: FullNode) -> bool:
    return node.step in ("prepare_instance_boot", "tear_down_agent", "boot_instance")


async def _provisioned(host: Host) -> None:
    await host.create(inspectionMode="disabled", image=host.image())
    await host.reaches("provisioned")
    await host.until_running()


async def _runs_something(host: Host) -> None:
    await host.create(externallyProvisioned=True)
    await host.reaches("externally provisioned")
    await host.until_power(on=True)


async def _runs_on(host: Host) -> None:
    await host.until_well("externally provisioned")
    await host.until_power(on=True)


async def _available(host: Host) -> None:
    await host.create(inspectionMode="disabled")
    await host.reaches("available")


async def _boots_live(host: Host) -> None:
    """A system that runs from its medium; nothing is written."""
    made = await host.room.live_image()
    await host.create(inspectionMode="disabled", image={"url": made.url, "format": "live-iso"})
    await host.reaches("provisioned")
    await _runs_live(host)


async def _runs_live(host: Host) -> None:
    await host.until_well("provisioned")
    await host.until_seen(lambda seen: seen.booted is not None and seen.booted.source == "Cd", "booted")


async def _updating(host: Host) -> None:
    await host.behave(SLOW)
    await host.wants_firmware("bios", "4.0.0")
    await host.until_node(_is_updated, "being updated")


def _is_updated(node: FullNode) -> bool:
    return node.provision_state in ("cleaning", "clean wait")


async def _go_on_if_told(host: Host) -> None:
    """Nothing is flashed twice without anybody's word: what was cut off in the middle is told first."""
    found = await host.until(
        lambda found: bool(found.status.error_message) or _is_well(found), "told or well"
    )
    if found.status.error_message:
        await host.try_again()


async def _updated(host: Host) -> None:
    await _go_on_if_told(host)
    await host.until_seen(lambda seen: seen.components.versions.get("bios") == "4.0.0", "updated")
    await _is_available(host)


async def _switching_off_to_go(host: Host) -> None:
    await host.behave(SLOWER)
    await host.room.client.delete(BARE_METAL_HOSTS, host.key)
    await host.until(lambda found: found.status.provisioning.state == GOING, "going")


async def _switching(host: Host) -> None:
    await host.behave(SLOWER)
    await host.change(online=False)
    await host.until_node(_is_switched, "being switched")


def _is_switched(node: FullNode) -> bool:
    return node.target_power_state is not None


async def _preparing(host: Host) -> None:
    await host.hold("create_configuration")
    disks = [{"rotational": True}, {"rotational": True}]
    volumes = [{"level": "1", "physicalDisks": disks}]
    await host.create(inspectionMode="disabled", raid={"softwareRAIDVolumes": volumes})
    await _held(host, "create_configuration")


async def _wants_service(host: Host) -> None:
    await host.room.create(HOST_UPDATE_POLICIES, host.name, spec={"firmwareSettings": "onReboot"})
    await _provisioned(host)
    await host.wants_settings(QuietBoot="false")


async def _servicing(host: Host) -> None:
    await host.behave(SLOW)
    await host.annotate(Annotation.REBOOT)
    await host.until_node(_is_serviced, "serviced")


def _is_serviced(node: FullNode) -> bool:
    return node.provision_state in ("servicing", "service wait")


async def _serviced(host: Host) -> None:
    await _go_on_if_told(host)
    await host.until_seen(lambda seen: seen.components.bios.get("QuietBoot") is False, "serviced")
    await host.until(_is_well, "well and on")
    await host.until_running()


def _is_well(host: BareMetalHost) -> bool:
    return host.status.operational_status == "OK" and host.status.powered_on


async def _deprovisioning(host: Host) -> None:
    await _provisioned(host)
    await host.hold(CLEANING)
    await host.change(image=None, automatedCleaningMode="metadata")
    await _held(host, CLEANING)


async def _deleting(host: Host) -> None:
    await _provisioned(host)
    await host.hold(CLEANING)
    await host.change(automatedCleaningMode="metadata")
    await host.room.client.delete(BARE_METAL_HOSTS, host.key)
    await _held(host, CLEANING)


async def _runs(host: Host) -> None:
    await host.until_well("provisioned")
    await host.until_running()


async def _is_available(host: Host) -> None:
    """And on: a host that has just become available is still to be switched on."""
    await host.until_well("available")
    await host.until_seen(lambda seen: seen.power == "On", "on")


async def _is_off(host: Host) -> None:
    await host.until_power(on=False)


async def _is_gone(host: Host) -> None:
    await host.until_gone()


MOMENTS = (
    Moment("registering", _nowhere, _is_available, 0, 0, as_a_node(_is_verified), _registering),
    Moment("inspecting", _inspecting, _is_available, 0, 0, held("inspection")),
    Moment("preparing", _preparing, _is_available, 0, 1, held("create_configuration")),
    Moment("updating firmware", _available, _updated, 0, 0, as_a_node(_is_updated), _updating, is_told=True),
    Moment("available", _available, _is_available, 0, 0, at_rest("available")),
    Moment("cleaning", _cleaning, _runs, 1, 1, held(CLEANING)),
    Moment("after the wipe", _cleaning, _runs, 1, 1, as_a_node(_is_past_its_wipe), _wiped),
    Moment("booting to deploy", _booting_to_deploy, _runs, 1, 0, held("boot")),
    Moment("writing the image", _writing, _runs, 1, 0, held("write_image")),
    Moment("after the image", _writing, _runs, 1, 0, as_a_node(_is_past_its_image), _written),
    Moment("provisioned", _provisioned, _runs, 1, 0, at_rest("provisioned")),
    Moment("live image", _boots_live, _runs_live, 0, 0, at_rest("provisioned")),
    Moment("externally provisioned", _runs_something, _runs_on, 0, 0, at_rest("externally provisioned")),
    Moment("switching", _runs_something, _is_off, 0, 0, as_a_node(_is_switched), _switching, is_brief=True),
    Moment("servicing", _wants_service, _serviced, 1, 0, as_a_node(_is_serviced), _servicing, is_told=True),
    Moment("deprovisioning", _deprovisioning, _is_available, 1, 1, held(CLEANING)),
    Moment("deleting", _deleting, _is_gone, 1, 1, held(CLEANING)),
    Moment("powering off", _available, _is_gone, 0, 0, at_rest(GOING), _switching_off_to_go, is_brief=True),
)


class Campaign:
    def __init__(self, room: Room, moments: Sequence[Moment] = MOMENTS) -> None:
        self.room = room
        self.parked = [(moment, room.server()) for moment in moments]
        self.took: dict[str, float] = {}
        """Seconds from when all were let go until each arrived."""
        self.hit: list[tuple[Kill, frozenset[str]]] = []
        """Of each kill, who died and which hosts were in their moment just before."""

    async def park(self) -> None:
        await asyncio.gather(*(moment.park(host) for moment, host in self.parked))
        for brief in (False, True):
            await asyncio.gather(
                *(
                    moment.slow_down(host)
                    for moment, host in self.parked
                    if moment.slow_down and moment.is_brief is brief
                )
            )

    async def kill(self, *who: str) -> None:
        """kill -9 of all of these, and a start right after, as whoever runs them does it."""
        are_in = await asyncio.gather(*(moment.is_in(host) for moment, host in self.parked))
        hit = frozenset(moment.name for (moment, _), is_in in zip(self.parked, are_in, strict=True) if is_in)
        self.hit.append((who, hit))
        for name in who:
            self.room.kill(name)
        if "ironic" in who:
            self.room.start_ironic(patient=True)
        if "operator" in who:
            self.room.start_operator()
        if "ironic" in who:
            await self.room.ironic_ready()
        if "operator" in who:
            await self.room.operator_ready()

    async def release(self, which: Sequence[Host] | None = None) -> None:
        """Let these go on, or all of them."""
        hosts = [host for _, host in self.parked] if which is None else which
        await asyncio.gather(*(_let_go(host) for host in hosts))

    async def arrive(self) -> None:
        await asyncio.gather(*(self._arrived(moment, host) for moment, host in self.parked))

    async def _arrived(self, moment: Moment, host: Host) -> None:
        begun = time.perf_counter()
        await moment.arrives(host)
        self.took[moment.name] = time.perf_counter() - begun

    def missed_by(self, name: str) -> list[str]:
        """The moments in which no host was whenever this one was killed."""
        hit = {moment for who, moments in self.hit if name in who for moment in moments}
        return [moment.name for moment, _ in self.parked if moment.name not in hit]

    async def complaints(self) -> list[str]:
        """What servers have seen too often or too seldom, and what users were warned of."""
        found = []
        for moment, host in self.parked:
            seen = await host.seen()
            counted, expected = (seen.deployments, seen.cleanings), (moment.deployments, moment.cleanings)
            if counted != expected:
                story = await host.story()
                found.append(f"{moment.name}: deployed and cleaned {counted} times, not {expected}\n{story}")
            if not moment.is_told:
                found += [f"{moment.name}: {trouble}" for trouble in await host.troubles()]
        return found


async def lose_database(room: Room, hosts: Sequence[Host]) -> None:
    """Ironic begins with nothing; all hosts that it should know are known to it again, under another number."""
    old = {host.name: found.uuid for host in hosts if (found := await host.node()) is not None}
    room.kill("ironic")
    room.lose_ironics_database()
    room.start_ironic(patient=True)
    await room.ironic_ready()
    for host in hosts:
        await host.until_node(
            lambda node, host=host: (
                node.uuid != old.get(host.name)
                and node.provision_state in ("active", "available", "manageable")
            ),
            "known to Ironic again",
        )
