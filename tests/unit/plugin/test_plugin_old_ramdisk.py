"""Whether the ramdisk from before a reboot runs still, asked of real TLS servers."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cut_off_world import Node

from ingot.trust import Authority, Certificate
from ingot_ironic import old_ramdisk


@pytest.fixture
def agent(tmp_path: Path) -> Certificate:
    return Authority(tmp_path / "ca").issue(tmp_path / "agent", "agent", ["127.0.0.1"])


@contextlib.contextmanager
def answering(context: ssl.SSLContext | None) -> Iterator[str]:
    """Somebody at this URL, with TLS or without."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            line, _ = listener.accept()
            with line:
                if context is None:
                    line.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                else:
                    with context.wrap_socket(line, server_side=True) as tls:
                        tls.recv(1)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
        thread.join(10)


def rebooted(url: str, certificate: Path) -> Node:
    """A node that is being rebooted: its agent was noted, and then forgotten."""
    node = Node("a", "clean wait")
    node.driver_internal_info = {"agent_url": url, "agent_verify_ca": str(certificate)}
    old_ramdisk.note(node)
    for key in ("agent_url", "agent_verify_ca"):
        node.del_driver_internal_info(key)
    return node


def test_the_ramdisk_from_before_runs_still(agent: Certificate) -> None:
    with answering(agent.server_context()) as url:
        assert old_ramdisk.runs_still(rebooted(url, agent.cert_file))


def test_another_start_of_the_ramdisk_is_not_the_one_from_before(agent: Certificate, tmp_path: Path) -> None:
    """At the same address, and its certificate has taken the place of the old one's file."""
    again = Authority(tmp_path / "another").issue(tmp_path / "again", "agent", ["127.0.0.1"])
    with answering(again.server_context()) as url:
        node = rebooted(url, agent.cert_file)
        agent.cert_file.write_bytes(again.cert_file.read_bytes())
        assert not old_ramdisk.runs_still(node)


def test_who_speaks_no_tls_is_not_the_ramdisk_from_before(agent: Certificate) -> None:
    with answering(None) as url:
        assert not old_ramdisk.runs_still(rebooted(url, agent.cert_file), patience=5)


@pytest.mark.parametrize("url", ["https://127.0.0.1:1", "http://", "", "https://127.0.0.1:x"])
def test_nobody_who_answers_is_nobody(agent: Certificate, url: str) -> None:
    assert not old_ramdisk.runs_still(rebooted(url, agent.cert_file), patience=5)


def test_where_nothing_was_noted_nothing_is_known() -> None:
    assert not old_ramdisk.runs_still(Node("a", "clean wait"))


@pytest.mark.parametrize(
    "info",
    [
        {},
        {"agent_url": "https://127.0.0.1:2"},
        {"agent_url": "https://127.0.0.1:2", "agent_verify_ca": "/no/file"},
    ],
)
def test_a_reboot_of_which_nothing_is_known_leaves_the_note_of_the_one_before(
    agent: Certificate, info: dict[str, str]
) -> None:
    """Ironic that is killed in the reboot that finishes another has forgotten the agent already."""
    node = rebooted("https://127.0.0.1:1", agent.cert_file)
    noted = node.driver_internal_info[old_ramdisk.NOTE]
    node.driver_internal_info = {**node.driver_internal_info, **info}
    old_ramdisk.note(node)
    assert node.driver_internal_info[old_ramdisk.NOTE] == noted


def test_nothing_secret_is_noted(agent: Certificate) -> None:
    node = Node("a", "clean wait")
    node.driver_internal_info = {
        "agent_url": "https://127.0.0.1:1",
        "agent_verify_ca": str(agent.cert_file),
        "agent_secret_token": "sesame",
    }
    old_ramdisk.note(node)
    assert set(node.driver_internal_info[old_ramdisk.NOTE]) == {"url", "certificate"}
    assert "sesame" not in str(node.driver_internal_info[old_ramdisk.NOTE])
