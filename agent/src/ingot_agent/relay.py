"""Hands an image on to coreos-installer, and its end only when the hash of the whole is right.

coreos-installer reads images from files or URLs and checks no hash. So it is given a URL of ours, on loopback, for this one
attempt: what is downloaded passes through the hash on its way. coreos-installer writes the first MiB of the disk last, when it
has read the image to its end; the end is held back here until the hash is known. An image with a wrong hash is cut off, and
coreos-installer wipes the partition table: at no moment can the disk boot something that was not verified, also if the agent
dies in between.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote, unquote, urlsplit

from ingot_agent.checksum import Digest
from ingot_agent.download import Opened, Opener, told
from ingot_agent.errors import Failed, Hopeless, InstallError
from ingot_agent.order import shown

LOG = logging.getLogger(__name__)
_PIECE: Final = 1 << 20


class Relay:
    """Serves one image on loopback while it is open. `failure` says why the image was cut off, if it was; `verified` that all
    of it was read, and has the hash that it has to have."""

    def __init__(self, url: str, wanted: Digest, opened: Opener) -> None:
        self.image = url
        self.failure: InstallError | None = None
        self.verified = False
        self._wanted = wanted
        self._opened = opened
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.relay = self
        name = quote(unquote(urlsplit(url).path.rpartition("/")[2])) or "image"
        # Whoever else is on this machine cannot take the image's place, nor read it.
        self.path = f"/{secrets.token_urlsafe(24)}/{name}"
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}{self.path}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def pass_on(self, to: _Handler) -> None:
        """Download the image and send it, as long as it is what was asked for."""
        try:
            with told(self.image), self._opened(self.image) as source:
                self._stream(source, to)
        except InstallError as error:
            self.failure = error
            LOG.warning("the image is cut off: %s", error)
            to.cut_off()

    def _stream(self, source: Opened, to: _Handler) -> None:
        length = source.length  # None where the server does not say
        to.begin(length)
        total, seen, held = hashlib.new(self._wanted.algorithm), 0, b""
        while piece := source.read(_PIECE):
            total.update(piece)
            seen += len(piece)
            to.send(held)
            held = piece
        if length is not None and seen != length:
            raise Failed(f"{shown(self.image)} ended after {seen} of {length} bytes.")
        if not hmac.compare_digest(total.hexdigest(), self._wanted.value):
            raise Hopeless(
                f"the image {shown(self.image)} is not the one that was asked for: "
                f"its {self._wanted.algorithm} is {total.hexdigest()}, and {self._wanted.value} was expected. "
                "The disk was made unbootable. Correct the checksum, or the image at the URL."
            )
        self.verified = True
        to.send(held)
        to.end()


class _Server(ThreadingHTTPServer):
    relay: Relay
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """The only client is coreos-installer; that it went away is told by its exit."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    _begun = False
    _chunked = False

    def do_GET(self) -> None:
        self.close_connection = True
        if hmac.compare_digest(self.path.encode(), self.server.relay.path.encode()):
            self.server.relay.pass_on(self)
        else:  # also the signature beside the image: it was verified by its hash
            self.send_error(404)

    def begin(self, length: int | None) -> None:
        self._begun, self._chunked = True, length is None
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        if length is None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(length))
        with _unless_gone():
            self.end_headers()

    def send(self, piece: bytes) -> None:
        if piece:
            self._write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece)

    def end(self) -> None:
        if self._chunked:
            self._write(b"0\r\n\r\n")

    def cut_off(self) -> None:
        """End without the end. coreos-installer takes that for what it is: an image that could not be read."""
        if not self._begun:
            self.send_error(502)

    def _write(self, content: bytes) -> None:
        with _unless_gone():
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Its requests are of no interest, and their path is nobody's business."""


class _Gone(Exception):
    """coreos-installer went away: why is its own to say."""


@contextmanager
def _unless_gone() -> Iterator[None]:
    # An OSError here is the reader's; further out it would count as one of the image's server.
    try:
        yield
    except OSError:
        raise _Gone from None
