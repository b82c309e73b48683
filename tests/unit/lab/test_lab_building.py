"""What is built once: the lab file, the ramdisk, the manifests, and the commands that print them."""

from __future__ import annotations

import base64
import io
import json
import stat
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from ingot.cli.lab import lab as lab_command
from ingot.formats.boot_parameters import kernel_parameters
from ingot.formats.iso9660 import Iso
from ingot.lab import labfile
from ingot.lab.errors import LabError
from ingot.lab.labfile import LabFile, SampleImage
from ingot.lab.manifests import manifests
from ingot.lab.medium import ca_in_initrd
from ingot.lab.samples import as_qcow2, bundle, ramdisk_iso, sample_disk


def built(state: Path, servers: int = 2) -> LabFile:
    lab = labfile.grown(state, host="127.0.0.1", servers=servers)
    lab.images = [
        SampleImage(
            name=f"s.{kind}",
            format=kind,
            url=f"https://x/s.{kind}",
            sha256="ab" * 32,
            disk_sha256="cd" * 32,
            size=1,
        )
        for kind in ("raw", "qcow2")
    ]
    labfile.save(state, lab)
    return lab


def test_a_lab_grows_and_never_changes_or_loses_a_server(tmp_path: Path) -> None:
    first = labfile.grown(tmp_path, host="127.0.0.1", servers=2)
    more = labfile.grown(tmp_path, host="127.0.0.1", servers=4)
    fewer = labfile.grown(tmp_path, host="127.0.0.1", servers=1)
    assert more.servers[:2] == first.servers
    assert fewer.servers == more.servers
    assert [plate.host for plate in more.servers] == [f"127.77.0.{number}" for number in (1, 2, 3, 4)]
    assert {plate.bmc_port for plate in more.servers} == {more.bmc_port}
    assert len({plate.password for plate in more.servers}) == 4
    assert [plate.name for plate in more.servers] == ["server-1", "server-2", "server-3", "server-4"]


def test_the_servers_of_an_older_lab_stay_where_they_are_and_new_ones_get_their_own_address(
    tmp_path: Path,
) -> None:
    (tmp_path / "lab").mkdir()
    old = {
        "name": "server-1",
        "system_id": "11111111-2222-3333-4444-555555555555",
        "host": "127.0.0.1",
        "bmc_port": 4711,
        "username": "admin",
        "password": "x",
        "macs": ["52:54:00:00:00:00", "52:54:00:00:00:01"],
    }
    older = {"host": "127.0.0.1", "depot_port": 4712, "depot_token": "t", "servers": [old]}
    labfile.path(tmp_path).write_text(json.dumps(older))
    lab = labfile.grown(tmp_path, host="127.0.0.1", servers=2)
    first, second = lab.servers
    assert (first.host, first.bmc_port, first.profile) == ("127.0.0.1", 4711, "generic")
    assert (second.host, second.bmc_port) == ("127.77.0.2", lab.bmc_port)


def test_a_thousand_servers_differ_in_address_password_and_macs(tmp_path: Path) -> None:
    lab = labfile.grown(tmp_path, host="127.0.0.1", servers=1000, network="127.99.4.0/22")
    assert len({plate.host for plate in lab.servers}) == 1000
    assert (lab.servers[0].host, lab.servers[-1].host) == ("127.99.4.1", "127.99.7.232")
    assert len({plate.password for plate in lab.servers}) == 1000
    assert len({mac for plate in lab.servers for mac in plate.macs}) == 2000


@pytest.mark.parametrize(
    ("network", "told"),
    [
        ("127.99.0.0/28", "has room for 14 servers, not for 20"),
        ("127.99.0.1/16", "host bits set"),
        ("fd00::/64", "is no network for servers"),
        ("here", "is no network for servers"),
    ],
)
def test_a_network_that_does_not_fit_is_named(tmp_path: Path, network: str, told: str) -> None:
    with pytest.raises(LabError, match=told):
        labfile.grown(tmp_path, host="127.0.0.1", servers=20, network=network)


def test_a_mix_of_profiles_is_dealt_out_in_turn(tmp_path: Path) -> None:
    lab = labfile.grown(tmp_path, host="127.0.0.1", servers=3, profiles=("dell", "hpe"))
    assert [plate.profile for plate in lab.servers] == ["dell", "hpe", "dell"]
    assert lab.servers[0].bmc_address.startswith("idrac-virtualmedia+https://127.77.0.1:")
    assert lab.servers[1].bmc_address.startswith("redfish-virtualmedia+https://127.77.0.2:")


def test_only_its_owner_reads_the_lab_file(tmp_path: Path) -> None:
    built(tmp_path)
    assert stat.S_IMODE(labfile.path(tmp_path).stat().st_mode) == 0o600


def test_a_lab_file_that_is_missing_or_damaged_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no lab in"):
        labfile.load(tmp_path)
    built(tmp_path)
    labfile.path(tmp_path).write_text("{")
    with pytest.raises(LabError, match=r"lab\.json cannot be read"):
        labfile.load(tmp_path)


def test_the_ramdisk_tells_the_agent_whom_to_call_and_whom_to_trust() -> None:
    iso = Iso(io.BytesIO(ramdisk_iso(agent_api="https://127.0.0.1:6385/", ca=b"PEM")))
    values = kernel_parameters(iso.read("/boot/grub/grub.cfg").decode())
    assert values["ipa-api-url"] == "https://127.0.0.1:6385"
    assert values["ipa-inspection-callback-url"] == "https://127.0.0.1:6385/v1/continue_inspection"
    assert "ipa-agent-token" not in values
    assert ca_in_initrd(io.BytesIO(iso.read("/initrd"))) == "PEM"


def test_the_samples_are_the_same_every_time() -> None:
    assert sample_disk() == sample_disk()
    assert as_qcow2(sample_disk()) == as_qcow2(sample_disk())
    assert sample_disk()[510:512] == b"\x55\xaa"


def test_a_bundle_holds_each_authority_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\n")
    (tmp_path / "b").write_bytes(b"two")
    (tmp_path / "c").write_bytes(b"one")
    assert bundle(tmp_path / "a", tmp_path / "b", tmp_path / "c") == b"one\ntwo\n"


def test_every_server_is_a_host_with_a_secret_and_the_first_gets_an_image(tmp_path: Path) -> None:
    lab = built(tmp_path)
    objects = manifests(lab, namespace="rack", provision=1)
    names = [(one["kind"], one["metadata"]["namespace"], one["metadata"]["name"]) for one in objects]
    assert names == [
        ("Secret", "rack", "server-1-bmc"),
        ("Secret", "rack", "server-1-user-data"),
        ("Secret", "rack", "server-1-network-data"),
        ("BareMetalHost", "rack", "server-1"),
        ("Secret", "rack", "server-2-bmc"),
        ("BareMetalHost", "rack", "server-2"),
    ]
    first, second = objects[3]["spec"], objects[5]["spec"]
    assert first["image"] == {
        "url": "https://x/s.qcow2",
        "checksum": "ab" * 32,
        "checksumType": "sha256",
        "format": "qcow2",
    }
    assert first["userData"] == {"name": "server-1-user-data", "namespace": "rack"}
    assert first["networkData"] == {"name": "server-1-network-data", "namespace": "rack"}
    network = json.loads(base64.b64decode(objects[2]["data"]["networkData"]))
    assert network["links"][0]["ethernet_mac_address"] == lab.servers[0].macs[0]
    assert "image" not in second
    assert second["bmc"] == {"address": lab.servers[1].bmc_address, "credentialsName": "server-2-bmc"}
    assert base64.b64decode(objects[0]["data"]["password"]).decode() == lab.servers[0].password


def test_the_command_prints_yaml_that_kubectl_reads(tmp_path: Path) -> None:
    lab = built(tmp_path)
    done = CliRunner().invoke(
        lab_command, ["manifests", "--state", str(tmp_path), "--provision", "1", "--format", "raw"]
    )
    assert done.exit_code == 0
    assert list(yaml.safe_load_all(done.output)) == manifests(lab, provision=1, image_format="raw")


def test_a_server_with_coreos_gets_ignition_and_no_image(tmp_path: Path) -> None:
    objects = manifests(built(tmp_path), provision=1, image_format="coreos")
    assert objects[3]["spec"]["image"] == {"url": "", "format": "coreos"}
    config = json.loads(base64.b64decode(objects[1]["data"]["userData"]))
    assert config == {"ignition": {"version": "3.4.0"}}


def test_a_user_chooses_servers_image_and_user_data(tmp_path: Path) -> None:
    built(tmp_path, servers=12)
    (tmp_path / "user-data").write_text("#cloud-config\nfqdn: {name}.example.com\n")
    arguments = ["server-1*", "server-7", "--count", "4", "--provision", "1", "--offline"]
    image = ["--image", "https://images/x.raw", "--checksum", "ab" * 32, "--format", "raw"]
    data = ["--user-data", str(tmp_path / "user-data")]
    done = CliRunner().invoke(lab_command, ["manifests", "--state", str(tmp_path), *arguments, *image, *data])
    assert done.exit_code == 0, done.output
    objects = list(yaml.safe_load_all(done.output))
    hosts = [one for one in objects if one["kind"] == "BareMetalHost"]
    names = [host["metadata"]["name"] for host in hosts]
    assert names == ["server-1", "server-7", "server-10", "server-11"]
    assert not any(host["spec"]["online"] for host in hosts)
    assert hosts[0]["spec"]["image"] == {
        "url": "https://images/x.raw",
        "checksum": "ab" * 32,
        "checksumType": "sha256",
        "format": "raw",
    }
    user_data = base64.b64decode(objects[1]["data"]["userData"]).decode()
    assert user_data == "#cloud-config\nfqdn: server-1.example.com\n"
    assert [host["metadata"]["name"] for host in hosts if "image" in host["spec"]] == ["server-1"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["rack-*"], "no server that fits rack-*"),
        (["--image", "https://images/x.raw"], "needs its --checksum"),
        (["--checksum", "ab"], "of an image that --image names"),
    ],
)
def test_a_choice_that_makes_no_sense_is_named(tmp_path: Path, arguments: list[str], told: str) -> None:
    built(tmp_path)
    done = CliRunner().invoke(lab_command, ["manifests", "--state", str(tmp_path), *arguments])
    assert done.exit_code != 0
    assert told in done.output


def test_without_a_lab_the_command_says_what_to_do(tmp_path: Path) -> None:
    done = CliRunner().invoke(lab_command, ["manifests", "--state", str(tmp_path)])
    assert done.exit_code == 1
    assert "start one with `ingot lab farm` or `ingot up`" in done.output


@pytest.mark.parametrize("listen", ["127.0.0.1", "x:y", ":80", "1.2.3.4:99999"])
def test_an_address_without_a_port_is_refused(tmp_path: Path, listen: str) -> None:
    arguments = ["farm", "--state", str(tmp_path), "--listen", listen, "--agent-api", "https://x"]
    done = CliRunner().invoke(lab_command, arguments)
    assert done.exit_code == 2
    assert "is not ADDRESS:PORT" in done.output


@pytest.mark.parametrize(
    "url", ["ftp://x", "https://", "127.0.0.1:6385", "https://x/ init=/bin/sh", "https://x/;reboot"]
)
def test_an_agent_api_that_is_no_address_is_refused(tmp_path: Path, url: str) -> None:
    done = CliRunner().invoke(lab_command, ["farm", "--state", str(tmp_path), "--agent-api", url])
    assert done.exit_code == 1
    assert "is no address of an Ironic API" in done.output
