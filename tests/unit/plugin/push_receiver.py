"""A receiver of push messages that can be told to misbehave. Real TLS, real sockets, one thread a connection."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ingot.trust import Authority, Secret, kept_token

DEADLINE = 60.0

Misbehaviour = Callable[["Exchange"], None]


class PushReceiver:
    """Takes messages, unless the next request is scripted to go another way."""

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder / "ca")
        self.ca_file = authority.ca_file
        self.token_file = folder / "token"
        self.token = kept_token(self.token_file)
        self.script: deque[Misbehaviour] = deque()
        self.taken: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.close_after_each = False
        self._certificate = authority.issue(folder, "push", ["127.0.0.1"])
        self._server: _Server | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/v1/push"

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for message in self.taken for event in message["events"]]

    def start(self) -> None:
        self._server = _Server(("127.0.0.1", self.port), Exchange)
        self._server.receiver = self
        self.port = self._server.server_address[1]
        self._server.socket = self._certificate.server_context().wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
        self._server = None

    def reserve_port(self) -> None:
        """Know the port, but do not listen yet."""
        self.start()
        self.stop()

    def rotate_token(self, token: str) -> None:
        self.token = Secret(token)
        self.token_file.write_text(token)

    def wait_for(self, what: Callable[[], bool], why: str) -> None:
        end = time.monotonic() + DEADLINE
        while not what():
            assert time.monotonic() < end, (
                f"after {DEADLINE:.0f} s still not: {why}; taken so far: {self.taken}"
            )
            time.sleep(0.005)


class _Server(ThreadingHTTPServer):
    receiver: PushReceiver
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away in the middle are part of these tests."""


class Exchange(BaseHTTPRequestHandler):
    """One request, and what is done with it."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.receiver.connections += 1

    def do_POST(self) -> None:
        receiver = self.server.receiver
        self.body = self.rfile.read(int(self.headers["Content-Length"]))
        receiver.bodies.append(self.body)
        if receiver.script:
            receiver.script.popleft()(self)
        elif self.headers["Authorization"] != f"Bearer {receiver.token.reveal()}":
            self.answer(401)
        else:
            self.take()

    def take(self) -> None:
        self.server.receiver.taken.append(json.loads(self.body))
        self.answer(204)
        if self.server.receiver.close_after_each:
            self.close_connection = True

    def answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


def answers(status: int, body: bytes = b"") -> Misbehaviour:
    return lambda exchange: exchange.answer(status, body)


def hangs_up(exchange: Exchange) -> None:
    exchange.close_connection = True


def stays_silent(until: threading.Event) -> Misbehaviour:
    def silent(exchange: Exchange) -> None:
        until.wait(DEADLINE)
        exchange.close_connection = True

    return silent


def talks_nonsense(exchange: Exchange) -> None:
    exchange.wfile.write(b"I am not HTTP\r\n\r\n")
    exchange.close_connection = True
