"""What a person asks of a host with `ingot host`: it is done, followed, or refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

from host_site import IMAGE, Site

from ingot.api.baremetalhost import Annotation, BareMetalHost, OperationalStatus
from ingot.api.core import SECRETS
from ingot.api.meta import Key
from ingot.cli.host.power import switched
from ingot.cli.parts.errands import Errand, write
from ingot.kube import Client


async def test_a_host_is_provisioned_rebooted_let_go_and_emptied(site: Site, tmp_path: Path) -> None:
    user_data = tmp_path / "cloud-init.yaml"
    user_data.write_text("#cloud-config\n")
    await site.added("h1", "--wait")

    told = await site.host("provision", "h1", *IMAGE, "--user-data", str(user_data), "--wait")
    assert told.exit_code == 0, told.output
    assert told.output.splitlines()[-1] == "default/h1 is provisioned"
    assert "  provisioning: installing https://images.example/a.raw" in told.output
    host = await site.get("h1")
    secret = await site.client.get(SECRETS, Key("default", "h1-user-data"))
    assert host.spec.user_data is not None
    assert (host.spec.user_data.name, secret.text("userData")) == ("h1-user-data", "#cloud-config\n")
    assert [owner.uid for owner in secret.metadata.owner_references] == [host.metadata.uid]

    told = await site.host("power", "reboot", "h1", "--hard", "--wait")
    assert told.exit_code == 0, told.output
    assert "switching the power off" in told.output
    assert (await site.get("h1")).status.powered_on

    told = await site.host("power", "off", "h1", "--wait", "-o", "json")
    assert json.loads(told.stdout)["done"] is True
    assert not (await site.get("h1")).status.powered_on
    assert (await site.host("power", "on", "h1", "--wait")).exit_code == 0

    assert (await site.host("detach", "h1", "--wait")).exit_code == 0
    assert (await site.get("h1")).status.operational_status is OperationalStatus.DETACHED
    told = await site.host("attach", "h1", "--wait")
    assert told.exit_code == 0, told.output

    told = await site.host("deprovision", "h1", "--wait")
    assert told.exit_code == 0, told.output
    told = await site.host("inspect", "h1", "--wait")
    assert told.exit_code == 0, told.output
    assert told.output.splitlines()[-1] == "default/h1 was inspected"


async def test_coreos_is_installed_with_its_ignition_config(site: Site, tmp_path: Path) -> None:
    config = tmp_path / "worker.ign"
    config.write_text('{"ignition": {"version": "3.4.0"}}')
    await site.added("h1", "--wait")
    network = tmp_path / "network.yaml"
    network.write_text("interfaces: [{name: eth0, ipv4: {enabled: true, dhcp: true}}]")
    files = ["--ignition", str(config), "--network-data", str(network)]
    told = await site.host("provision", "h1", "--coreos", *files, "--wait")
    assert told.exit_code == 0, told.output
    assert "  provisioning: installing install_coreos" in told.output
    host = await site.get("h1")
    assert host.spec.image is not None
    assert (host.spec.image.url, host.spec.image.format) == ("", "coreos")
    secret = await site.client.get(SECRETS, Key("default", "h1-user-data"))
    assert secret.text("userData") == config.read_text()
    secret = await site.client.get(SECRETS, Key("default", "h1-network-data"))
    assert secret.text("networkData") == network.read_text()
    assert "deployed by: install_coreos" in " ".join((await site.host("show", "h1")).output.split())


async def test_what_coreos_cannot_read_is_refused_before_anything_is_asked_for(
    site: Site, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text("#cloud-config\n")
    nmstate = tmp_path / "nmstate"
    nmstate.write_text("interfaces: [{name: a, type: ovs-bridge}]")
    await site.added("h1", "--wait")
    for words, expected in (
        (["--coreos", "--ignition", str(config)], "the Ignition config is not JSON"),
        (["--custom-deploy", "install_coreos", "--user-data", str(config)], "configured with Ignition"),
        (["--coreos", "--format", "raw"], "choose one"),
        ([*IMAGE, "--ignition", str(config)], "only CoreOS reads --ignition"),
        (["--coreos", "--ignition", str(config), "--user-data", str(config)], "give one of"),
        (["--coreos", "--network-data", str(nmstate)], "cannot become the network of CoreOS"),
        ([*IMAGE, "--network-data", str(nmstate)], "--network-data is nmstate"),
    ):
        told = await site.host("provision", "h1", *words)
        assert told.exit_code == 2, told.output
        assert expected in told.output
    assert (await site.get("h1")).spec.image is None


async def test_what_failed_is_tried_again_at_once(site: Site) -> None:
    await site.added("broken", "--wait")
    told = await site.host("retry", "broken", "--wait")
    assert told.exit_code == 0, told.output
    assert Annotation.RETRY not in (await site.get("broken")).metadata.annotations


async def test_a_try_that_fails_again_is_said(site: Site) -> None:
    """What waits for a person fails in the same words, and with nothing new in the status."""
    await site.host("add", "h1", "--address", "redfish://192.0.2.1", "--credentials", "missing", "--wait")
    for _ in range(2):
        told = await site.host("retry", "h1", "--wait")
        assert told.exit_code == 1
        assert "Secret missing" in told.output.splitlines()[-1]


async def test_a_paused_host_is_left_alone_until_it_is_unpaused(site: Site) -> None:
    await site.added("h1", "--wait")
    assert (await site.host("pause", "h1")).output == "default/h1 is paused\n"
    told = await site.host("power", "off", "h1", "--wait", "--timeout", "1")
    assert told.exit_code == 1
    assert Annotation.PAUSED in told.output
    told = await site.host("unpause", "h1")
    assert told.output == "default/h1 is looked after again\n"
    assert (await site.host("power", "off", "h1", "--wait")).exit_code == 0


async def test_an_image_that_runs_is_not_replaced_unasked(site: Site) -> None:
    await site.added("h1", "--wait")
    assert (await site.host("provision", "h1", *IMAGE, "--wait")).exit_code == 0
    other = ("--image", "https://images.example/b.raw", "--checksum", "00ff")
    told = await site.host("provision", "h1", *other)
    assert told.exit_code == 1
    assert "default/h1 runs https://images.example/a.raw. With --replace" in told.output
    assert (await site.get("h1")).status.provisioning.state == "provisioned"
    told = await site.host("provision", "h1", *other, "--replace", "--wait")
    assert told.exit_code == 0, told.output
    assert "deprovisioning" in told.output
    host = await site.get("h1")
    assert host.status.provisioning.image is not None
    assert host.status.provisioning.image.url == other[1]


async def test_a_host_that_somebody_uses_is_left_to_that_one(site: Site) -> None:
    await site.added("h1", "--wait")
    await site.patch("h1", {"spec": {"consumerRef": {"kind": "Metal3Machine", "name": "worker-0"}}})
    for words in (("provision", "h1", *IMAGE), ("deprovision", "h1")):
        told = await site.host(*words)
        assert told.exit_code == 1
        assert "is used by Metal3Machine worker-0" in told.output
    assert (await site.host("provision", "h1", *IMAGE, "--force")).exit_code == 0


async def test_somebody_elses_secret_is_not_overwritten(site: Site, tmp_path: Path) -> None:
    await site.added("h1", "--wait")
    theirs = {"metadata": {"name": "h1-user-data"}, "stringData": {"userData": "theirs"}}
    await site.client.create(SECRETS, theirs, namespace="default")
    (tmp_path / "mine").write_text("mine")
    told = await site.host("provision", "h1", *IMAGE, "--user-data", str(tmp_path / "mine"))
    assert told.exit_code == 1
    assert "was not made by this command" in told.output
    assert (await site.get("h1")).spec.image is None


REFUSED = [
    (("power", "reboot", "h1"), "runs no system that could be rebooted"),
    (("deprovision", "h1"), "nothing is installed on it"),
    (("attach", "h1"), "is not detached"),
    (("retry", "h1"), "has not failed"),
    (("provision", "h1"), "say what to install"),
    (("provision", "h1", "--checksum", "00"), "say which one with --image"),
    (("provision", "h1", "--image", "https://images.example/a.raw"), "needs a checksum"),
    (("provision", "h1", "--image", "file:///etc/shadow", "--checksum", "00"), "spec.image.url"),
    (("power", "on", "h2"), "h2"),
    (("detach", "h1", "--kubeconfig", "/nowhere"), "there is no kubeconfig"),
]


async def test_what_cannot_be_done_is_said_in_a_sentence(site: Site) -> None:
    await site.added("h1", "--wait")
    before = await site.get("h1")
    for words, said in REFUSED:
        told = await site.host(*words)
        assert told.exit_code in (1, 2), words
        assert said in told.output
        assert "Traceback" not in told.output
    assert (await site.get("h1")).metadata.resource_version == before.metadata.resource_version


async def test_a_host_that_must_never_be_off_is_not_switched_off(site: Site) -> None:
    await site.added("h1", "--wait")
    await site.patch("h1", {"spec": {"disablePowerOff": True}})
    told = await site.host("power", "off", "h1")
    assert (told.exit_code, "spec.disablePowerOff is true" in told.output) == (1, True)


async def test_whoever_paused_a_host_unpauses_it(site: Site) -> None:
    await site.added("h1", "--wait")
    await site.patch("h1", {"metadata": {"annotations": {Annotation.PAUSED: "metal3.io/capm3"}}})
    told = await site.host("unpause", "h1")
    assert (told.exit_code, "was paused by 'metal3.io/capm3'" in told.output) == (1, True)
    assert (await site.host("unpause", "h1", "--force")).exit_code == 0


async def test_where_somebody_else_was_faster_it_is_decided_again(site: Site) -> None:
    await site.added("h1", "--wait")
    decided_on = []

    def decide(host: BareMetalHost) -> Errand:
        decided_on.append(host.spec.description)
        return switched(host, on=False)

    async def meanwhile(client: Client, host: BareMetalHost) -> None:
        await site.patch("h1", {"spec": {"description": "edited"}})

    _, written, _ = await write(site.client, Key("default", "h1"), decide, meanwhile)
    assert (decided_on[0], decided_on[-1]) == ("", "edited")
    assert (written.spec.description, written.spec.online) == ("edited", False)
