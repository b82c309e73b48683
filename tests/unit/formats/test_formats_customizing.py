"""Customizing live systems: from what is asked for to one Ignition config, with nothing in it that nobody asked for."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest
import yaml

from ingot.formats import FormatError, UnsupportedFormat
from ingot.formats.coreos.console import consoles_in, normal_console
from ingot.formats.coreos.customizing import Customization, Input, customized
from ingot.formats.coreos.features import Features, parse_features
from ingot.formats.coreos.installer_config import check_installer_config

ALL = parse_features(
    b'{"installer-config": true, "live-initrd-network": true, "installer-config-directives": {"console": true}}'
)
CONFIG = Input("some/a.ign", b'{"ignition": {"version": "3.1.0"}}')
OTHER = Input("some/b.ign", b'{"ignition": {"version": "3.2.0"}}')


def decoded(resource: dict[str, str]) -> bytes:
    assert resource["compression"] == "gzip"
    return gzip.decompress(base64.b64decode(resource["source"].removeprefix("data:;base64,")))


def live_config(wanted: Customization, features: Features = ALL) -> dict[str, Any]:
    members, _ = customized(wanted, features)
    config: dict[str, Any] = json.loads(members["config.ign"])
    assert config["ignition"]["version"] == "3.3.0"
    return config


def files(config: dict[str, Any]) -> dict[str, bytes]:
    return {file["path"]: decoded(file["contents"]) for file in config["storage"]["files"]}


def test_nothing_asked_for_is_nothing_embedded() -> None:
    # An empty config would take away the login on the live system's console.
    assert customized(Customization(), ALL) == ({}, [])


def test_configs_of_the_live_system_are_merged() -> None:
    config = live_config(Customization(live_ignition=[CONFIG, OTHER]))
    assert [json.loads(decoded(each)) for each in config["ignition"]["config"]["merge"]] == [
        {"ignition": {"version": "3.1.0"}},
        {"ignition": {"version": "3.2.0"}},
    ]
    assert "storage" not in config


def test_the_installed_system_gets_the_one_config_as_it_is() -> None:
    there = files(live_config(Customization(dest_ignition=[CONFIG])))
    assert json.loads(there["/etc/coreos/dest.ign"]) == {"ignition": {"version": "3.1.0"}}
    assert yaml.safe_load(there["/etc/coreos/installer.d/0000-customize.yaml"]) == {
        "ignition-file": "/etc/coreos/dest.ign"
    }


def test_several_configs_or_certificates_are_put_around_the_installed_systems_config() -> None:
    wanted = Customization(dest_ignition=[CONFIG, OTHER], ignition_ca=[Input("ca.pem", b"PEM")])
    config = live_config(wanted)
    whole = json.loads(files(config)["/etc/coreos/dest.ign"])
    assert len(whole["ignition"]["config"]["merge"]) == 2
    for each in (whole, config):
        (authority,) = each["ignition"]["security"]["tls"]["certificateAuthorities"]
        assert decoded(authority) == b"PEM"


def test_a_certificate_alone_is_for_the_live_system_and_installs_nothing() -> None:
    members, notes = customized(Customization(ignition_ca=[Input("ca.pem", b"PEM")]), ALL)
    assert list(members) == ["config.ign"]
    assert "storage" not in json.loads(members["config.ign"])
    assert notes == []


def test_settings_of_the_installer_become_its_last_configuration_file() -> None:
    wanted = Customization(
        dest_device="/dev/vda",
        dest_console=["ttyS0,115200", "tty0"],
        dest_karg_append=["a", "b=c"],
        dest_karg_delete=["quiet"],
        network_keyfile=[Input("x/eth0.nmconnection", b"[connection]\n")],
        installer_config=[Input("x/mine.yaml", b"offline: true\n")],
    )
    members, notes = customized(wanted, ALL)
    there = files(json.loads(members["config.ign"]))
    assert there["/etc/coreos/installer.d/0000-mine.yaml"] == b"offline: true\n"
    assert yaml.safe_load(there["/etc/coreos/installer.d/0001-customize.yaml"]) == {
        "append-karg": ["a", "b=c"],
        "console": ["ttyS0,115200n8", "tty0"],
        "copy-network": True,
        "delete-karg": ["quiet"],
        "dest-device": "/dev/vda",
    }
    assert members["etc/coreos-firstboot-network/eth0.nmconnection"] == b"[connection]\n"
    assert notes == ["The live system will install to /dev/vda by itself, without asking."]


def test_keyfiles_alone_install_nothing() -> None:
    members, _ = customized(Customization(network_keyfile=[Input("a", b"x")]), ALL)
    assert members == {"etc/coreos-firstboot-network/a": b"x"}


def test_scripts_become_units_around_the_installers() -> None:
    wanted = Customization(
        pre_install=[Input("x/check.sh", b"#!/bin/sh\n")],
        post_install=[Input("report", b"#!/bin/sh\nexit 1\n")],
    )
    config = live_config(wanted)
    assert files(config) == {
        "/usr/local/bin/pre-install-check.sh": b"#!/bin/sh\n",
        "/usr/local/bin/post-install-report": b"#!/bin/sh\nexit 1\n",
    }
    assert {file["mode"] for file in config["storage"]["files"]} == {0o700}
    before, after = config["systemd"]["units"]
    assert before["name"] == "pre-install-check.sh.service"
    for line in (
        "After=coreos-installer-pre.target",
        "Before=coreos-installer.service",
        "RequiredBy=coreos-installer.service",
        "ExecStart=/usr/local/bin/pre-install-check.sh",
    ):
        assert line in before["contents"].splitlines()
    for line in ("After=coreos-installer.service", "RequiredBy=coreos-installer.target", "Type=oneshot"):
        assert line in after["contents"].splitlines()


@pytest.mark.parametrize(
    ("wanted", "features", "sentence"),
    [
        (
            Customization(network_keyfile=[Input("a", b"")]),
            Features(),
            "does not support customizing network settings",
        ),
        (
            Customization(dest_ignition=[CONFIG]),
            Features(),
            "does not support customizing installer configuration",
        ),
        (
            Customization(dest_device="/dev/vda"),
            Features(),
            "does not support customizing installer configuration",
        ),
        (
            Customization(dest_console=["tty0"]),
            Features(installer_config=True),
            "does not support customizing the destination console",
        ),
    ],
)
def test_what_an_old_image_cannot_do_is_refused(
    wanted: Customization, features: Features, sentence: str
) -> None:
    with pytest.raises(UnsupportedFormat, match=sentence):
        customized(wanted, features)


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        (Customization(live_ignition=[Input("a.ign", b"z")]), r"parsing Ignition config a\.ign: .*not JSON"),
        (Customization(dest_ignition=[Input("a.ign", b"{}")]), r"parsing Ignition config a\.ign"),
        (
            Customization(installer_config=[Input("a", b"image-urll: x")]),
            "parsing installer config a: unknown key",
        ),
        (Customization(pre_install=[Input("a", b""), Input("b/a", b"")]), "already specifies path"),
        (Customization(network_keyfile=[Input("a", b""), Input("b/a", b"")]), "already specifies keyfile a"),
        (Customization(post_install=[Input("a b", b"")]), "becomes a unit of systemd"),
        (Customization(pre_install=[Input("a\nExecStart=x", b"")]), "becomes a unit of systemd"),
        (Customization(dest_console=["/dev/ttyS0"]), "should not start with"),
    ],
)
def test_what_is_wrong_with_an_input_is_said_with_its_name(wanted: Customization, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        customized(wanted, ALL)


def test_a_key_that_nobody_reads_is_said() -> None:
    strange = Input("a.ign", b'{"ignition": {"version": "3.1.0"}, "x": 1}')
    _, notes = customized(Customization(live_ignition=[strange]), ALL)
    assert notes == ["Warning parsing a.ign: unused key: $.x"]


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("tty0", "tty0"),
        ("hvc0", "hvc0"),
        ("ttysclp0", "ttysclp0"),
        ("ttyS1", "ttyS1,9600n8"),
        ("ttyAMA1", "ttyAMA1,9600n8"),
        ("ttyS1,1234567e5", "ttyS1,1234567e5"),
        ("ttyS2,5o", "ttyS2,5o8"),
    ],
)
def test_consoles_are_written_out(given: str, normal: str) -> None:
    assert normal_console(given) == normal


@pytest.mark.parametrize(
    "wrong", ["", "tty1", "ttyS", "ttyS0,", "ttyS0,n8", "ttyS0,115200n9", "ttyS256", "ttyS0\n"]
)
def test_other_consoles_are_refused(wrong: str) -> None:
    with pytest.raises(FormatError, match="invalid or unsupported console"):
        normal_console(wrong)


def test_a_console_among_the_arguments_is_pointed_out() -> None:
    assert consoles_in(["a", "console=ttyS0", "console=tty0"]) == ["ttyS0", "tty0"]
    assert consoles_in(["console=ttyS0", "console=other"]) == []
    _, notes = customized(Customization(dest_karg_append=["console=ttyS0"]), ALL)
    assert any("--dest-console ttyS0" in note for note in notes)


@pytest.mark.parametrize(
    "content",
    [b"stream: stable\nappend-karg: [a, b]\noffline: true\n", b"{}", b"stream: yes\n", b"console: [ttyS0]\n"],
)
def test_configurations_that_the_installer_reads_are_accepted(content: bytes) -> None:
    check_installer_config(content)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "keys and values"),
        (b"- a", "keys and values"),
        (b"{", "not YAML"),
        (b"\xff", "not YAML"),
        (b"append-karg: a", "wrong type"),
        (b"append-karg: [1]", "wrong type"),
        (b"offline: yes", "wrong type"),
        (b"stream: 5", "wrong type"),
        (b"console: [tty9]", "unsupported console"),
        (b"config-file: [a]", "unknown key 'config-file'"),
        (b"!!python/object/apply:os.system [id]: 1", "not YAML"),
    ],
)
def test_configurations_that_it_would_refuse_are_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        check_installer_config(content)
