"""What goes with a host in use: data on a virtual CD, events of its BMC, and being left alone for a while."""

from __future__ import annotations

from ironic_room import NAMESPACE, Room
from stories import story

from ingot.api.baremetalhost import Annotation, BareMetalHost
from ingot.api.bmceventsubscription import BMC_EVENT_SUBSCRIPTIONS
from ingot.api.dataimage import DATA_IMAGES
from ingot.api.meta import Key
from ingot.lab.faults import Faults
from ingot.trust import HIDDEN


@story
async def test_a_host_in_use_gets_data_and_events_and_is_detached_and_taken_back_without_noticing(
    room: Room,
) -> None:
    host = room.server()
    await host.create(inspectionMode="disabled", image=host.image())
    await host.reaches("provisioned")
    running = (await host.until_running()).running

    # Events: the BMC has them, with the header that a Secret holds.
    headers = await host.secret("headers", Authorization="Bearer for-the-collector")
    destination = "https://127.0.0.1/events"
    subscription = {"hostName": host.name, "destination": destination, "httpHeadersRef": headers}
    await room.create(BMC_EVENT_SUBSCRIPTIONS, f"{host.name}-events", spec=subscription)
    told = await room.until_object(
        BMC_EVENT_SUBSCRIPTIONS, f"{host.name}-events", lambda found: bool(found.status.subscription_id)
    )
    (made,) = (await host.seen()).components.subscriptions
    assert (made.id, made.destination) == (told.status.subscription_id, destination)
    # The BMC keeps its value to itself, as real ones do.
    assert made.headers == {"Authorization": HIDDEN}
    await room.client.delete(BMC_EVENT_SUBSCRIPTIONS, Key(NAMESPACE, f"{host.name}-events"))
    await host.until_seen(lambda seen: not seen.components.subscriptions, "without subscriptions")

    # Data: in the drive after the next reboot, and out of it after the one that follows its end.
    iso = room.lab.file.ramdisk_url
    await room.create(DATA_IMAGES, host.name, spec={"url": iso})
    assert (await host.reboot()).media
    await room.until_object(
        DATA_IMAGES,
        host.name,
        lambda found: found.status.attached_image is not None and found.status.attached_image.url == iso,
    )
    await room.client.delete(DATA_IMAGES, host.key)
    before = await host.reboot()
    assert not before.media
    assert before.running == running

    # Detached: Ironic forgets it; taken back: it is adopted. The server notices neither.
    await host.annotate(Annotation.DETACHED)
    await host.until(lambda found: found.status.operational_status == "detached", "detached")
    assert await host.node() is None
    await host.annotate(Annotation.DETACHED, None)
    await host.until(lambda found: found.status.operational_status == "OK", "taken back")
    await host.until_node(lambda node: node.provision_state == "active", "adopted")
    after = await host.seen()
    assert (after.running, after.power_actions, after.boots) == (
        before.running,
        before.power_actions,
        before.boots,
    )
    assert (after.deployments, after.cleanings) == (1, 0)


@story
async def test_a_host_whose_bmc_dies_while_it_is_deployed_is_detached_by_force_and_deployed_once_it_is_back(
    room: Room,
) -> None:
    host, away = room.server(), Faults(bmc_down=True)
    await host.hold("write_image")
    await host.create(inspectionMode="disabled", image=host.image())
    await host.until_seen(lambda seen: seen.held_at == "write_image", "being written")
    await host.behave(away)
    before = await host.seen()
    await host.annotate(Annotation.DETACHED)
    await host.until(lambda found: says(found, '"force": true'), "waiting, and told what would not wait")

    await host.annotate(Annotation.DETACHED, '{"force": true}')
    await host.until(lambda found: found.status.operational_status == "detached", "detached")
    assert await host.node() is None
    seen = await host.seen()
    assert (seen.power_actions, seen.held_at) == (before.power_actions, "write_image"), "nobody touched it"
    await host.has_acted_out(away)

    await host.behave()
    await host.annotate(Annotation.DETACHED, None)
    await host.until_seen(lambda seen: seen.boots > before.boots, "begun anew")
    await room.lab.release(host.name)
    await host.until_well("provisioned")
    assert (await host.until_running()).deployments == 1


def says(host: BareMetalHost, words: str) -> bool:
    """Whether one of its conditions has these words."""
    return any(words in one.message for one in host.status.conditions)
