"""What `ingot up` decides without I/O: the folder, the parts, what is told, what is advised."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
import pytest

from ingot.api.baremetalhost import (
    BareMetalHost,
    BareMetalHostSpec,
    BareMetalHostStatus,
    CustomDeploy,
    Image,
    ProvisionStatus,
)
from ingot.api.meta import Condition, Key, ObjectMeta
from ingot.cli import up
from ingot.cli.parts import advice, plan
from ingot.cli.parts.plan import Wishes
from ingot.cli.parts.progress import Teller, goal_of, still_missing, view_of
from ingot.cli.parts.state import StateFolder, is_ours
from ingot.embedded.supervisor import PartStatus
from ingot.embedded.supervisor import State as PartState
from ingot.images.controller import ImageSettings
from ingot.lab.labfile import LabFile, save
from ingot.machines.defaults import of_release
from ingot.services.ramdisk_arguments import for_every_ramdisk
from ingot.services.settings import IronicSettings

PORTS = {
    "api-server": 1001,
    "ironic": 1002,
    "lab": 1003,
    "operator": 1004,
    "front": 1005,
    "boot": 1006,
    "images": 1007,
}
IMAGE = Image(url="https://images/one.qcow2")


def host(name: str = "server-1", *, state: str = "", error: str = "", **spec: object) -> BareMetalHost:
    return BareMetalHost(
        metadata=ObjectMeta(namespace="default", name=name),
        spec=msgspec.convert(spec, BareMetalHostSpec) if spec else BareMetalHostSpec(),
        status=BareMetalHostStatus(error_message=error, provisioning=ProvisionStatus(state=state)),
    )


def saying(kind: str, status: str, message: str) -> Condition:
    return Condition(
        type=kind, status=status, reason="Because", message=message, last_transition_time=datetime.now(UTC)
    )


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("ca", True),
        ("kubeconfig-readonly", True),
        (".kubeconfig.ab12cd", True),
        ("notes.txt", False),
        (".ssh", False),
        (".kubeconfig", False),
    ],
)
def test_only_names_that_ingot_gives_are_ours(name: str, ours: bool) -> None:
    assert is_ours(name) is ours


def test_a_folder_of_somebody_else_is_foreign_and_a_mixed_one_names_its_strangers(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    assert not state.is_foreign()
    (tmp_path / "thesis.odt").touch()
    assert state.is_foreign()
    (tmp_path / "ca").mkdir()
    assert not state.is_foreign()
    assert state.strangers() == ["thesis.odt"]


def test_making_credentials_again_changes_none(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    first = plan.make_ready(state)
    files = [first.push_token_file, first.ironic.key_file, first.auth_root / "ironic/password"]
    before = [path.read_text() for path in files]
    assert plan.make_ready(state) == first
    assert [path.read_text() for path in files] == before
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_the_operator_waits_for_everything_it_talks_to(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    parts = plan.parts(state, PORTS, plan.make_ready(state), Wishes())
    assert [part.name for part in parts] == ["api-server", "ironic", "front", "lab", "operator"]
    assert parts[-1].after == ("api-server", "ironic", "lab")
    assert " --controllers hosts,machines " in " ".join(parts[-1].argv)


def test_without_the_lab_nothing_asks_for_it(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    parts = plan.parts(state, PORTS, plan.make_ready(state), Wishes(lab=False))
    assert [part.name for part in parts] == ["api-server", "ironic", "front", "operator"]
    assert parts[-1].after == ("api-server", "ironic")
    assert dict(parts[-1].late_environment()) == {}


def test_ramdisks_of_coreos_are_there_before_hosts_ask_for_them(tmp_path: Path) -> None:
    state, payload = StateFolder(tmp_path / "state"), tmp_path / "payload"
    payload.mkdir()
    trusted = plan.make_ready(state)
    planned = plan.parts(state, PORTS, trusted, Wishes(coreos=payload))
    assert [part.name for part in planned] == ["api-server", "images", "ironic", "front", "lab", "operator"]
    parts = {part.name: part for part in planned}
    assert parts["operator"].after == ("api-server", "ironic", "images", "lab")
    told = parts["operator"].environment
    assert told["IRONIC_USE_COREOS_IPA"] == "true"
    usual = of_release(told["INGOT_RELEASE_TARGET"])
    assert usual is not None
    assert usual.custom_deploy == CustomDeploy(method="install_coreos")
    ironic = IronicSettings.from_environment(parts["ironic"].environment)
    assert (ironic.use_coreos, ironic.boot_iso_source) == (True, "http")
    images = ImageSettings.from_environment(parts["images"].environment, state=state.images)
    assert images.payload == payload
    assert images.agent().api_urls == (ironic.base_url,)
    assert images.agent().ca == trusted.ca_file.read_bytes()
    assert parts["images"].address == "https://127.0.0.1:1007"


def test_a_live_image_does_as_well_as_a_payload(tmp_path: Path) -> None:
    state, image = StateFolder(tmp_path / "state"), tmp_path / "live.iso"
    image.touch()
    planned = plan.parts(state, PORTS, plan.make_ready(state), Wishes(coreos=image))
    found = {part.name: part for part in planned}["images"].environment
    settings = ImageSettings.from_environment(
        {"INGOT_RELEASE_PAYLOAD": "/of/the/shell"} | dict(found), state=state.images
    )
    assert (settings.payload, settings.iso) == (None, image)


def test_arguments_of_the_kernel_that_a_shell_names_reach_all_who_start_ramdisks(tmp_path: Path) -> None:
    state, payload = StateFolder(tmp_path / "state"), tmp_path / "payload"
    payload.mkdir()
    planned = plan.parts(state, PORTS, plan.make_ready(state), Wishes(coreos=payload))
    shell = {"IRONIC_KERNEL_PARAMS": "console=ttyS0", "ENABLE_FIPS_IPA": "true"}
    # A part has what the shell has, and over it what is planned for it.
    seen = {part.name: {**shell, **part.environment} for part in planned}
    assert for_every_ramdisk(IronicSettings.from_environment(seen["ironic"])) == "fips=1 console=ttyS0"
    images = ImageSettings.from_environment(seen["images"], state=state.images)
    assert images.agent().iso_arguments == ("fips=1", "console=ttyS0")


def test_servers_of_the_lab_find_the_boot_script_where_they_may_boot_over_the_network(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    for wishes, told in ((Wishes(), False), (Wishes(network_boot=True), True)):
        parts = {part.name: part for part in plan.parts(state, PORTS, plan.make_ready(state), wishes)}
        assert ("http://127.0.0.1:1006/boot.ipxe" in parts["lab"].argv) is told
        assert IronicSettings.from_environment(parts["front"].environment).network_boot is told


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, None),
        ({"INGOT_RELEASE_PAYLOAD": "payload"}, None),
        ({"IRONIC_USE_COREOS_IPA": "false", "INGOT_RELEASE_PAYLOAD": "payload"}, None),
        ({"IRONIC_USE_COREOS_IPA": "true", "INGOT_RELEASE_PAYLOAD": "payload"}, "payload"),
        ({"IRONIC_USE_COREOS_IPA": "True", "DEPLOY_ISO": "live.iso"}, "live.iso"),
    ],
)
def test_coreos_can_be_asked_for_in_the_environment(
    environment: dict[str, str], found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "payload").mkdir()
    (tmp_path / "live.iso").touch()
    assert up.coreos_from(environment) == (tmp_path / found if found else None)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"IRONIC_USE_COREOS_IPA": "perhaps"}, "expected true or false"),
        ({"IRONIC_USE_COREOS_IPA": "true"}, "nothing says what ramdisks are made of"),
        ({"IRONIC_USE_COREOS_IPA": "true", "INGOT_RELEASE_PAYLOAD": "/no/where"}, "there is nothing"),
    ],
)
def test_what_is_missing_for_coreos_is_said(environment: dict[str, str], said: str) -> None:
    with pytest.raises(click.ClickException, match=said):
        up.coreos_from(environment)


def test_no_secret_is_in_a_command_line_or_an_environment(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    trusted = plan.make_ready(state)
    secrets = [trusted.push_token_file.read_text(), (trusted.auth_root / "ironic/password").read_text()]
    for part in plan.parts(state, PORTS, trusted, Wishes()):
        shown = " ".join([*part.argv, *part.environment.values()])
        assert not any(secret in shown for secret in secrets)


def test_ironic_pushes_to_the_operator_and_both_agree_on_the_credentials(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    trusted = plan.make_ready(state)
    parts = {part.name: part for part in plan.parts(state, PORTS, trusted, Wishes())}
    ironic = IronicSettings.from_environment(parts["ironic"].environment)
    operator = parts["operator"]
    assert ironic.push_url == "https://127.0.0.1:1004/v1/push"
    assert "127.0.0.1:1004" in operator.argv
    auth = Path(operator.environment["METAL3_AUTH_ROOT_DIR"]) / "ironic"
    assert ironic.password_file == auth / "password"
    assert ironic.username == (auth / "username").read_text()
    assert operator.environment["IRONIC_ENDPOINT"] == f"{ironic.api_url}/v1"


def test_machines_call_the_front_server_and_the_operator_calls_ironic(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    parts = {part.name: part for part in plan.parts(state, PORTS, plan.make_ready(state), Wishes())}
    ironic = IronicSettings.from_environment(parts["ironic"].environment)
    assert parts["front"].environment == parts["ironic"].environment
    # A shell that has one of its own must not lead the two astray.
    assert parts["front"].environment["IRONIC_IP"] == "127.0.0.1"
    assert (
        parts["lab"].argv[parts["lab"].argv.index("--agent-api") + 1]
        == ironic.base_url
        == parts["front"].address
    )
    assert ironic.api_url == parts["ironic"].address != ironic.base_url


def test_the_operator_learns_the_ramdisk_from_the_lab_when_it_starts(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    operator = plan.parts(state, PORTS, plan.make_ready(state), Wishes())[-1]
    (state.path / "lab").mkdir()
    save(
        state.path,
        LabFile(host="127.0.0.1", depot_port=1, depot_token="t", ramdisk_url="https://depot/r.iso"),
    )
    assert dict(operator.late_environment()) == {"DEPLOY_ISO_URL": "https://depot/r.iso"}
    over_network = plan.parts(state, PORTS, plan.make_ready(state), Wishes(network_boot=True))[-1]
    assert set(over_network.late_environment()) == {
        "DEPLOY_ISO_URL",
        "DEPLOY_KERNEL_URL",
        "DEPLOY_RAMDISK_URL",
    }


@pytest.mark.parametrize(
    ("spec", "goal"),
    [
        (BareMetalHostSpec(), "available"),
        (BareMetalHostSpec(image=IMAGE), "provisioned"),
        (BareMetalHostSpec(custom_deploy=CustomDeploy(method="install_coreos")), "provisioned"),
        (BareMetalHostSpec(externally_provisioned=True, image=IMAGE), "externally provisioned"),
    ],
)
def test_a_host_is_to_run_what_its_spec_asks_for(spec: BareMetalHostSpec, goal: str) -> None:
    assert goal_of(BareMetalHost(spec=spec)) == goal


def test_a_host_with_an_error_has_not_arrived() -> None:
    assert view_of(host(state="available")).arrived
    failed = view_of(host(state="available", error="the BMC refused the password"))
    assert not failed.arrived
    assert failed.sentence == "the BMC refused the password"


def test_the_sentence_is_why_the_host_is_where_it_is() -> None:
    def told(*conditions: Condition) -> str:
        status = BareMetalHostStatus(conditions=list(conditions))
        return view_of(BareMetalHost(status=status)).sentence

    ready = saying("Ready", "False", "Next: it is provisioned.")
    assert told(saying("Progressing", "True", "cleaning the disks"), ready) == "cleaning the disks"
    assert told(saying("Progressing", "False", "waiting for an image"), ready) == "waiting for an image"
    assert told() == ""


def test_each_change_is_told_once() -> None:
    teller = Teller()
    starting = PartStatus(name="ironic", state=PartState.STARTING, why="no answer yet")
    assert teller.about_parts([starting]) == [f"{'ironic':<24} starting"]
    assert teller.about_parts([msgspec.structs.replace(starting, why="still no answer")]) == []
    ready = PartStatus(name="ironic", state=PartState.READY)
    assert teller.about_parts([ready]) == [f"{'ironic':<24} ready"]
    view = view_of(host(state="inspecting"))
    assert teller.about_hosts([view]) == [f"{'default/server-1':<24} inspecting"]
    assert teller.about_hosts([view]) == []
    moved = dataclasses.replace(view, state="available")
    assert teller.about_hosts([moved]) == [f"{'default/server-1':<24} available"]


def test_what_is_missing_is_told_host_by_host() -> None:
    views = [view_of(host("server-1", state="available")), view_of(host("server-2", state="inspecting"))]
    expected = [Key("default", f"server-{number}") for number in (1, 2, 3)]
    assert still_missing(views, expected) == [
        "default/server-2: inspecting, not yet available.",
        "default/server-3: is not there (yet)",
    ]
    assert still_missing(views[:1], expected[:1]) == []


def test_advice_can_be_copied_as_it_stands(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "with blank")
    lines = advice.commands(state, [Key("default", "server-1"), Key("default", "server-2")], detached=True)
    assert f"  export KUBECONFIG='{state.kubeconfig}'" in lines
    assert any(line.endswith(f"ingot down --state '{state.path}'") for line in lines)
    assert any("patch bmh server-1" in line and '{"spec":{"image":null}}' in line for line in lines)
    other = "\n".join(advice.commands(state, [Key("rack-3", "h17")], detached=False))
    assert "describe -n rack-3 bmh h17" in other


def test_advice_names_the_kubectl_that_setup_built_when_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateFolder(tmp_path / "state")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert "  kubectl get bmh -A -w" in advice.commands(state, [], detached=False)
    built = tmp_path / "cache/ingot/tools/bin/kubectl"
    built.parent.mkdir(parents=True)
    built.touch()
    assert f"  {built} get bmh -A -w" in advice.commands(state, [], detached=False)
