"""Rules that are about more than the object that is written: who uses it, and what it refers to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ingot.api.admission import FieldError, Kind, Others, check, check_deletion
from ingot.api.meta import Key, Resource

Json = dict[str, Any]

R, I, F = Kind.REQUIRED, Kind.INVALID, Kind.FORBIDDEN  # noqa: E741 - a table reads better


class Objects:
    """All objects there are."""

    def __init__(self, *documents: Json) -> None:
        self._documents = documents

    def get(self, resource: Resource[Any], key: Key) -> Json | None:
        return next((found for found in self._of(resource) if _key(found) == key), None)

    def mentioning(self, resource: Resource[Any], text: str) -> Iterable[Json]:
        # More than was asked for, which is allowed: a rule looks for itself.
        return self._of(resource)

    def _of(self, resource: Resource[Any]) -> list[Json]:
        return [found for found in self._documents if found["kind"] == resource.kind]


def _key(document: Json) -> Key:
    return Key(document["metadata"]["namespace"], document["metadata"]["name"])


def an_object(kind: str, name: str, spec: Json, *, namespace: str = "lab", **parts: Any) -> Json:
    return {"kind": kind, "metadata": {"namespace": namespace, "name": name}, "spec": spec, **parts}


def host(name: str, *interfaces: Json, namespace: str = "lab") -> Json:
    spec = {"online": True, "networkInterfaces": list(interfaces)}
    return an_object("BareMetalHost", name, spec, namespace=namespace)


def attachment(**spec: Any) -> Json:
    return an_object("HostNetworkAttachment", "x1", {"mode": "access", "nativeVLAN": 7, **spec})


def attached(name: str = "x1", **reference: str) -> Json:
    return {"name": "eth0", "hostNetworkAttachment": {"name": name, **reference}}


def changed(others: Others, **spec: Any) -> list[FieldError]:
    return check("metal3.io", "HostNetworkAttachment", attachment(**spec), attachment(), others)


def deleted(others: Others) -> list[FieldError]:
    return check_deletion("metal3.io", "HostNetworkAttachment", attachment(), others)


BY_MAC = {"macAddress": "52:54:00:00:00:02", "hostNetworkAttachment": {"name": "x1"}}


@pytest.mark.parametrize(
    ("user", "shown"),
    [
        (host("h1", {"name": "eth1"}, attached()), "lab/h1[eth0]"),
        (host("h1", BY_MAC), "lab/h1[52:54:00:00:00:02]"),
        (host("h1", attached(namespace="lab")), "lab/h1[eth0]"),
        (host("h1", attached(namespace="lab"), namespace="other"), "other/h1[eth0]"),
    ],
    ids=["by name", "by MAC", "with its namespace", "from another namespace"],
)
def test_an_attachment_in_use_is_neither_changed_nor_deleted(user: Json, shown: str) -> None:
    (change,) = changed(Objects(user), mtu=9000)
    (deletion,) = deleted(Objects(user))
    assert (change.path, change.kind) == ("spec", F)
    assert (deletion.path, deletion.kind) == ("metadata.name", F)
    assert f"used by {shown}," in change.message
    assert f"used by {shown}," in deletion.message


@pytest.mark.parametrize(
    "bystander",
    [
        host("h1"),
        host("h1", {"name": "eth0"}),
        host("h1", attached("x2")),
        host("h1", attached(), namespace="other"),
        host("h1", attached(namespace="other")),
        {"kind": "BareMetalHost", "metadata": {"namespace": "lab", "name": "h1"}},
        host("h1", {"name": 7, "hostNetworkAttachment": "x1"}),
    ],
    ids=["nothing", "bare", "another", "same name elsewhere", "elsewhere", "no spec", "unreadable"],
)
def test_an_attachment_that_nobody_uses_is_changed_and_deleted(bystander: Json) -> None:
    assert changed(Objects(bystander), mtu=9000) == []
    assert deleted(Objects(bystander)) == []


def test_an_attachment_in_use_can_be_written_again_as_it_is_and_lose_its_finalizer() -> None:
    others = Objects(host("h1", attached()))
    assert changed(others) == []
    new, old = attachment(), attachment()
    old["metadata"]["finalizers"] = ["example.com/x"]
    assert check("metal3.io", "HostNetworkAttachment", new, old, others) == []


def test_of_many_users_the_first_few_are_named() -> None:
    others = Objects(*(host(f"h{number}", attached()) for number in range(9)))
    (deletion,) = deleted(others)
    assert "lab/h4[eth0] and others, and cannot be deleted" in deletion.message
    assert "h5" not in deletion.message


def test_a_new_attachment_that_breaks_no_rule_is_accepted_although_hosts_wait_for_it() -> None:
    others = Objects(host("h1", attached()))
    assert check("metal3.io", "HostNetworkAttachment", attachment(), None, others) == []


PRESENT = {"Cores": "4", "Sriov": "false", "Serial": "X", "Mode": "a", "Greeting": "hi", "AdminPin": "1"}
SCHEMA = {
    "Cores": {"attribute_type": "Integer", "lower_bound": 1, "upper_bound": 8},
    "Sriov": {"attribute_type": "Boolean"},
    "Serial": {"attribute_type": "String", "read_only": True},
    "Mode": {"attribute_type": "Enumeration", "allowable_values": ["a", "b"]},
    "Greeting": {"attribute_type": "String", "max_length": 3},
    "AdminPin": {"attribute_type": "Password"},
}
FIRMWARE = an_object("FirmwareSchema", "schema-1", {"schema": SCHEMA})


def settings(wanted: Json, **status: Any) -> Json:
    found = {"schema": {"namespace": "lab", "name": "schema-1"}, "settings": PRESENT, **status}
    return an_object("HostFirmwareSettings", "h1", {"settings": wanted}, status=found)


def wanted(document: Json, old: Json | None = None, *, others: Others | None = None) -> list[FieldError]:
    return check("metal3.io", "HostFirmwareSettings", document, old, others or Objects(FIRMWARE))


@pytest.mark.parametrize(
    ("name", "value", "kind", "words"),
    [
        ("Cores", 9, I, "more than 8"),
        ("Cores", "0", I, "less than 1"),
        ("Cores", "many", I, "whole number"),
        ("Sriov", "yes", I, "neither 'true' nor 'false'"),
        ("Serial", "Y", I, "does not allow"),
        ("Mode", "c", I, "'a', 'b'"),
        ("Greeting", "hello", I, "longer than 3"),
        ("Unheard", "1", I, "no such setting"),
        ("AdminPassword", "hunter2", F, "passwords"),
        ("AdminPin", "hunter2", F, "passwords"),
    ],
)
def test_a_setting_that_the_firmware_would_refuse_is_refused(
    name: str, value: str | int, kind: Kind, words: str
) -> None:
    (error,) = wanted(settings({"Cores": 2} | {name: value}))
    assert (error.path, error.kind) == (f"spec.settings[{name}]", kind)
    assert words in error.message
    assert "hunter2" not in f"{error} {error!r}"


@pytest.mark.parametrize(
    ("document", "others"),
    [
        (settings({"Cores": 8, "Sriov": "true", "Mode": "b", "Greeting": "yo"}), Objects(FIRMWARE)),
        (settings({}), Objects(FIRMWARE)),
        (settings({"Cores": 99}), Objects()),
        (settings({"Cores": 99}), Objects(an_object("FirmwareSchema", "schema-1", {"schema": {"Cores": 1}}))),
        (settings({"Cores": 99}, settings={}), Objects(FIRMWARE)),
        (settings({"Cores": 99}, schema=None), Objects(FIRMWARE)),
        (an_object("HostFirmwareSettings", "h1", {"settings": {"Cores": 99}}), Objects(FIRMWARE)),
    ],
    ids=[
        "right",
        "nothing",
        "no such schema",
        "no schema at all",
        "nothing read yet",
        "no schema yet",
        "no status yet",
    ],
)
def test_what_is_right_or_cannot_be_judged_yet_is_accepted(document: Json, others: Others) -> None:
    assert wanted(document, others=others) == []


def test_settings_that_became_wrong_do_not_hold_a_status_or_a_finalizer() -> None:
    old = settings({"Cores": 99})
    assert wanted(old | {"metadata": {**old["metadata"], "finalizers": []}}, old) == []
    assert wanted(settings({"Cores": 99}, settings=PRESENT | {"Cores": "8"}), old) == []


def test_those_who_cannot_look_at_others_refuse_nothing_for_them() -> None:
    assert check("metal3.io", "HostFirmwareSettings", settings({"Cores": 99}), None) == []
    assert check("metal3.io", "HostNetworkAttachment", attachment(mtu=9000), attachment()) == []
    assert check_deletion("metal3.io", "HostNetworkAttachment", attachment()) == []


def test_kinds_without_rules_and_objects_that_cannot_be_read_can_always_be_deleted() -> None:
    others = Objects(host("h1", attached()))
    assert check_deletion("metal3.io", "BareMetalHost", host("h1"), others) == []
    assert check_deletion("", "Secret", {}, others) == []
    unreadable = attachment(nativeVLAN="seven")
    assert check_deletion("metal3.io", "HostNetworkAttachment", unreadable, others) == []
