"""What a user reads when something is wrong, and that mending it is enough."""

from __future__ import annotations

from rack import IMAGE, Rack

from ingot.api.baremetalhost import BARE_METAL_HOSTS, ErrorType
from ingot.api.core import EVENTS, SECRETS
from ingot.api.meta import Key
from ingot.provisioner import Busy, Failed

REFUSED = Failed(
    "the BMC at 10.4.0.17 refused the user name or password (HTTP 401)", refused_credentials=True
)


async def test_a_missing_secret_is_named_and_noticed_when_it_appears(rack: Rack) -> None:
    key = await rack.host(secret=False)
    host = await rack.until_error(key, "Secret h1-bmc")
    assert f"does not exist in namespace {rack.namespace}" in host.status.error_message
    assert host.status.error_type == ErrorType.REGISTRATION
    assert host.status.operational_status == "error"
    await rack.secret("h1-bmc")
    await rack.until_well(key, "available")


async def test_a_secret_without_a_password_is_named_and_noticed_when_it_is_mended(rack: Rack) -> None:
    await rack.secret("h1-bmc", username="admin")
    key = await rack.host(secret=False)
    await rack.until_error(key, "Secret h1-bmc has no password")
    await rack.client.patch(SECRETS, rack.bmc, {"stringData": {"password": "x"}})
    await rack.until_well(key, "available")


async def test_a_wrong_password_says_which_secret_to_correct_and_is_tried_again_when_it_changes(
    rack: Rack,
) -> None:
    rack.backend.script("register", REFUSED)
    key = await rack.host()
    host = await rack.until_error(key, "refused the user name or password")
    assert host.status.error_message == (
        "the BMC at 10.4.0.17 refused the user name or password (HTTP 401). "
        "Correct Secret h1-bmc; the next try starts as soon as it changes."
    )
    await rack.client.patch(SECRETS, rack.bmc, {"stringData": {"password": "better"}})
    host = await rack.until_well(key, "available")
    assert host.status.error_message == ""
    assert host.status.error_count == 0


async def test_a_wrong_password_is_no_retry_storm(rack: Rack) -> None:
    rack.backend.script("register", *[REFUSED] * 50)
    key = await rack.host()
    await rack.until_error(key, "refused")
    for _ in range(5):
        rack.backend.tell(key)
        await rack.settle()
    assert (await rack.get(key)).status.error_count == 1


async def test_an_error_is_told_as_a_warning(rack: Rack) -> None:
    rack.backend.script("register", REFUSED)
    key = await rack.host()
    await rack.until_error(key, "refused")
    await rack.settle()
    assert "RegistrationError" in await rack.event_reasons()


async def test_an_image_that_failed_is_cleaned_away_and_tried_anew_once_the_host_is_mended(
    rack: Rack,
) -> None:
    rack.backend.script("provision", Failed("the checksum of the image does not match"))
    key = await rack.host(image=IMAGE)
    host = await rack.until_error(key, "checksum")
    assert (host.state, host.status.error_type) == ("provisioning", ErrorType.PROVISIONING)
    await rack.change(key, {"image": {"checksum": "1" * 64}})
    host = await rack.until_well(key, "provisioned")
    assert host.status.provisioning.image is not None
    assert host.status.provisioning.image.checksum == "1" * 64
    assert host.status.provisioning_fail_count == 0


async def test_a_host_whose_user_data_is_missing_is_not_touched_and_goes_on_when_it_appears(
    rack: Rack,
) -> None:
    key = await rack.host(image=IMAGE, userData={"name": "user"})
    host = await rack.until_error(key, "Secret user, named by spec.userData, does not exist")
    assert host.state == "available"
    assert "deploy" not in rack.backend.machines[key].orders
    await rack.secret("user", userData="#cloud-config")
    await rack.until_well(key, "provisioned")


async def test_an_image_that_can_never_be_deployed_costs_no_disk(rack: Rack) -> None:
    rack.backend.unknown_formats = {"vmdk"}
    key = await rack.host(image=IMAGE | {"format": "vmdk"})
    host = await rack.until_error(key, "this back end knows no vmdk")
    assert host.state == "available"
    await rack.change(key, {"image": {"format": "raw"}})
    await rack.until_well(key, "provisioned")
    assert rack.backend.machines[key].orders.count("deploy") == 1
    assert "undeploy" not in rack.backend.machines[key].orders


async def test_a_failed_power_change_is_an_error_and_the_next_attempt_is_hard(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    rack.backend.script("set_power", Failed("the BMC did not react"))
    await rack.change(key, {"online": False})
    host = await rack.until_error(key, "did not react")
    assert host.status.error_type == ErrorType.POWER_MANAGEMENT
    await rack.change(key, {"description": "somebody looked at it"})
    await rack.until(key, lambda host: not host.status.powered_on and not host.status.error_type)
    assert rack.backend.machines[key].orders[-1] == "power off hard"


async def test_secrets_never_reach_the_status(rack: Rack) -> None:
    rack.backend.script("register", Failed("GET https://10.0.0.1/?agent_token=s3cr3t refused"))
    key = await rack.host()
    host = await rack.until_error(key, "refused")
    assert "s3cr3t" not in host.status.error_message


async def test_user_data_that_vanishes_during_a_deployment_does_not_undo_the_deployment(rack: Rack) -> None:
    await rack.secret("user", userData="#cloud-config")
    rack.backend.hold("provision", Busy("deploying the image"))
    key = await rack.host(image=IMAGE, userData={"name": "user"})
    await rack.until_state(key, "provisioning")
    await rack.client.delete(SECRETS, Key(rack.namespace, "user"))
    host = await rack.until_error(key, "Secret user, named by spec.userData, does not exist")
    assert host.state == "provisioning"
    for _ in range(3):
        rack.backend.tell(key)
        await rack.settle()
    assert (await rack.get(key)).state == "provisioning"
    rack.backend.let_go("provision")
    await rack.secret("user", userData="#cloud-config")
    host = await rack.until_well(key, "provisioned")
    assert host.status.operation_history.deprovision.start is None


async def test_a_host_that_gave_up_says_so_once(rack: Rack) -> None:
    key = await rack.host(image=IMAGE, online=False)
    await rack.until_state(key, "available")
    status = {"provisioningFailCount": 5, "lastAttemptedImage": IMAGE}
    await rack.client.patch(BARE_METAL_HOSTS, key, {"status": status}, subresource="status")
    await rack.change(key, {"online": True})
    host = await rack.until_error(key, "gave up after 5 failed attempts")
    for _ in range(3):
        rack.backend.tell(key)
        await rack.settle()
    assert (await rack.get(key)).status == host.status


async def test_failures_that_are_over_do_not_count_for_the_next_one(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    rack.backend.hold("adopt", Failed("the BMC is away"))
    rack.backend.tell(key)
    await rack.until(key, lambda host: host.status.error_count == 1)
    rack.backend.let_go("adopt")
    await rack.change(key, {"description": "the BMC is back"})
    host = await rack.until_well(key, "provisioned")
    assert host.status.error_count == 0


async def test_a_password_in_the_url_of_an_image_is_in_no_event(rack: Rack) -> None:
    key = await rack.host(image=IMAGE | {"url": "https://user:s3cr3t@images.example/a.raw"})
    await rack.until_state(key, "provisioned")
    await rack.settle()
    events = (await rack.client.list(EVENTS, namespace=rack.namespace)).items
    told = [event.message for event in events if event.reason == "ProvisioningComplete"]
    assert told
    assert not [message for message in told if "s3cr3t" in message]


async def test_meta_data_that_no_parser_takes_is_told(rack: Rack) -> None:
    await rack.secret("meta", metaData="since: 2024-13-45")
    key = await rack.host(image=IMAGE, metaData={"name": "meta"})
    host = await rack.until_error(key, "does not hold a YAML or JSON mapping")
    assert host.state == "available"


async def test_meta_data_that_are_nested_without_end_are_told(rack: Rack) -> None:
    await rack.secret("meta", metaData="deep: " + "[" * 200_000)
    key = await rack.host(image=IMAGE, metaData={"name": "meta"})
    host = await rack.until_error(key, "spec.metaData is nested more than 100 deep")
    assert host.state == "available"


async def test_a_sentence_that_ends_with_a_full_stop_gets_no_second_one(rack: Rack) -> None:
    rack.backend.script("register", Failed("the address is wrong. Correct it."))
    key = await rack.host()
    host = await rack.until_error(key, "the address is wrong")
    assert host.status.error_message == "the address is wrong. Correct it."


async def test_what_a_back_end_says_while_it_is_busy_is_shown_without_secrets(rack: Rack) -> None:
    rack.backend.hold("inspect", Busy("asking https://admin:hunter2@bmc.example", "agent_token=hunter3"))
    key = await rack.host()
    host = await rack.until(key, lambda host: "bmc.example" in rack.sentence(host))
    assert "hunter" not in rack.sentence(host)


async def test_a_state_that_does_not_exist_is_told_and_left_alone_until_it_is_mended(rack: Rack) -> None:
    key = await rack.host()
    host = await rack.until_well(key, "available")
    state = {"status": {"provisioning": {"state": "flying"}}}
    await rack.client.patch(BARE_METAL_HOSTS, key, state, subresource="status")
    await rack.change(key, {"description": "the next change after that"})

    async def told() -> bool:
        return "UnknownState" in await rack.event_reasons()

    await rack.until_true(told, lambda: "nobody said that the state does not exist")
    writes = (await rack.get(key)).metadata.resource_version
    rack.backend.tell(key)
    await rack.settle()
    assert (await rack.get(key)).metadata.resource_version == writes
    mended = {"status": {"provisioning": {"state": str(host.state)}}}
    await rack.client.patch(BARE_METAL_HOSTS, key, mended, subresource="status")
    await rack.change(key, {"online": False})
    await rack.until(key, lambda found: not found.status.powered_on)
