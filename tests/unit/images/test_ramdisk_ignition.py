"""The Ignition config of a host's ramdisk: what the agent is told, what it is started with, and what is nobody's business."""

from __future__ import annotations

import configparser
import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ramdisk_parts import API, KEYFILES, SSH_KEY, agent_settings, decoded, files_of, modes_of, unit_of

from ingot.formats.ignition import parse_ignition
from ingot.images.ramdisk import AgentSettings, CannotBuild, agent_ignition
from ingot.images.ramdisk.agent_files import quoted
from ingot.trust import Secret

CONF = "/etc/ironic-python-agent.conf"
CA = "/etc/ironic-python-agent/ironic.crt"
ANCHOR = "/etc/pki/ca-trust/source/anchors/ca.crt"
PULL_SECRET = Secret('{"auths": {"r.example": {"auth": "aHVzaA=="}}}')


def made(settings: AgentSettings | None = None, keyfiles: dict[str, bytes] | None = None) -> bytes:
    return agent_ignition(settings or agent_settings(), hostname="h1", keyfiles=keyfiles or {})


def agent_reads(ignition: bytes) -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.read_string(files_of(ignition)[CONF].decode())
    assert parser.sections() == []
    return parser["DEFAULT"]


def told_to_trust(ignition: bytes) -> bytes:
    """What lies in the file that the unit puts together for the agent, as far as it comes with the config."""
    (line,) = [line for line in unit_of(ignition).splitlines() if "/bin/sh -c" in line]
    command = shlex.split(line.partition("=")[2])[2]
    assert command.startswith("cat ")
    files = files_of(ignition)
    return b"".join(files.get(word, b"") for word in command.partition(" > ")[0].split())


def full_settings() -> AgentSettings:
    return agent_settings(
        api_urls=(API, "https://[fd00::1]:6385"),
        image="r.example:5000/agent@sha256:" + "a" * 64,
        ca=b"CA of Ironic\n",
        ca_bundle=b"CA of the registry\n",
        pull_secret=PULL_SECRET,
        registries_conf=b'unqualified-search-registries = ["r.example"]\n',
        ssh_key=SSH_KEY,
        ip_options=("ip=dhcp", "rd.neednet=1"),
        http_proxy=Secret("http://me:p%40ss@proxy.example:3128"),
        https_proxy=Secret("http://proxy.example:3128"),
        no_proxy=".example,10.0.0.0/8",
        ntp_servers=("time.example", "10.0.0.2"),
    )


# What the agent is told


def test_the_agent_calls_the_api_and_verifies_it() -> None:
    told = agent_reads(made(agent_settings(ca=b"CA of Ironic\n")))
    assert told["api_url"] == API
    assert told["inspection_callback_url"] == f"{API}/v1/continue_inspection"
    assert told.getboolean("insecure") is False
    assert told["cafile"] == CA
    assert files_of(made(agent_settings(ca=b"CA of Ironic\n")))[CA] == b"CA of Ironic\n"


def test_a_bundle_is_in_the_config_once_however_many_read_it() -> None:
    """That of a whole system fills half of the room that an image has."""
    ignition = made(agent_settings(ca_bundle=b"CA of the registry\n"))
    assert agent_reads(ignition)["cafile"] == CA
    assert [path for path, content in files_of(ignition).items() if b"CA of" in content] == [ANCHOR]
    assert told_to_trust(ignition) == b"CA of the registry\n"


def test_without_a_ca_of_its_own_the_agent_trusts_whom_its_system_trusts() -> None:
    told = agent_reads(made())
    assert "cafile" not in told
    assert told.getboolean("insecure") is False
    assert CA not in files_of(made())


def test_no_image_holds_a_token() -> None:
    assert b"token" not in files_of(made(full_settings()))[CONF]


def test_several_addresses_and_an_inspector_of_its_own() -> None:
    told = agent_reads(
        made(
            agent_settings(
                api_urls=(API, "https://b.example:1"), inspection_urls=("https://i.example:5050/v1/continue",)
            )
        )
    )
    assert told["api_url"] == f"{API},https://b.example:1"
    assert told["inspection_callback_url"] == "https://i.example:5050/v1/continue"


@pytest.mark.parametrize(
    ("setting", "keyfiles", "told"),
    [
        ("", {}, "all"),
        ("", KEYFILES, ""),
        ("always", {}, "all"),
        ("always", KEYFILES, "all"),
        ("never", {}, ""),
        ("never", KEYFILES, ""),
    ],
)
def test_which_vlan_interfaces_the_agent_brings_up(
    setting: str, keyfiles: dict[str, bytes], told: str
) -> None:
    found = agent_reads(made(agent_settings(vlan_interfaces=setting), keyfiles))
    assert found["enable_vlan_interfaces"] == told


@pytest.mark.parametrize(("keyfiles", "waits"), [({}, True), (KEYFILES, False)])
def test_an_agent_waits_for_dhcp_where_there_is_some(keyfiles: dict[str, bytes], waits: bool) -> None:
    told = agent_reads(made(keyfiles=keyfiles))
    assert told.getboolean("inspection_dhcp_all_interfaces") is waits


def test_an_agent_sets_the_clock_before_it_looks_at_certificates() -> None:
    assert "ntp_server" not in agent_reads(made())
    assert agent_reads(made(full_settings()))["ntp_server"] == "time.example"


# The files


def test_a_bare_config_has_few_files_and_one_unit() -> None:
    config, unused = parse_ignition(made())
    assert unused == []
    assert config["ignition"] == {"version": "3.2.0"}
    assert sorted(files_of(made())) == [
        "/etc/NetworkManager/conf.d/clientid.conf",
        "/etc/NetworkManager/dispatcher.d/01-hostname",
        "/etc/ironic-python-agent.conf",
        "/etc/issue.d/ironic-agent.issue",
    ]
    assert "passwd" not in config


def test_a_config_with_everything() -> None:
    ignition = made(full_settings(), KEYFILES)
    config, unused = parse_ignition(ignition)
    files, modes = files_of(ignition), modes_of(ignition)
    assert unused == []
    assert files["/etc/authfile.json"].decode() == PULL_SECRET.reveal()
    assert files[CA] == b"CA of Ironic\n"
    assert files[ANCHOR] == b"CA of the registry\n"
    assert told_to_trust(ignition) == b"CA of Ironic\nCA of the registry\n"
    assert files["/etc/containers/registries.conf"] == full_settings().registries_conf
    assert config["passwd"]["users"] == [{"name": "core", "sshAuthorizedKeys": [SSH_KEY]}]
    assert (modes["/etc/authfile.json"], modes[CONF]) == (0o600, 0o644)
    assert modes["/etc/NetworkManager/dispatcher.d/01-hostname"] & 0o100
    replaced = {file["path"] for file in config["storage"]["files"] if file.get("overwrite")}
    connections = {f"/etc/NetworkManager/system-connections/{name}" for name in KEYFILES}
    assert replaced == {"/etc/containers/registries.conf", *connections}


def test_time_servers_are_put_behind_those_of_the_system() -> None:
    config = json.loads(made(full_settings()))
    (file,) = (file for file in config["storage"]["files"] if file["path"] == "/etc/chrony.conf")
    assert "contents" not in file
    assert decoded(file["append"][0]) == b"\nserver time.example iburst\nserver 10.0.0.2 iburst\n"


def test_keyfiles_are_for_root_alone() -> None:
    ignition = made(keyfiles=KEYFILES)
    for name, content in KEYFILES.items():
        path = f"/etc/NetworkManager/system-connections/{name}"
        assert files_of(ignition)[path] == content
        assert modes_of(ignition)[path] == 0o600


@pytest.mark.parametrize("name", ["../../shadow", "a/b", "", ".hidden", "a\nb", "x" * 256])
def test_a_keyfile_cannot_be_put_elsewhere(name: str) -> None:
    with pytest.raises(CannotBuild, match="file name"):
        made(keyfiles={name: b""})


def test_the_same_asked_twice_gives_the_same_bytes() -> None:
    turned = dict(reversed(KEYFILES.items()))
    assert made(full_settings(), KEYFILES) == made(full_settings(), turned)


# The name of the machine


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("h1", "h1"),
        ("worker-0.rack.example", "worker-0.rack.example"),
        ("a" * 100, "a" * 63),
        ("a" * 62 + ".b", "a" * 62),
    ],
)
def test_a_machine_is_called_like_its_host(host: str, name: str) -> None:
    ignition = agent_ignition(agent_settings(), hostname=host, keyfiles={})
    script = files_of(ignition)["/etc/NetworkManager/dispatcher.d/01-hostname"].decode()
    assert f"--transient {name} ;;" in script
    assert f"--env=IPA_DEFAULT_HOSTNAME={name}" in unit_of(ignition)


@pytest.mark.parametrize("host", ["", "a b", "$(reboot)", "A", "a;b", "-a", "a\n"])
def test_what_is_no_name_does_not_become_a_word_of_a_script(host: str) -> None:
    with pytest.raises(CannotBuild, match="no name"):
        agent_ignition(agent_settings(), hostname=host, keyfiles={})


@pytest.mark.parametrize(
    ("action", "given", "called", "result"),
    [
        ("up", "localhost", "", "h1"),
        ("up", "localhost.localdomain", "", "h1"),
        ("up", "named-by-dhcp", "", None),
        ("dhcp6-change", "localhost", "six.example", "six.example"),
        ("dhcp6-change", "other", "six.example", "six.example"),
        ("up", "localhost", "bad;name", "h1"),
        ("down", "localhost", "six.example", None),
    ],
)
def test_the_script_names_a_machine_that_the_network_did_not_name(
    tmp_path: Path, action: str, given: str, called: str, result: str | None
) -> None:
    """The script itself, with the programs that it calls replaced by ones that tell what they were called with."""
    script = files_of(made())["/etc/NetworkManager/dispatcher.d/01-hostname"].decode()
    (tmp_path / "hostnamectl").write_text(f'#!/bin/sh\nprintf %s "$3" > {tmp_path}/called\n')
    (tmp_path / "cat").write_text(f"#!/bin/sh\necho {given}\n")
    for program in ("hostnamectl", "cat"):
        (tmp_path / program).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "DHCP6_FQDN_FQDN": called}
    subprocess.run(["sh", "-c", script, "01-hostname", "eth0", action], env=environment, check=True)
    outcome = tmp_path / "called"
    assert (outcome.read_text() if outcome.exists() else None) == result


# The unit


def lines_of(unit: str, key: str) -> list[str]:
    whole = unit.replace("\\\n", " ").splitlines()
    return [line.removeprefix(f"{key}=") for line in whole if line.startswith(f"{key}=")]


def test_no_line_of_the_unit_is_longer_than_ignition_reads() -> None:
    """It refuses the whole config for one, on the machine, where nobody sees it."""
    options = tuple(f"rd.route={number:0>40}" for number in range(36))
    settings = agent_settings(ip_options=options, no_proxy=",".join(["host.example"] * 150))
    unit = unit_of(made(settings))
    assert max(map(len, unit.splitlines())) < 2048
    assert f"--env=IPA_COREOS_IP_OPTIONS={' '.join(options)}" in shlex.split(*lines_of(unit, "ExecStart"))
    with pytest.raises(CannotBuild, match="NO_PROXY"):
        made(agent_settings(no_proxy=",".join(["host.example"] * 160)))


def test_the_container_has_the_machine_and_its_configuration() -> None:
    unit = unit_of(made(full_settings(), KEYFILES))
    (command,) = lines_of(unit, "ExecStart")
    words = shlex.split(command)
    assert words[:2] == ["/bin/podman", "run"]
    assert words[-1] == full_settings().image
    assert {"--privileged", "--network=host", "--ipc=host", "--uts=host", "--rm", "--detach"} <= set(words)
    assert "--authfile=/etc/authfile.json" in words
    mounts = {word.partition("dst=")[2].split(",")[0]: word for word in words if word.startswith("--mount=")}
    assert {"/mnt/coreos", "/dev", "/sys", "/run/udev", "/run/dbus/system_bus_socket", CA} <= set(mounts)
    assert mounts["/etc/ironic-python-agent/ignition.conf"].startswith(f"--mount=type=bind,src={CONF},")
    assert "--env=IPA_COREOS_COPY_NETWORK=true" in words
    assert "--env=IPA_COREOS_IP_OPTIONS=ip=dhcp rd.neednet=1" in words


def test_a_bare_unit_names_no_file_that_is_not_there() -> None:
    unit = unit_of(made())
    assert "authfile" not in unit
    assert "ironic.crt" not in unit
    assert "PROXY" not in unit
    assert "--env=IPA_COREOS_COPY_NETWORK=false" in unit


def test_a_percent_sign_in_a_proxy_is_no_specifier_of_systemd() -> None:
    unit = unit_of(made(full_settings()))
    assert 'Environment="HTTP_PROXY=http://me:p%%40ss@proxy.example:3128"' in unit
    assert "Environment=NO_PROXY=.example,10.0.0.0/8" in unit


@given(st.text(st.characters(blacklist_categories=["Cc", "Cs"]), min_size=1))
def test_a_quoted_word_is_one_word(text: str) -> None:
    word = quoted(text)
    if word == text:
        assert not set(text) & set(" %\"'\\$;")
        return
    inner = word[1:-1]
    assert (word[0], word[-1]) == ('"', '"')
    assert inner.replace("%%", "%").replace('\\"', '"').replace("\\\\", "\\") == text or "\\" in text


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "ironic-agent.service"
    # podman need not be here; everything else stays as it is.
    unit.write_text(unit_of(made(full_settings(), KEYFILES)).replace("/bin/podman", "/bin/true"))
    ended = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ironic-agent" not in ended.stderr
    assert ended.returncode == 0, ended.stderr
