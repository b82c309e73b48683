"""What a person sees of the next try: when it comes, and what brings it at once."""

from __future__ import annotations

import functools

from rack import Rack

from ingot.api.baremetalhost import BARE_METAL_HOSTS, Annotation, BareMetalHost
from ingot.api.core import SECRETS
from ingot.api.meta import Key
from ingot.provisioner import Failed

WRONG = Failed("the BMC refused the password", refused_credentials=True)


async def test_the_time_of_the_next_try_is_in_the_status_and_goes_with_the_error(rack: Rack) -> None:
    rack.backend.hold("register", Failed("the BMC is away"))
    key = await rack.host()
    host = await rack.until_error(key, "away")
    assert host.status.next_try is not None
    assert host.status.last_updated is not None
    assert 60 <= (host.status.next_try - host.status.last_updated).total_seconds() <= 121
    rack.backend.let_go("register")
    await rack.change(key, {"description": "mended"})
    host = await rack.until_well(key, "available")
    assert host.status.next_try is None


async def test_a_changed_spec_is_tried_at_once_and_the_pauses_begin_anew(rack: Rack) -> None:
    rack.backend.hold("register", Failed("the BMC is away"))
    key = await rack.host()
    for attempt in range(3):
        await rack.until(key, lambda host, attempt=attempt: _attempts(rack, key) == attempt + 1)
        await rack.change(key, {"description": f"attempt {attempt}"})
    await rack.until(key, lambda host: _attempts(rack, key) == 4)
    assert (await rack.get(key)).status.error_count == 1


async def test_changed_secret_data_starts_over(rack: Rack) -> None:
    rack.backend.hold("register", WRONG)
    key = await rack.host()
    await rack.until_error(key, "refused")
    rack.backend.let_go("register")
    await rack.client.patch(SECRETS, rack.bmc, {"stringData": {"password": "right"}})
    await rack.until_well(key, "available")


async def test_an_annotation_of_metal3_starts_over_and_one_of_others_does_not(rack: Rack) -> None:
    rack.backend.hold("register", Failed("the BMC is away"))
    key = await rack.host()
    await rack.until_error(key, "away")
    rack.backend.let_go("register")
    await rack.client.patch(BARE_METAL_HOSTS, key, {"metadata": {"annotations": {"team": "blue"}}})
    await rack.settle()
    assert (await rack.get(key)).status.error_message
    await rack.client.patch(BARE_METAL_HOSTS, key, {"metadata": {"annotations": {"capm3.metal3.io/x": "1"}}})
    await rack.until_well(key, "available")


async def test_asked_by_hand_a_host_is_tried_at_once_and_the_annotation_goes(rack: Rack) -> None:
    rack.backend.hold("register", Failed("the BMC is away"))
    key = await rack.host()
    await rack.until_error(key, "away")
    rack.backend.let_go("register")
    asked = {"metadata": {"annotations": {Annotation.RETRY: ""}}}
    await rack.client.patch(BARE_METAL_HOSTS, key, asked)
    host = await rack.until_well(key, "available")
    assert Annotation.RETRY not in host.metadata.annotations


async def test_an_image_that_was_given_up_is_tried_again_by_hand(rack: Rack) -> None:
    key = await rack.host()
    await rack.until_state(key, "available")
    rack.backend.hold("provision", Failed("the checksum is wrong"))
    image = {"url": "https://images.example/b.raw", "checksum": "1" * 64, "checksumType": "sha256"}
    await rack.change(key, {"image": image})
    for attempt in range(1, 6):
        await rack.until(key, lambda host, attempt=attempt: _failed(host, attempt))
        await rack.client.patch(
            BARE_METAL_HOSTS, key, {"metadata": {"annotations": {"try.metal3.io": str(attempt)}}}
        )
    await rack.until_error(key, "gave up after 5")
    rack.backend.let_go("provision")
    await rack.client.patch(BARE_METAL_HOSTS, key, {"metadata": {"annotations": {Annotation.RETRY: ""}}})
    await rack.until_well(key, "provisioned")


def _attempts(rack: Rack, key: Key) -> int:
    return rack.backend.asked["register"]


def _failed(host: BareMetalHost, attempt: int) -> bool:
    return bool(host.status.error_type) and host.status.provisioning_fail_count == attempt - 1


async def test_a_secret_that_is_corrected_while_the_wrong_one_is_tried_is_tried_next(rack: Rack) -> None:
    password = {"stringData": {"password": "right"}}
    rack.backend.meanwhile["register"] = functools.partial(rack.client.patch, SECRETS, rack.bmc, password)
    rack.backend.script("register", WRONG)
    key = await rack.host()
    await rack.until_well(key, "available")


async def test_what_only_a_person_can_mend_is_counted_once_also_after_a_failure(rack: Rack) -> None:
    rack.backend.hold("register", Failed("the BMC is away"))
    key = await rack.host()
    await rack.until_error(key, "away")
    await rack.change(key, {"hardwareProfile": "no such profile"})
    await rack.until_error(key, "no such profile")
    async with rack.host_writes() as writes:
        for _ in range(2):
            rack.backend.tell(key)
            await rack.settle()
    assert not writes
    assert (await rack.get(key)).status.error_count == 1
