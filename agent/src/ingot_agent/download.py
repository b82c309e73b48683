"""Opening what is at a URL: with the agent's trust, through the environment's proxy, with failures told as sentences.

Answers that will not change (not found, forbidden) are hopeless; all else may be better a minute later.
"""

from __future__ import annotations

import base64
import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from ingot_agent.errors import Failed, Hopeless
from ingot_agent.order import shown

Opened = http.client.HTTPResponse
Opener = Callable[[str], Opened]

# Silence after which a server counts as gone.
PATIENCE: Final = 60.0
_LARGEST_TEXT: Final = 1 << 20
_WORTH_ANOTHER_TRY: Final = frozenset((408, 425, 429, 500, 502, 503, 504))


def trust(verify: bool | str, certificate: tuple[str, str] | None = None) -> ssl.SSLContext:
    """What the agent trusts: the system's authorities, those in a file, or anybody; and who it is itself."""
    context = ssl.create_default_context(cafile=verify if isinstance(verify, str) else None)
    if verify is False:  # the operator said so; an image is verified by its hash all the same
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(*certificate)
    return context


def opener(context: ssl.SSLContext) -> Opener:
    """Opens URLs of http and https with this trust; raises Failed or Hopeless."""
    # Put together by hand: the usual one also follows a redirection to FTP.
    director = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=context),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        director.add_handler(handler)

    def opened(url: str) -> Opened:
        with told(url):
            answer = director.open(_request(url), timeout=PATIENCE)
            assert isinstance(answer, http.client.HTTPResponse)
            return answer

    return opened


def _request(url: str) -> urllib.request.Request:
    """The request for this URL. A password in it is for the server that it names, and for none that it redirects to."""
    parts = urlsplit(url)
    who, _, where = parts.netloc.rpartition("@")
    request = urllib.request.Request(urlunsplit(parts._replace(netloc=where)))  # noqa: S310 - the opener knows no other schemes
    if who:
        told = base64.b64encode(unquote(who).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {told}")
    return request


def text_at(url: str, opened: Opener) -> str:
    """A small text, such as a file of checksums."""
    with told(url), opened(url) as answer:
        content = answer.read(_LARGEST_TEXT + 1)
    if len(content) > _LARGEST_TEXT:
        raise Hopeless(f"{shown(url)} is larger than a file of checksums can be.")
    return content.decode("utf-8", "replace")


@contextmanager
def told(url: str) -> Iterator[None]:
    """Failures of this server, as ours."""
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        kind = Failed if error.code in _WORTH_ANOTHER_TRY else Hopeless
        raise kind(f"{shown(url)} could not be downloaded: the server answered {error.code}.") from None
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "reason", None) or error
        raise Failed(f"{shown(url)} could not be downloaded: {str(why) or type(why).__name__}.") from None
