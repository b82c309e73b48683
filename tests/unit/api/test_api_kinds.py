"""Hosts and Secrets as they are read: tolerant of what is absent, silent about what is secret."""

from __future__ import annotations

import base64
import gc

import msgspec
import pytest
from rich.pretty import pretty_repr

from ingot.api.baremetalhost import (
    BareMetalHost,
    BareMetalHostStatus,
    ErrorType,
    OperationalStatus,
    ProvisionStatus,
    State,
    UnknownState,
)
from ingot.api.core import SecretObject, UnreadableSecret
from ingot.api.meta import ObjectMeta

META = {"name": "h1", "namespace": "lab"}


def read(document: object) -> BareMetalHost:
    return msgspec.json.decode(msgspec.json.encode(document), type=BareMetalHost)


def test_a_host_with_neither_spec_nor_status_can_be_read() -> None:
    host = read({"metadata": META})
    assert host.spec.online is False
    assert host.spec.bmc.address == ""
    assert host.spec.automated_cleaning_mode == "metadata"
    assert host.status.operational_status is OperationalStatus.NONE
    assert not host.status.error_type
    assert host.state is State.NONE
    assert host.hardware() is None


def test_fields_with_unusual_capitals_are_found() -> None:
    host = read(
        {
            "metadata": META,
            "spec": {
                "online": True,
                "bootMACAddress": "52:54:00:00:00:01",
                "raid": {"hardwareRAIDVolumes": [], "softwareRAIDVolumes": None},
                "networkInterfaces": [{"switchPort": {"switchID": "aa", "portID": "1"}}],
            },
            "status": {
                "provisioning": {"ID": "node-1", "state": "available"},
                "errorType": "inspection error",
            },
        }
    )
    assert host.spec.boot_mac_address == "52:54:00:00:00:01"
    assert host.spec.raid is not None
    assert host.spec.raid.hardware_raid_volumes == []
    assert host.spec.raid.software_raid_volumes is None
    port = host.spec.network_interfaces[0].switch_port
    assert port is not None
    assert (port.switch_id, port.port_id) == ("aa", "1")
    assert host.status.provisioning.id == "node-1"
    assert host.status.error_type is ErrorType.INSPECTION


def test_a_field_of_a_newer_release_does_not_make_a_host_unreadable() -> None:
    assert read({"metadata": META, "spec": {"online": True, "notYetInvented": {"a": 1}}}).spec.online


@pytest.mark.parametrize(
    ("written", "state"),
    [
        ("ready", State.AVAILABLE),
        ("match profile", State.PREPARING),
        ("provisioned", State.PROVISIONED),
        ("", State.NONE),
    ],
)
def test_states_of_older_releases_are_read_under_their_present_names(written: str, state: State) -> None:
    assert read({"metadata": META, "status": {"provisioning": {"ID": "", "state": written}}}).state is state


def test_a_state_that_does_not_exist_is_named_together_with_those_that_do() -> None:
    host = BareMetalHost(
        metadata=ObjectMeta(name="h1", namespace="lab"),
        status=BareMetalHostStatus(provisioning=ProvisionStatus(state="flying")),
    )
    with pytest.raises(UnknownState, match=r"lab/h1.*'flying'.*'available'"):
        _ = host.state


def test_the_inventory_is_decoded_when_asked_for() -> None:
    host = read(
        {"metadata": META, "status": {"hardware": {"hostname": "h1", "cpu": {"arch": "x86_64", "count": 8}}}}
    )
    hardware = host.hardware()
    assert hardware is not None
    assert (hardware.hostname, hardware.cpu.arch, hardware.cpu.count) == ("h1", "x86_64", 8)


def test_an_inventory_of_null_is_no_inventory() -> None:
    assert read({"metadata": META, "status": {"hardware": None}}).hardware() is None


class Bytes(bytes):
    """Bytes that say when they are gone."""

    alive = 0

    def __del__(self) -> None:
        type(self).alive -= 1


def test_a_compact_host_lets_go_of_the_bytes_it_was_read_from() -> None:
    Bytes.alive = 1
    buffer = Bytes(msgspec.json.encode({"metadata": META, "status": {"hardware": {"hostname": "h1"}}}))
    host = msgspec.json.decode(buffer, type=BareMetalHost)
    del buffer
    gc.collect()
    assert Bytes.alive == 1, "an undecoded part is a view of the bytes it was read from"
    host = host.compact()
    gc.collect()
    assert Bytes.alive == 0
    hardware = host.hardware()
    assert hardware is not None
    assert hardware.hostname == "h1"


def test_a_host_without_an_inventory_is_compact_already() -> None:
    host = read({"metadata": META})
    assert host.compact() is host


def secret(**values: bytes) -> SecretObject:
    return SecretObject(
        metadata=ObjectMeta(name="h1-bmc", namespace="lab"),
        data={key: base64.b64encode(value).decode() for key, value in values.items()},
    )


def test_the_value_of_a_secret_is_read_as_text() -> None:
    assert secret(username=b"admin", password="pässword".encode()).text("password") == "pässword"
    assert secret(username=b"admin").text("password") is None


@pytest.mark.parametrize("value", ["not base64!", base64.b64encode(b"\xff\xfe").decode(), "YWJj\n"])
def test_a_value_that_is_not_text_in_base64_is_named_and_not_shown(value: str) -> None:
    found = SecretObject(metadata=ObjectMeta(name="h1-bmc", namespace="lab"), data={"password": value})
    with pytest.raises(
        UnreadableSecret, match="Secret lab/h1-bmc: the value of 'password' is not text"
    ) as caught:
        found.text("password")
    assert value not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_no_way_of_printing_a_secret_shows_what_is_in_it() -> None:
    found = SecretObject(
        metadata=ObjectMeta(name="h1-bmc", namespace="lab"),
        data={"password": "aHVudGVyMg=="},
        string_data={"token": "hunter3"},
    )
    for shown in (repr(found), str(found), f"{found}", f"{[found]}", pretty_repr(found)):
        assert "aHVudGVyMg" not in shown
        assert "hunter" not in shown
        assert "password" in shown
        assert "token" in shown
