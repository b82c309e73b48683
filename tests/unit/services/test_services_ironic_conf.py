"""ironic.conf: the text as it is, for a reader; and what must hold for any settings."""

from __future__ import annotations

import configparser
from dataclasses import replace
from pathlib import Path

from ingot.services.ironic_conf import render
from ingot.services.ironic_options import options
from ingot.services.settings import IronicPaths, IronicSettings
from ingot.trust import Secret

GOLDEN = Path(__file__).parent / "ironic.conf"

SETTINGS = IronicSettings(
    paths=IronicPaths.below(Path("/state/ironic")),
    cert_file=Path("/state/ironic/tls/ironic.crt"),
    key_file=Path("/state/ironic/tls/ironic.key"),
    ca_file=Path("/state/ca/ca.crt"),
    username="ingot",
    password_file=Path("/state/ironic/auth/password"),
    push_url="https://127.0.0.1:7443/v1/push",
    push_ca_file=Path("/state/ca/ca.crt"),
    push_token_file=Path("/state/operator/push-token"),
    bmc_ca_file=Path("/state/ca/ca.crt"),
    webserver_ca_file=Path("/state/ca/ca.crt"),
    agent_heartbeat_timeout=30,
)


def parsed(settings: IronicSettings) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, default_section="none")
    parser.read_string(render(settings))
    return parser


def test_the_file_is_what_it_was() -> None:
    """After a wanted change: write `render(SETTINGS)` to tests/unit/services/ironic.conf and read the difference."""
    assert render(SETTINGS) == GOLDEN.read_text()


def test_each_group_stands_once_and_each_option_once() -> None:
    parsed(SETTINGS)  # configparser refuses both kinds of repetition


def test_each_option_has_a_reason_written_as_a_sentence() -> None:
    for option in options(SETTINGS):
        assert option.reason.endswith("."), option.name


def test_a_dollar_is_not_a_reference() -> None:
    settings = replace(SETTINGS, database_url=Secret("mysql+pymysql://ironic:p$ss@db/ironic"))
    assert parsed(settings)["database"]["connection"] == "mysql+pymysql://ironic:p$$ss@db/ironic"


def test_without_push_the_plugin_is_still_loaded_for_its_patches() -> None:
    settings = replace(SETTINGS, push_url=None, push_ca_file=None, push_token_file=None)
    conf = parsed(settings)
    assert conf["oslo_messaging_notifications"]["driver"] == "ingot"
    assert "ingot" not in conf


def test_power_is_never_forced_back_and_history_is_kept() -> None:
    conductor = parsed(SETTINGS)["conductor"]
    assert conductor["force_power_state_during_sync"] == "false"
    assert conductor["node_history"] == "true"


def test_a_clean_wipes_metadata_and_no_whole_disk_unasked() -> None:
    deploy = parsed(SETTINGS)["deploy"]
    assert (deploy["erase_devices_priority"], deploy["erase_devices_metadata_priority"]) == ("0", "10")


def test_every_path_that_ironic_writes_is_below_the_state_folder() -> None:
    for option in options(SETTINGS):
        if option.value.startswith("/"):
            assert option.value.startswith("/state/"), option.name


def test_a_host_that_waits_for_its_next_use_stays_on_with_fast_track_only() -> None:
    assert parsed(SETTINGS)["inspector"]["power_off"] == "true"
    assert parsed(replace(SETTINGS, fast_track=True))["inspector"]["power_off"] == "false"


def test_looking_for_power_off_lasts_half_a_minute_at_any_pace() -> None:
    for pace in (1, 2, 5):
        agent = parsed(replace(SETTINGS, power_off_poll_interval=pace))["agent"]
        retries = int(agent["post_deploy_get_power_state_retries"])
        assert retries * pace == 30
