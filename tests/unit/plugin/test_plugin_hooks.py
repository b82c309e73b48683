"""What is noted of a node, what is read from a notification, and the patches: each on objects shaped like Ironic's."""

from __future__ import annotations

import json
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from ingot_ironic import bmc_retries, roomy_api, save_hook
from ingot_ironic.fast_key import FastHashlib
from ingot_ironic.message import WATCHED, Event, encode, event_of
from ingot_ironic.notification import event_from
from ingot_ironic.selfcheck import Patches

SECRET = "hunter2"


class Node:
    """Shaped like Ironic's node: versioned fields, a set of changes, and a save that clears it."""

    fields = frozenset(
        {
            *WATCHED,
            "uuid",
            "name",
            "updated_at",
            "driver_info",
            "instance_info",
            "driver_internal_info",
            "extra",
        }
    )

    def __init__(self, **values: Any) -> None:
        self.__dict__.update({"uuid": "u", "name": "ns~n", **values})
        self.changes: set[str] = set()
        self.saved = 0

    def set(self, **values: Any) -> None:
        self.__dict__.update(values)
        self.changes |= set(values)

    def obj_what_changed(self) -> set[str]:
        return self.changes

    def obj_attr_is_set(self, field: str) -> bool:
        return field in self.__dict__

    def save(self, context: Any = None) -> str:
        if self.__dict__.get("driver_info") == "refused":
            raise RuntimeError("the database said no")
        self.saved += 1
        self.changes = set()
        return "saved"


@pytest.fixture
def hooked() -> tuple[type[Node], list[Event]]:
    class Hooked(Node):
        pass

    told: list[Event] = []
    save_hook.hook(Hooked, told.append)
    return Hooked, told


def test_a_saved_change_is_told_with_its_fields(hooked: tuple[type[Node], list[Event]]) -> None:
    node_class, told = hooked
    node = node_class(power_state=None)
    node.set(provision_state="verifying", updated_at=datetime(2026, 1, 2, tzinfo=UTC))
    assert node.save() == "saved"
    assert told == [
        Event(
            "u",
            "ns~n",
            {"provision_state": "verifying", "power_state": None, "updated_at": "2026-01-02T00:00:00+00:00"},
        )
    ]


def test_two_threads_that_save_one_node_are_told_of_in_the_order_of_the_database() -> None:
    written: list[str] = []
    told: list[str] = []

    class Stored(Node):
        def save(self, context: Any = None) -> str:
            written.append(self.provision_state)
            time.sleep(0.001)  # time for another thread to get between the database and the telling
            return "saved"

    save_hook.hook(Stored, lambda event: told.append(str((event.fields or {})["provision_state"])))

    def save(number: int) -> None:
        node = Stored()
        node.set(provision_state=f"state-{number}")
        node.save()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(save, range(80)))
    assert len(told) == 80
    assert told == written


def test_a_heartbeat_of_the_agent_is_not_worth_a_word(hooked: tuple[type[Node], list[Event]]) -> None:
    node_class, told = hooked
    node = node_class()
    node.set(driver_internal_info={"agent_last_heartbeat": "now"})
    node.save()
    assert (node.saved, told) == (1, [])


def test_a_save_that_failed_is_not_told(hooked: tuple[type[Node], list[Event]]) -> None:
    node_class, told = hooked
    node = node_class()
    node.set(provision_state="active", driver_info="refused")
    with pytest.raises(RuntimeError):
        node.save()
    assert told == []


def test_trouble_of_ours_never_reaches_ironic(caplog: pytest.LogCaptureFixture) -> None:
    class Hooked(Node):
        pass

    def broken(event: Event) -> None:
        raise ValueError(f"{event} {SECRET}")

    save_hook.hook(Hooked, broken)
    node = Hooked()
    node.set(provision_state="active")
    with caplog.at_level(logging.WARNING):
        assert node.save() == "saved"
    assert "ValueError" in caplog.text
    assert SECRET not in caplog.text


def test_only_named_fields_leave_and_of_a_step_only_its_name() -> None:
    node = Node(
        deploy_step={"step": "write_image", "args": {"configdrive": SECRET}},
        clean_step={},
        service_step=None,
        driver_info={"redfish_password": SECRET},
        instance_info={"configdrive": SECRET},
        driver_internal_info={"agent_secret_token": SECRET},
        extra={"note": SECRET},
        last_error="no power",
        maintenance=False,
    )
    event = event_of(node)
    assert event.fields == {
        "deploy_step": "write_image",
        "clean_step": None,
        "service_step": None,
        "last_error": "no power",
        "maintenance": False,
    }
    body = encode(sender="s", first=1, gap=False, patches={}, events=[event])
    assert SECRET not in body.decode()
    assert json.loads(body)["events"][0]["seq"] == 1


def notification(kind: str, **data: Any) -> dict[str, Any]:
    return {"event_type": kind, "payload": {"ironic_object.data": data}}


@pytest.mark.parametrize(
    ("kind", "data", "with_hook", "without_hook"),
    [
        ("baremetal.node.create.start", {"uuid": "u", "name": "n"}, None, None),
        ("baremetal.node.create.end", {"uuid": "u", "name": "n"}, Event("u", "n"), Event("u", "n")),
        ("baremetal.node.update.end", {"uuid": "u", "name": "n"}, Event("u", "n"), Event("u", "n")),
        ("baremetal.node.delete.start", {"uuid": "u", "name": "n"}, None, None),
        ("baremetal.node.delete.end", {"uuid": "u"}, Event("u", deleted=True), Event("u", deleted=True)),
        ("baremetal.node.delete.error", {"uuid": "u"}, Event("u"), Event("u")),
        ("baremetal.node.provision_set.start", {"uuid": "u"}, None, Event("u")),
        ("baremetal.node.provision_set.end", {"uuid": "u"}, None, Event("u")),
        ("baremetal.node.power_state_corrected.success", {"uuid": "u"}, None, Event("u")),
        ("baremetal.port.create.end", {"uuid": "p", "node_uuid": "u"}, Event("u"), Event("u")),
        ("baremetal.port.delete.end", {"uuid": "p", "node_uuid": "u"}, Event("u"), Event("u")),
        ("baremetal.chassis.create.end", {"uuid": "c"}, None, None),
        ("baremetal.node.create.end", {"name": "n"}, None, None),
        ("hardware.redfish.metrics", {"uuid": "u"}, None, None),
    ],
)
def test_a_notification_says_look_again_where_the_save_hook_does_not_see(
    kind: str, data: dict[str, Any], with_hook: Event | None, without_hook: Event | None
) -> None:
    message = notification(kind, **data)
    assert event_from(message, saves_are_seen=True) == with_hook
    assert event_from(message, saves_are_seen=False) == without_hook


@pytest.mark.parametrize(
    "message", [{}, {"event_type": "baremetal.node.create.end"}, {"payload": [1]}, {"payload": {}}]
)
def test_a_notification_of_another_shape_is_passed_over(message: dict[str, Any]) -> None:
    assert event_from(message, saves_are_seen=True) is None


def test_the_fast_key_tells_passwords_and_addresses_apart_and_processes_too() -> None:
    fast, other = FastHashlib(), FastHashlib()
    pairs = [(b"a", b"bc"), (b"ab", b"c"), (b"", b"abc"), (b"abc", b""), (b"a", b"bd")]
    keys = {fast.pbkdf2_hmac("sha512", password, salt, 600_000) for password, salt in pairs}
    assert len(keys) == len(pairs)
    assert fast.pbkdf2_hmac("sha512", b"a", b"b", 1) == fast.pbkdf2_hmac("sha512", b"a", b"b", 1)
    assert fast.pbkdf2_hmac("sha512", b"a", b"b", 1) != other.pbkdf2_hmac("sha512", b"a", b"b", 1)
    assert len(fast.pbkdf2_hmac("sha512", b"a", b"b", 1)) == 64
    assert fast.sha256(b"").hexdigest().startswith("e3b0c442")


def test_a_redfish_client_told_nothing_retries_little_and_told_something_obeys() -> None:
    class Client:
        def __init__(
            self, url: str, server_side_retries: int = 10, server_side_retries_delay: int = 3
        ) -> None:
            self.given = (url, server_side_retries, server_side_retries_delay)

    bmc_retries.hook(Client)
    assert Client("u").given == ("u", 3, 2)
    assert Client("u", server_side_retries=7).given == ("u", 7, 2)
    assert Client("u", 8, 9).given == ("u", 8, 9)


def test_a_busy_bmc_is_asked_often_whatever_it_is_asked_and_a_caller_who_counts_is_obeyed() -> None:
    class Connector:
        def _op(self, method: str, path: str = "", server_side_retries_left: int | None = None) -> object:
            return method, path, server_side_retries_left

        def check_retry_on_exception(self, exception_msg: str) -> bool:
            return "SYS518" in exception_msg

    bmc_retries.hook_connector(Connector)
    connector = Connector()
    assert connector._op("GET", "/redfish") == ("GET", "/redfish", bmc_retries.BUSY_RETRIES)
    assert connector._op("GET", server_side_retries_left=0) == ("GET", "", 0)
    assert connector.check_retry_on_exception("HTTP POST https://bmc/reset returned code 503. unknown error")
    assert connector.check_retry_on_exception("SYS518")
    assert not connector.check_retry_on_exception("HTTP POST https://bmc/reset returned code 500. Trouble")


def test_what_was_taken_and_not_answered_is_not_sent_again() -> None:
    class Lost(Exception):
        pass

    class Timeout(Exception):
        pass

    class ReadTimeout(Timeout):
        pass

    class ConnectTimeout(Lost, Timeout):
        pass

    assert bmc_retries.without((Lost, ConnectTimeout, ReadTimeout, Timeout), ReadTimeout) == (
        Lost,
        ConnectTimeout,
    )
    with pytest.raises(AttributeError, match="does not try again after ReadTimeout"):
        bmc_retries.without((Lost,), ReadTimeout)


def test_a_redfish_client_of_another_version_is_noticed_before_anything_is_changed() -> None:
    def older(self: object, url: str, server_side_retries: int = 10) -> None:
        raise NotImplementedError

    bmc_retries.require(older, "server_side_retries")
    with pytest.raises(AttributeError, match="older has no parameter server_side_retries_delay"):
        bmc_retries.require(older, *bmc_retries.FEW)


def test_the_http_server_has_room_for_many() -> None:
    class Service:
        def __init__(self, name: str) -> None:
            self.name = name
            self.server = SimpleNamespace(keep_alive_conn_limit=10, requests=SimpleNamespace(min=10))

    roomy_api.hook(Service)
    service = Service("ironic_api")
    assert service.name == "ironic_api"
    assert (service.server.keep_alive_conn_limit, service.server.request_queue_size) == (128, 128)
    assert service.server.requests.min == roomy_api.THREADS


def test_a_patch_that_does_not_fit_is_left_out_and_said_and_each_is_tried_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tried: list[str] = []

    def fits() -> None:
        tried.append("fits")

    def does_not() -> None:
        tried.append("does_not")
        raise ImportError("no module named ironic.elsewhere")

    patches = Patches()
    patches.apply({"fits": fits, "does_not": does_not})
    patches.apply({"fits": fits, "does_not": does_not})
    assert tried == ["fits", "does_not"]
    assert patches.held() == {"fits": True, "does_not": False}
    assert patches.holds("fits")
    assert not patches.holds("unknown")
    assert "does_not does not fit this version of Ironic and is left out" in caplog.text
