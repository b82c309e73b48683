"""The ways to a system through the Ironic back end: live ISOs, custom deploy steps, OCI registries, starting over."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_ironic import FakeIronic
from ironic_orders import IMAGE, NODE, ORDER, Guard
from msgspec import structs

from ingot.api.baremetalhost import CustomDeploy, Image
from ingot.provisioner import Act, Busy, ConfigDrive, Deployment, Failed, HostRef, Ready, Refusal, Sight
from ingot.provisioner.ironic import IronicAccess, IronicProvisioner, SettingsError
from ingot.provisioner.ironic.settings import PersistentBoot
from ingot.trust import Secret

LIVE = Image(url="https://127.0.0.1/live.iso", format="live-iso")
OCI = Image(url="oci://registry.example/os:1")
COREOS = Image(url="", format="coreos")
STEP = CustomDeploy(method="install_os")
COREOS_STEP = CustomDeploy(method="install_coreos")
DRIVE = ConfigDrive(user_data=Secret("#cloud-config\n"))
IGNITION_DRIVE = ConfigDrive(
    user_data=Secret('{"ignition": {"version": "3.4.0"}}'),
    meta_data={
        "coreos_append_karg": ["console=ttyS0"],
        "coreos_network_keyfiles": {"eth0.nmconnection": "[connection]\n"},
    },
)


def metal(url: str, format: str = "coreos") -> Image:
    return Image(url=url, checksum="ab" * 32, checksum_type="sha256", format=format)


@pytest.fixture
def clean(ironic: FakeIronic, host: HostRef) -> HostRef:
    """A host that is ready to be deployed."""
    node = ironic.add_node(NODE, "available", power_state="power off")
    return replace(host, backend_id=node["uuid"])


async def deploy(backend: IronicProvisioner, host: HostRef, guard: Guard, order: Deployment) -> object:
    return await backend.provision(host, order, permit=guard, again=False)


async def test_a_live_iso_is_booted_and_gets_no_config_drive(backend, ironic, clean, guard):
    order = Deployment(image=LIVE, config_drive=DRIVE)
    assert await deploy(backend, clean, guard, order) == Busy(f"deploying the image {LIVE.url}")
    node = ironic.node(NODE)
    assert node["deploy_interface"] == "ramdisk"
    assert node["instance_info"] == {"boot_iso": LIVE.url, "capabilities": {}}
    assert ironic.configdrives == {}
    ironic.finish(NODE)
    assert await deploy(backend, clean, guard, order) == Ready(None)


async def test_after_a_live_iso_an_image_is_written_in_the_usual_way(backend, ironic, clean, guard):
    ironic.change(NODE, deploy_interface="ramdisk", instance_info={"boot_iso": LIVE.url})
    await deploy(backend, clean, guard, ORDER)
    node = ironic.node(NODE)
    assert node["deploy_interface"] is None
    assert "boot_iso" not in node["instance_info"]
    assert node["instance_info"]["image_source"] == IMAGE.url


async def test_a_custom_deploy_step_stands_where_the_image_would_be_written(backend, ironic, clean, guard):
    order = Deployment(custom_deploy=STEP, config_drive=DRIVE)
    assert await deploy(backend, clean, guard, order) == Busy("deploying the custom deploy step install_os")
    node = ironic.node(NODE)
    assert node["deploy_interface"] == "custom-agent"
    assert "image_source" not in node["instance_info"]
    assert ironic.deploy_steps[clean.backend_id] == [
        {"interface": "deploy", "step": "install_os", "args": {}, "priority": 80}
    ]
    assert ironic.configdrives[clean.backend_id]["user_data"] == "#cloud-config\n"
    ironic.finish(NODE)
    assert await deploy(backend, clean, guard, order) == Ready(None)


async def test_a_custom_deploy_step_can_have_an_image(backend, ironic, clean, guard):
    await deploy(backend, clean, guard, replace(ORDER, custom_deploy=STEP))
    assert ironic.node(NODE)["instance_info"]["image_source"] == IMAGE.url
    assert ironic.deploy_steps[clean.backend_id][0]["step"] == "install_os"


async def test_an_image_whose_url_leads_elsewhere_is_still_the_one_that_was_asked_for(
    backend, ironic, clean, guard
):
    await deploy(backend, clean, guard, ORDER)
    # Ironic follows redirects, and notes where they lead.
    ironic.node(NODE)["instance_info"]["image_source"] = "https://mirror/7f3a/image.raw"
    ironic.finish(NODE)
    assert await deploy(backend, clean, guard, ORDER) == Ready(None)
    other = replace(ORDER, image=structs.replace(IMAGE, url="https://127.0.0.1/other.raw"))
    assert isinstance(await deploy(backend, clean, guard, other), Failed)
    assert IMAGE.url not in str(ironic.node(NODE)["extra"])


async def test_a_deployment_goes_on_when_the_host_is_moved_and_has_another_uid(backend, ironic, clean, guard):
    await deploy(backend, clean, guard, ORDER)
    ironic.finish(NODE)
    moved = replace(clean, uid="of-another-cluster")
    assert await deploy(backend, moved, guard, ORDER) == Ready(None)
    assert ironic.verbs == ["active"]
    other = replace(ORDER, image=structs.replace(IMAGE, url="https://127.0.0.1/other.raw"))
    assert isinstance(await deploy(backend, moved, guard, other), Failed)


async def test_a_host_that_does_not_know_the_node_does_not_take_what_runs_there_for_its_own(
    backend, ironic, clean, guard
):
    await deploy(backend, clean, guard, ORDER)
    ironic.finish(NODE)
    answer = await deploy(backend, replace(clean, uid="another", backend_id=""), guard, ORDER)
    assert isinstance(answer, Failed)
    assert answer.needs_person
    assert "this provisioning did not put there" in answer.message


@pytest.mark.parametrize(
    "state", ["active", "service failed", "rescue", "rescue failed", "unrescue failed", "adopt failed"]
)
async def test_a_machine_that_runs_something_else_is_left_for_a_person_to_decide(
    backend, ironic, clean, guard, state
):
    ironic.change(
        NODE,
        provision_state=state,
        instance_uuid=clean.uid,
        instance_info={"image_source": "https://u:p@x/a.raw"},
    )
    for again in (False, True):
        answer = await backend.provision(clean, ORDER, permit=guard, again=again)
        assert isinstance(answer, Failed)
        assert answer.needs_person
        for words in (
            IMAGE.url,
            repr(state),
            "x/a.raw",
            "ingot host detach --force",
            "externallyProvisioned",
        ):
            assert words in answer.message
        assert "u:p@" not in answer.message
    assert ironic.verbs == []
    assert guard.acts == []


NAMED = replace(ORDER, name="of-today")


async def seen_at_an_undeploy(backend: IronicProvisioner, host: HostRef, guard: Guard) -> str | None:
    """For which provisioning the guard is told that the system was deployed."""
    guard.asked.clear()
    guard.refuses = {Act.UNDEPLOY}
    for _ in range(2):
        # What failed is told first.
        await backend.deprovision(host, automated_cleaning=True, permit=guard, again=True)
    act, sight = guard.asked[-1]
    assert act is Act.UNDEPLOY
    assert sight.holds_instance
    return sight.deployed_for


@pytest.mark.parametrize("state", ["wait call-back", "active", "deploy failed", "rescue", "service failed"])
async def test_the_guard_is_told_for_which_provisioning_a_system_was_deployed(
    backend, ironic, clean, guard, state
):
    await deploy(backend, clean, guard, NAMED)
    ironic.change(NODE, provision_state=state)
    assert await seen_at_an_undeploy(backend, clean, guard) == "of-today"


@pytest.mark.parametrize("state", ["error", "deploy failed"])
async def test_what_ironic_could_not_take_down_is_still_of_that_provisioning(
    backend, ironic, clean, guard, state
):
    await deploy(backend, clean, guard, NAMED)
    # Ironic forgets the instance also where taking it down fails.
    ironic.change(
        NODE, provision_state=state, instance_uuid=None, instance_info={}, last_error="it does not go"
    )
    assert await seen_at_an_undeploy(backend, clean, guard) == "of-today"


@pytest.mark.parametrize("instance", [None, "by-hand"])
async def test_what_was_deployed_past_us_later_is_of_nobody_that_we_know(
    backend, ironic, clean, guard, instance
):
    await deploy(backend, clean, guard, NAMED)
    ironic.change(NODE, provision_state="active", instance_uuid=instance)
    assert await seen_at_an_undeploy(backend, clean, guard) is None


async def test_what_an_earlier_provisioning_has_finished_counts_as_that_of_the_one_that_finds_it(
    backend, ironic, clean, guard
):
    await deploy(backend, clean, guard, NAMED)
    ironic.finish(NODE)
    assert await deploy(backend, clean, guard, replace(NAMED, name="of-tomorrow")) == Ready(None)
    assert await seen_at_an_undeploy(backend, clean, guard) == "of-tomorrow"


async def test_a_host_that_is_taken_over_is_noted_as_what_it_says_that_it_is(backend, ironic, clean, guard):
    ironic.change(NODE, provision_state="manageable")
    for _ in range(2):
        await backend.adopt(clean, IMAGE, permit=guard, again=False, provisioning="of-today")
        ironic.change(NODE, provision_state="active")
    assert await seen_at_an_undeploy(backend, clean, guard) == "of-today"


async def test_a_running_host_that_was_deployed_without_a_note_gets_one_and_another_note_stays(
    backend, ironic, clean, guard
):
    ironic.change(NODE, provision_state="active", instance_uuid=clean.uid)
    for name in ("of-today", "of-tomorrow"):
        assert await backend.adopt(clean, IMAGE, permit=guard, again=False, provisioning=name) == Ready(None)
    assert await seen_at_an_undeploy(backend, clean, guard) == "of-today"


async def test_a_refusal_that_only_a_person_can_lift_is_no_reason_to_wait(backend, ironic, clean):
    ironic.change(NODE, provision_state="active")

    async def permit(act: Act, sight: Sight) -> Refusal:
        return Refusal("it is somebody's", needs_person=True)

    answer = await backend.deprovision(clean, automated_cleaning=True, permit=permit, again=False)
    assert answer == Failed("it is somebody's", needs_person=True)
    assert ironic.verbs == []


async def test_a_running_host_that_could_not_be_taken_over_is_not_cleaned_before_the_guard_was_asked(
    backend, ironic, clean, guard
):
    ironic.change(NODE, provision_state="adopt failed", instance_uuid=clean.uid)
    guard.refuses = {Act.UNDEPLOY}
    assert isinstance(
        await backend.deprovision(clean, automated_cleaning=True, permit=guard, again=True), Busy
    )
    assert ironic.verbs == []


async def test_an_instance_that_was_left_on_the_node_makes_way(backend, ironic, clean, guard):
    ironic.change(NODE, instance_uuid="of-before")
    assert isinstance(await deploy(backend, clean, guard, ORDER), Busy)
    assert ironic.node(NODE)["provision_state"] == "deploying"
    assert ironic.node(NODE)["instance_uuid"] == clean.uid


async def test_an_instance_that_was_left_on_the_node_of_a_running_host_makes_way(
    backend, ironic, clean, guard
):
    ironic.change(NODE, provision_state="manageable", instance_uuid="of-before")
    assert isinstance(await backend.adopt(clean, IMAGE, permit=guard, again=False), Busy)
    assert ironic.node(NODE)["provision_state"] == "adopting"
    assert ironic.node(NODE)["instance_uuid"] == clean.uid


async def test_a_running_host_is_taken_over_although_todays_rules_refuse_the_url_of_its_image(
    backend, ironic, clean, guard
):
    ironic.change(NODE, provision_state="manageable")
    refused = structs.replace(IMAGE, url="file:///images/a.raw")
    assert isinstance(await backend.adopt(clean, refused, permit=guard, again=False), Busy)
    assert ironic.node(NODE)["provision_state"] == "adopting"
    assert "file:" not in str(ironic.node(NODE))


async def test_coreos_by_format_has_its_ignition_in_the_arguments_of_the_step(backend, ironic, clean, guard):
    answer = await deploy(backend, clean, guard, Deployment(image=COREOS, config_drive=IGNITION_DRIVE))
    assert answer == Busy("deploying CoreOS")
    assert ironic.node(NODE)["deploy_interface"] == "custom-agent"
    assert ironic.deploy_steps[clean.backend_id] == [
        {
            "interface": "deploy",
            "step": "install_coreos",
            "args": {"ignition": IGNITION_DRIVE.user_data.reveal()},
            "priority": 80,
        }
    ]
    drive = ironic.configdrives[clean.backend_id]
    assert "user_data" not in drive
    assert drive["meta_data"].items() >= IGNITION_DRIVE.meta_data.items()


async def test_coreos_by_the_name_of_the_step_has_its_ignition_in_the_user_data(
    backend, ironic, clean, guard
):
    ironic.change(NODE, instance_info={"boot_iso": LIVE.url})
    order = Deployment(custom_deploy=CustomDeploy(method="install_coreos"), config_drive=IGNITION_DRIVE)
    await deploy(backend, clean, guard, order)
    node = ironic.node(NODE)
    assert node["deploy_interface"] == "custom-agent"
    assert "boot_iso" not in node["instance_info"]
    assert ironic.deploy_steps[clean.backend_id] == [
        {"interface": "deploy", "step": "install_coreos", "args": {}, "priority": 80}
    ]
    drive = ironic.configdrives[clean.backend_id]
    assert drive["user_data"] == IGNITION_DRIVE.user_data.reveal()
    assert drive["meta_data"].items() >= IGNITION_DRIVE.meta_data.items()


async def test_both_words_for_coreos_are_the_name_of_the_step(backend, ironic, clean, guard):
    custom = CustomDeploy(method="install_coreos")
    await deploy(
        backend, clean, guard, Deployment(image=COREOS, custom_deploy=custom, config_drive=IGNITION_DRIVE)
    )
    assert ironic.deploy_steps[clean.backend_id][0]["args"] == {}
    drive = ironic.configdrives[clean.backend_id]
    assert drive["user_data"] == IGNITION_DRIVE.user_data.reveal()
    assert drive["meta_data"].items() >= IGNITION_DRIVE.meta_data.items()


async def test_a_metal_image_is_told_with_its_checksum(backend, ironic, clean, guard):
    metal = Image(
        url="https://images/metal.raw.xz", checksum="ab" * 32, checksum_type="sha256", format="coreos"
    )
    await deploy(backend, clean, guard, Deployment(image=metal, config_drive=IGNITION_DRIVE))
    assert ironic.node(NODE)["instance_info"] == {
        "image_source": metal.url,
        "image_os_hash_algo": "sha256",
        "image_os_hash_value": "ab" * 32,
        "capabilities": {},
    }


@pytest.mark.parametrize(
    "text", ["#cloud-config\nsesame: 1", "sesame", '["sesame"]', '{"ignition": {"version": "2.1.0"}}']
)
@pytest.mark.parametrize("by_format", [True, False])
async def test_user_data_that_coreos_cannot_read_never_get_to_ironic(
    backend, ironic, clean, guard, text, by_format
):
    image, custom = (COREOS, None) if by_format else (None, CustomDeploy(method="install_coreos"))
    drive = ConfigDrive(user_data=Secret(text))
    answer = await deploy(
        backend, clean, guard, Deployment(image=image, custom_deploy=custom, config_drive=drive)
    )
    assert isinstance(answer, Failed)
    assert "spec.userData" in answer.message
    assert "sesame" not in answer.message
    assert ironic.deploy_steps == {}


@pytest.mark.parametrize(
    "meta",
    [
        {"coreos_append_karg": ["a=b; reboot"]},
        {"coreos_append_karg": "a\nb"},
        {"coreos_delete_karg": {"a": 1}},
        {"coreos_append_karg": [1]},
        {"coreos_copy_network": "perhaps"},
        {"coreos_network_keyfiles": {"../../etc/shadow": ""}},
    ],
)
async def test_metadata_that_the_installer_cannot_use_never_get_to_ironic(
    backend, ironic, clean, guard, meta
):
    answer = await deploy(
        backend, clean, guard, Deployment(image=COREOS, config_drive=ConfigDrive(meta_data=meta))
    )
    assert isinstance(answer, Failed)
    assert next(iter(meta)) in answer.message
    assert ironic.deploy_steps == {}


async def test_an_image_of_a_registry_needs_no_checksum_and_brings_its_pull_secret(
    backend, ironic, clean, guard
):
    order = Deployment(image=OCI, config_drive=DRIVE, pull_secret=Secret("robot:t0ken"))
    answer = await deploy(backend, clean, guard, order)
    assert isinstance(answer, Busy)
    assert "t0ken" not in answer.why
    assert ironic.node(NODE)["instance_info"] == {
        "image_source": OCI.url,
        "image_pull_secret": "robot:t0ken",
        "capabilities": {},
    }
    ironic.finish(NODE)
    assert await deploy(backend, clean, guard, order) == Ready(None)


async def test_a_pull_secret_of_an_earlier_image_is_removed(backend, ironic, clean, guard):
    ironic.change(NODE, instance_info={"image_source": OCI.url, "image_pull_secret": "robot:t0ken"})
    await deploy(backend, clean, guard, ORDER)
    assert "image_pull_secret" not in ironic.node(NODE)["instance_info"]


@pytest.mark.parametrize(
    ("image", "custom", "words"),
    [
        (IMAGE, None, None),
        (LIVE, None, None),
        (OCI, None, None),
        (COREOS, None, None),
        (None, STEP, None),
        (Image(url="https://x/i.raw", format="raw"), STEP, None),
        (None, None, "neither an image nor a custom deploy step"),
        (Image(url="https://x/i.raw", format="raw"), None, "no checksum"),
        (LIVE, STEP, "installs nothing"),
        (metal("https://x/metal.raw.xz"), None, None),
        (metal("https://x/metal.raw.xz", "raw"), COREOS_STEP, None),
        (metal("oci://registry.example/metal:1"), None, "by http and https alone"),
        (metal("https://x/live.ISO?y"), COREOS_STEP, "is an ISO image"),
        (metal("https://me:sesame@x/metal.raw"), None, None),
        (metal("https://me:sesame@x/metal.iso"), None, "is an ISO image"),
        (Image(url="https://x/metal.raw", checksum="ab" * 16, format="coreos"), None, "not md5"),
        (Image(url="https://x/metal.raw", format="coreos"), None, "needs a checksum"),
    ],
)
async def test_what_can_never_be_deployed_is_said_before_anything_is_touched(backend, image, custom, words):
    why = backend.cannot_deploy(image, custom)
    assert why is None if words is None else words in why
    assert "sesame" not in (why or "")


# Starting over


async def test_a_deployment_whose_ramdisk_does_not_come_up_is_taken_back_and_begins_anew(
    backend, ironic, clean, guard
):
    await deploy(backend, clean, guard, ORDER)
    ironic.change(NODE, provision_state="wait call-back")
    assert isinstance(await deploy(backend, clean, guard, ORDER), Busy)
    assert ironic.node(NODE)["provision_state"] == "wait call-back"
    answer = await deploy(backend, clean, guard, replace(ORDER, restart=True))
    assert isinstance(answer, Busy)
    assert "begins anew" in answer.why
    assert ironic.node(NODE)["provision_state"] == "deleting"
    ironic.finish(NODE)
    assert isinstance(await deploy(backend, clean, guard, ORDER), Busy)
    assert ironic.node(NODE)["provision_state"] == "deploying"
    assert guard.acts == [Act.DEPLOY, Act.UNDEPLOY, Act.DEPLOY]


async def test_a_restart_means_nothing_to_a_deployment_that_does_not_wait(backend, ironic, clean, guard):
    await deploy(backend, clean, guard, ORDER)
    assert isinstance(await deploy(backend, clean, guard, replace(ORDER, restart=True)), Busy)
    assert ironic.node(NODE)["provision_state"] == "deploying"


async def test_nobody_may_take_back_what_is_not_to_be(backend, ironic, clean, guard):
    await deploy(backend, clean, guard, ORDER)
    ironic.change(NODE, provision_state="wait call-back")
    guard.refuses = {Act.UNDEPLOY}
    assert isinstance(await deploy(backend, clean, guard, replace(ORDER, restart=True)), Busy)
    assert ironic.node(NODE)["provision_state"] == "wait call-back"


# Taking over


async def test_a_host_that_runs_a_live_iso_is_taken_over_as_one(backend, ironic, clean, guard):
    ironic.change(NODE, provision_state="manageable")
    assert isinstance(await backend.adopt(clean, LIVE, permit=guard, again=False), Busy)
    node = ironic.node(NODE)
    assert (node["provision_state"], node["deploy_interface"]) == ("adopting", "ramdisk")
    assert node["instance_info"] == {"boot_iso": LIVE.url}


async def test_after_an_attempt_that_failed_no_interface_is_changed(backend, ironic, clean, guard):
    """Ironic refuses to change an interface there."""
    ironic.change(NODE, provision_state="adopt failed", deploy_interface="custom-agent")
    assert isinstance(await backend.adopt(clean, IMAGE, permit=guard, again=True), Busy)
    assert ironic.node(NODE)["deploy_interface"] == "custom-agent"


async def test_a_host_without_an_image_is_taken_over_too(backend, ironic, clean, guard):
    ironic.change(NODE, provision_state="manageable")
    assert isinstance(await backend.adopt(clean, None, permit=guard, again=False), Busy)
    assert ironic.node(NODE)["instance_info"] == {}
    ironic.finish(NODE)
    assert await backend.adopt(clean, None, permit=guard, again=False) == Ready(None)


@pytest.mark.parametrize("installed", [None, IMAGE])
async def test_a_host_that_a_deploy_step_installed_is_taken_over_with_the_interface_for_that(
    backend, ironic, clean, guard, installed
):
    ironic.change(NODE, provision_state="manageable")
    step = CustomDeploy(method="install_coreos")
    answer = await backend.adopt(clean, installed, custom_deploy=step, permit=guard, again=False)
    assert isinstance(answer, Busy)
    assert ironic.node(NODE)["deploy_interface"] == "custom-agent"


# Boot devices


async def test_the_boot_device_is_persistent_where_that_is_asked_for(where, ironic, clean, guard):
    persistent = replace(where, persistent_boot=PersistentBoot(live_iso="Always", installed="Never"))
    async with IronicProvisioner(persistent) as backend:
        await deploy(backend, clean, guard, ORDER)
        assert ironic.node(NODE)["driver_info"] == {"force_persistent_boot_device": "Never"}
        ironic.change(NODE, provision_state="available")
        await deploy(backend, clean, guard, Deployment(image=LIVE, config_drive=DRIVE))
        assert ironic.node(NODE)["driver_info"] == {"force_persistent_boot_device": "Always"}


async def test_nothing_is_said_of_boot_devices_where_nobody_asked(backend, ironic, clean, guard):
    await deploy(backend, clean, guard, ORDER)
    assert ironic.node(NODE)["driver_info"] == {}


def test_how_boot_devices_are_set_is_read_from_the_environment():
    environment = {
        "IRONIC_ENDPOINT": "https://127.0.0.1:6385",
        "LIVE_ISO_FORCE_PERSISTENT_BOOT_DEVICE": "Never",
        "DIRECT_DEPLOY_FORCE_PERSISTENT_BOOT_DEVICE": "Always",
    }
    found = IronicAccess.from_environment(environment).persistent_boot
    assert found == PersistentBoot(live_iso="Never", installed="Always")
    with pytest.raises(SettingsError, match="expected Default, Always or Never"):
        IronicAccess.from_environment(environment | {"LIVE_ISO_FORCE_PERSISTENT_BOOT_DEVICE": "yes"})


async def test_a_failure_names_what_was_deployed(backend, ironic, clean, guard):
    order = Deployment(custom_deploy=STEP, config_drive=DRIVE)
    await deploy(backend, clean, guard, order)
    ironic.fail(NODE, "no such step")
    answer = await deploy(backend, clean, guard, order)
    assert answer == Failed("the custom deploy step install_os cannot be deployed: no such step")
