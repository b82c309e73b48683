"""What is put in place before Ironic starts, and what a person reads when it cannot."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import bcrypt
import pytest
from click.testing import CliRunner

from ingot.cli.service import service
from ingot.services import ironic
from ingot.services.environment import IronicEnvironment
from ingot.services.errors import ProgramMissing, SettingsError
from ingot.services.settings import IronicPaths, IronicSettings
from ingot.trust import Secret


@pytest.fixture
def settings(tmp_path: Path) -> IronicSettings:
    for name in ("crt", "key", "ca"):
        (tmp_path / name).write_text("pem")
    (tmp_path / "password").write_text("pass:word/@\n")
    (tmp_path / "ironic").mkdir()
    return IronicSettings(
        paths=IronicPaths.below(tmp_path / "ironic"),
        cert_file=tmp_path / "crt",
        key_file=tmp_path / "key",
        ca_file=tmp_path / "ca",
        username="ingot",
        password_file=tmp_path / "password",
        database_url=Secret("mysql+pymysql://ironic:hunter2@db/ironic"),
    )


def test_configuration_and_password_are_for_their_owner_only(settings: IronicSettings) -> None:
    ironic.prepare(settings)
    for file in (settings.paths.config_file, settings.paths.htpasswd_file):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    user, _, hashed = settings.paths.htpasswd_file.read_text().strip().partition(":")
    assert user == "ingot"
    assert bcrypt.checkpw(b"pass:word/@", hashed.encode())


def test_a_file_that_is_named_but_not_there_is_said_before_ironic_starts(settings: IronicSettings) -> None:
    settings.key_file.unlink()
    with pytest.raises(SettingsError, match=f"IRONIC_KEY_FILE names {settings.key_file}"):
        ironic.prepare(settings)


def test_what_hosts_boot_has_to_be_a_file_because_of_a_folder_all_would_be_handed_out(
    settings: IronicSettings, tmp_path: Path
) -> None:
    booting = replace(settings, bootloader=f"file://{tmp_path}/esp")
    with pytest.raises(SettingsError, match=f"BOOTLOADER names {tmp_path}/esp, which is not a file"):
        ironic.prepare(booting)
    (tmp_path / "esp").mkdir()
    with pytest.raises(SettingsError, match=f"BOOTLOADER names {tmp_path}/esp, which is not a file"):
        ironic.prepare(booting)
    (tmp_path / "esp").rmdir()
    (tmp_path / "esp").write_bytes(b"esp")
    ironic.prepare(booting)


def test_an_empty_password_is_refused(settings: IronicSettings) -> None:
    settings.password_file.write_text("\n")
    with pytest.raises(SettingsError, match="and not empty"):
        ironic.prepare(settings)


@pytest.mark.parametrize("password", [b"x" * 73, b"\xff\xfe"], ids=["too-long", "not-text"])
def test_a_password_that_ironic_could_not_check_is_refused_and_not_shown(
    settings: IronicSettings, password: bytes
) -> None:
    settings.password_file.write_bytes(password)
    with pytest.raises(SettingsError, match="at most 72 bytes") as refused:
        ironic.prepare(settings)
    assert "xxx" not in str(refused.value)


def program(folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def test_xorrisofs_takes_the_place_of_mkisofs(settings: IronicSettings, tmp_path: Path) -> None:
    xorrisofs = program(tmp_path / "bin", "xorrisofs")
    path = ironic.program_path(settings, str(tmp_path / "bin"))
    path = ironic.program_path(settings, str(tmp_path / "bin"))  # and at the next start
    assert path.split(os.pathsep) == [str(settings.paths.programs), str(tmp_path / "bin")]
    assert (settings.paths.programs / "mkisofs").resolve() == xorrisofs


def test_mkisofs_is_used_when_it_is_there(settings: IronicSettings, tmp_path: Path) -> None:
    program(tmp_path / "bin", "mkisofs")
    assert ironic.program_path(settings, str(tmp_path / "bin")) == str(tmp_path / "bin")


def test_without_any_of_them_the_package_to_install_is_named(
    settings: IronicSettings, tmp_path: Path
) -> None:
    with pytest.raises(ProgramMissing, match="the package is xorriso"):
        ironic.program_path(settings, str(tmp_path / "bin"))


def test_without_ipmitool_only_ipmi_is_missing_and_it_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    assert ironic.driven(str(tmp_path / "bin"), said.append) == ("redfish", "idrac")
    assert said == [
        "Warning: ipmitool is not on PATH, so hosts of the type ipmi cannot be managed. "
        "Install the package ipmitool and start again; everything else works without."
    ]
    program(tmp_path / "bin", "ipmitool")
    assert ironic.driven(str(tmp_path / "bin"), said.append) == ("redfish", "idrac", "ipmi")
    assert len(said) == 1


def test_lines_of_an_htpasswd_file_may_be_given_instead_of_a_password(settings: IronicSettings) -> None:
    line = "ingot:$2y$05$" + "a" * 53
    ironic.prepare(replace(settings, username=None, password_file=None, htpasswd=Secret(f"{line}\n")))
    assert settings.paths.htpasswd_file.read_text() == f"{line}\n"


def test_ironic_sees_its_own_options_but_not_our_settings(settings: IronicSettings) -> None:
    inherited = {
        **settings.to_environment(),
        "OS_API__PORT": "1",
        "LANG": "C",
        "PYTHONPATH": "/ours",
        "PATH": "/usr/bin",
    }
    made = IronicEnvironment("39", Path("/cache/39"))
    seen = ironic.child_environment(settings, made, inherited, "/usr/bin")
    assert seen == {"OS_API__PORT": "1", "LANG": "C", "PATH": "/cache/39/bin:/usr/bin"}
    assert "hunter2" not in str(seen)


def test_who_vouches_for_image_servers_is_not_overruled_by_a_bundle_of_the_shell(
    settings: IronicSettings, tmp_path: Path
) -> None:
    inherited = {"REQUESTS_CA_BUNDLE": "/etc/ssl/all.crt", "CURL_CA_BUNDLE": "/etc/ssl/all.crt"}
    made = IronicEnvironment("39", Path("/cache/39"))
    unset, given = replace(settings, webserver_ca_file=None), replace(settings, webserver_ca_file=tmp_path)
    assert inherited.items() <= ironic.child_environment(unset, made, inherited, "/usr/bin").items()
    assert not inherited.keys() & ironic.child_environment(given, made, inherited, "/usr/bin").keys()


def test_the_command_says_what_is_missing_and_ends_with_1() -> None:
    result = CliRunner(env={"INGOT_IRONIC_STATE": "", "IRONIC_CERT_FILE": ""}).invoke(service, ["ironic"])
    assert result.exit_code == 1
    assert result.output.startswith("Error: Not set: INGOT_IRONIC_STATE, IRONIC_CERT_FILE")


def test_a_folder_that_cannot_be_made_is_named(settings: IronicSettings, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    moved = replace(settings, paths=IronicPaths.below(tmp_path / "file" / "ironic"))
    done = subprocess.run(
        [sys.executable, "-c", "from ingot.cli.main import main; main()", "service", "ironic"],
        env={**os.environ, **moved.to_environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: Ironic cannot be made ready: ")
    assert str(tmp_path / "file") in done.stderr
