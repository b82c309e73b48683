"""DataImages: what is in the virtual CD drive of a host in use, changed only where its machine starts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from rack import IMAGE, Rack

from ingot.api.baremetalhost import BARE_METAL_HOSTS, Annotation
from ingot.api.dataimage import DATA_IMAGES, FINALIZER, DataImage
from ingot.api.meta import Key, now
from ingot.api.wire import wire
from ingot.provisioner import Busy, Failed

PLAIN, HELD = "reboot.metal3.io", "reboot.metal3.io/a"
URL, OTHER = "https://images.example/data.iso", "https://images.example/other.iso"


async def provisioned(rack: Rack) -> Key:
    key = await rack.host(image=IMAGE)
    await rack.until(key, lambda host: host.state == "provisioned" and host.status.powered_on)
    rack.backend.machines[key].orders.clear()
    return key


async def data_image(rack: Rack, url: str = URL) -> None:
    body = {"metadata": {"name": "h1"}, "spec": {"url": url}}
    await rack.client.create(DATA_IMAGES, body, namespace=rack.namespace)


async def until(rack: Rack, key: Key, condition: Callable[[DataImage], bool]) -> DataImage:
    return await rack.until_object(DATA_IMAGES, key, condition)


async def until_gone(rack: Rack, key: Key) -> None:
    await rack.until_missing(DATA_IMAGES, key)


def attached(image: DataImage) -> str:
    return image.status.attached_image.url if image.status.attached_image is not None else ""


async def reboot(rack: Rack, key: Key) -> None:
    await rack.annotate(key, PLAIN)
    await rack.until_rebooted(key)


async def with_an_image(rack: Rack) -> Key:
    """A host that runs with the image in its drive."""
    key = await provisioned(rack)
    await data_image(rack)
    await reboot(rack, key)
    await until(rack, key, lambda image: attached(image) == URL)
    rack.backend.machines[key].orders.clear()
    return key


async def test_an_image_belongs_to_the_host_at_once_and_is_attached_at_the_next_reboot(rack: Rack) -> None:
    key = await provisioned(rack)
    await data_image(rack)
    image = await until(rack, key, lambda image: FINALIZER in image.metadata.finalizers)
    host = await rack.get(key)
    assert [owner.uid for owner in image.metadata.owner_references] == [host.metadata.uid]
    await rack.settle()
    assert rack.backend.machines[key].orders == []
    await reboot(rack, key)
    image = await until(rack, key, lambda image: attached(image) == URL)
    assert rack.backend.machines[key].orders == ["power off soft", f"attach {URL}", "power on"]
    assert image.status.error is None
    assert image.status.last_reconciled is not None


async def test_an_image_that_is_attached_is_not_written_or_attached_again(rack: Rack) -> None:
    key = await with_an_image(rack)
    await rack.settle()
    before = (await rack.client.get(DATA_IMAGES, key)).metadata.resource_version
    await reboot(rack, key)
    await rack.settle()
    assert rack.backend.machines[key].orders == ["power off soft", "power on"]
    assert (await rack.client.get(DATA_IMAGES, key)).metadata.resource_version == before


async def test_another_url_takes_its_place_at_the_next_reboot(rack: Rack) -> None:
    key = await with_an_image(rack)
    await rack.client.patch(DATA_IMAGES, key, {"spec": {"url": OTHER}})
    await rack.settle()
    assert rack.backend.machines[key].data_image == URL
    await reboot(rack, key)
    await until(rack, key, lambda image: attached(image) == OTHER)
    assert rack.backend.machines[key].orders == ["power off soft", f"attach {OTHER}", "power on"]


async def test_a_deleted_image_is_taken_out_at_the_next_reboot_and_goes_then(rack: Rack) -> None:
    key = await with_an_image(rack)
    await rack.client.delete(DATA_IMAGES, key)
    await rack.settle()
    assert (await rack.client.get(DATA_IMAGES, key)).metadata.deletion_timestamp is not None
    await reboot(rack, key)
    await until_gone(rack, key)
    assert rack.backend.machines[key].orders == ["power off soft", "eject", "power on"]


async def test_an_image_that_was_never_attached_goes_at_once(rack: Rack) -> None:
    key = await provisioned(rack)
    await data_image(rack)
    await until(rack, key, lambda image: FINALIZER in image.metadata.finalizers)
    await rack.client.delete(DATA_IMAGES, key)
    await until_gone(rack, key)
    assert rack.backend.machines[key].orders == []


async def test_a_host_without_a_system_gets_no_image(rack: Rack) -> None:
    key = await rack.host(online=False)
    await rack.until_state(key, "available")
    await data_image(rack)
    await rack.change(key, {"online": True})
    await rack.until(key, lambda host: host.status.powered_on)
    assert "power on" in rack.backend.machines[key].orders
    assert rack.backend.machines[key].data_image == ""


async def test_an_image_that_cannot_be_attached_keeps_the_machine_off_until_its_url_is_corrected(
    rack: Rack,
) -> None:
    key = await provisioned(rack)
    await data_image(rack)
    rack.backend.script("set_data_image", Failed("HTTP 404"), Failed("HTTP 404"))
    await rack.annotate(key, PLAIN)
    image = await until(rack, key, lambda image: image.status.error is not None)
    assert image.status.error is not None
    assert image.status.error.count == 1
    assert URL in image.status.error.message
    host = await rack.until(key, lambda host: "stays off" in rack.sentence(host))
    assert not host.status.powered_on
    assert host.status.error_message == ""
    rack.backend.tell(key)
    await rack.settle()
    assert rack.backend.asked["set_data_image"] == 1, "the pause is kept"
    await rack.client.patch(DATA_IMAGES, key, {"spec": {"url": OTHER}})
    await until(rack, key, lambda image: image.status.error is not None and image.status.error.count == 2)
    await rack.client.patch(DATA_IMAGES, key, {"spec": {"url": URL}})
    image = await until(rack, key, lambda image: attached(image) == URL)
    assert image.status.error is None
    await rack.until(key, lambda host: host.status.powered_on)


async def test_an_image_that_cannot_be_attached_is_tried_again_after_a_while(rack: Rack) -> None:
    key = await provisioned(rack)
    await data_image(rack)
    rack.backend.script("set_data_image", Failed("HTTP 404"))
    await rack.annotate(key, PLAIN)
    await until(rack, key, lambda image: image.status.error is not None)
    long_ago = wire(now() - timedelta(minutes=2))
    await rack.client.patch(DATA_IMAGES, key, {"status": {"lastReconciled": long_ago}}, subresource="status")
    await until(rack, key, lambda image: attached(image) == URL)
    await rack.until(key, lambda host: host.status.powered_on)


async def test_deleting_an_image_that_cannot_be_attached_lets_the_machine_start(rack: Rack) -> None:
    key = await provisioned(rack)
    await data_image(rack)
    rack.backend.script("set_data_image", Failed("HTTP 404"))
    await rack.annotate(key, PLAIN)
    await until(rack, key, lambda image: image.status.error is not None)
    await rack.client.delete(DATA_IMAGES, key)
    await until_gone(rack, key)
    await rack.until(key, lambda host: host.status.powered_on)


async def test_an_image_that_cannot_be_taken_out_keeps_nobody_waiting_and_is_let_go_in_the_end(
    rack: Rack,
) -> None:
    key = await with_an_image(rack)
    await rack.client.delete(DATA_IMAGES, key)
    rack.backend.hold("set_data_image", Failed("the BMC does not answer"))
    for _ in range(2):
        await reboot(rack, key)
        await rack.client.get(DATA_IMAGES, key)
    await reboot(rack, key)
    await until_gone(rack, key)
    await rack.settle()
    assert "DataImageAbandoned" in await rack.event_reasons()
    assert rack.backend.machines[key].orders == ["power off soft", "power on"] * 3


async def test_an_operator_that_dies_while_an_image_is_attached_attaches_it_once(rack: Rack) -> None:
    key = await provisioned(rack)
    await data_image(rack)
    rack.backend.hold("set_data_image", Busy("inserting the medium"))
    await rack.annotate(key, PLAIN)
    await rack.until(key, lambda host: "inserting" in rack.sentence(host))
    await rack.operator.end()
    rack.backend.let_go("set_data_image")
    rack.backend.machines[key].data_image = URL
    await rack.operator.start()
    await until(rack, key, lambda image: attached(image) == URL)
    await rack.until(key, lambda host: host.status.powered_on)
    assert rack.backend.machines[key].orders == ["power off soft", "power on"]


async def test_an_image_that_may_be_in_the_drive_is_taken_out_although_nobody_saw_it_attached(
    rack: Rack,
) -> None:
    key = await provisioned(rack)
    await data_image(rack)
    rack.backend.hold("set_data_image", Busy("inserting the medium"))
    await rack.annotate(key, PLAIN)
    await rack.until(key, lambda host: "inserting" in rack.sentence(host))
    rack.backend.machines[key].data_image = URL
    rack.backend.let_go("set_data_image")
    await rack.client.delete(DATA_IMAGES, key)
    await until_gone(rack, key)
    assert rack.backend.machines[key].data_image == ""
    await rack.until(key, lambda host: host.status.powered_on)


async def test_an_image_goes_with_its_host(rack: Rack) -> None:
    key = await with_an_image(rack)
    await rack.delete(key)
    await rack.until_gone(key)
    await until_gone(rack, key)


async def test_an_image_whose_host_is_going_is_let_go_at_once(rack: Rack) -> None:
    key = await with_an_image(rack)
    rack.backend.hold("deprovision", Busy("cleaning"))
    await rack.delete(key)
    await rack.until_state(key, "deprovisioning")
    await rack.client.delete(DATA_IMAGES, key)
    await until_gone(rack, key)
    rack.backend.let_go("deprovision")
    rack.backend.tell(key)
    await rack.until_gone(key)


async def test_a_host_that_is_held_off_gets_its_image_when_it_is_about_to_start(rack: Rack) -> None:
    key = await provisioned(rack)
    await rack.annotate(key, HELD)
    await rack.until(key, lambda host: not host.status.powered_on)
    await data_image(rack)
    await rack.settle()
    assert rack.backend.machines[key].data_image == ""
    await rack.annotate(key, HELD, None)
    await until(rack, key, lambda image: attached(image) == URL)
    await rack.until(key, lambda host: host.status.powered_on)
    assert (await rack.client.get(BARE_METAL_HOSTS, key)).status.powered_on


async def test_an_image_that_came_while_the_host_was_detached_belongs_to_it_once_it_is_attached(
    rack: Rack,
) -> None:
    key = await provisioned(rack)
    await rack.annotate(key, Annotation.DETACHED)
    await rack.until(key, lambda host: host.status.operational_status == "detached")
    await data_image(rack)
    await rack.annotate(key, Annotation.DETACHED, None)
    await until(rack, key, lambda image: FINALIZER in image.metadata.finalizers)
