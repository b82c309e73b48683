"""A server of images that can be told to misbehave: real sockets, one thread a connection."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ImageHost:
    """Serves what is in `files`, unless the next answer is scripted: a status code, `"cut"` (half of it),
    `"hold"` (half of it, the rest when `release` is set), or a URL to go to."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.script: deque[int | str] = deque()
        self.says_length = True
        self.release = threading.Event()
        self.asked: list[str] = []
        self.told: list[str | None] = []
        """What each request said about who asks."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[ImageHost]:
        host = cls()
        threading.Thread(target=host._server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield host
        finally:
            host._server.shutdown()
            host._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                host.asked.append(path)
                host.told.append(self.headers.get("Authorization"))
                content = host.files.get(path)
                turn = host.script.popleft() if host.script else 200 if content is not None else 404
                elsewhere = isinstance(turn, str) and turn not in ("cut", "hold")
                self.send_response(302 if elsewhere else turn if isinstance(turn, int) else 200)
                if elsewhere:
                    self.send_header("Location", str(turn))
                if turn not in (200, "cut", "hold"):
                    self.end_headers()
                    return
                content = content or b""
                if host.says_length:
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                half = len(content) // 2 if turn in ("cut", "hold") else len(content)
                self.wfile.write(content[:half])
                if turn == "hold":
                    host.release.wait(60)
                    with contextlib.suppress(OSError):
                        self.wfile.write(content[half:])

            def log_message(self, format: str, *args: object) -> None:
                """Tests look at `asked`."""

        return Handler
