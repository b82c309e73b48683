"""Few retries towards a BMC that is dead, more towards one that is busy.

sushy tries every request ten times, three seconds apart, and Ironic tells it nothing else: a BMC that refuses connections
holds a worker for half a minute at each call. Three tries, two seconds apart, still pass over a BMC that stumbles; one that is
dead is tried again at the next power sync anyway.

A BMC that answers 503 is alive and says that it will answer soon, as many do for a while after a reset. It is asked ten times:
giving up in the last step of a deployment means writing the image once more. That it has not done what it was asked is what 503
says, so that orders are given again too, where sushy would repeat a question only.

A request that was taken and not answered within a minute is not sent again at all: the BMC may be doing what it was asked, and a
cycle of power sync lasts as long as its slowest host, so one hung BMC would delay the next look at all others by minutes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

FEW: Final = {"server_side_retries": 3, "server_side_retries_delay": 2}
BUSY_RETRIES: Final = 10


def install() -> None:
    """Change what sushy takes when it is told nothing. Raises when it has no such parameters."""
    import sushy
    from requests import exceptions
    from sushy import connector

    few = without(connector._RETRYABLE_EXCEPTIONS, exceptions.ReadTimeout)
    require(sushy.Sushy.__init__, *FEW)
    require(connector.Connector._op, "server_side_retries_left")
    hook(sushy.Sushy)
    hook_connector(connector.Connector)
    connector._RETRYABLE_EXCEPTIONS = few


def require(method: Callable[..., Any], *names: str) -> None:
    """All of it is looked at before any of it is changed, so that it holds whole or not at all."""
    known = inspect.signature(method).parameters
    missing = [name for name in names if name not in known]
    if missing:
        raise AttributeError(f"{method.__qualname__} has no parameter {' or '.join(missing)}")


def without(retried: tuple[type[Exception], ...], unanswered: type[Exception]) -> tuple[type[Exception], ...]:
    """What is tried again, apart from what was not answered."""
    if unanswered not in retried:
        raise AttributeError(
            f"sushy does not try again after {unanswered.__name__}, or not in a way that is known here"
        )
    return tuple(kind for kind in retried if not issubclass(unanswered, kind))


def hook(client_class: Any) -> None:
    original = client_class.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = inspect.signature(original).bind_partial(self, *args, **kwargs).arguments
        original(self, *args, **kwargs, **{name: value for name, value in FEW.items() if name not in given})

    client_class.__init__ = __init__


def hook_connector(connector_class: Any) -> None:
    """How often a busy BMC is asked, and that it is asked again whatever it was asked."""
    send, is_worth_it = connector_class._op, connector_class.check_retry_on_exception

    @functools.wraps(send)
    def _op(self: Any, *args: Any, server_side_retries_left: int | None = None, **kwargs: Any) -> Any:
        left = BUSY_RETRIES if server_side_retries_left is None else server_side_retries_left
        return send(self, *args, server_side_retries_left=left, **kwargs)

    @functools.wraps(is_worth_it)
    def check_retry_on_exception(self: Any, exception_msg: Any) -> bool:
        return " returned code 503." in str(exception_msg) or bool(is_worth_it(self, exception_msg))

    connector_class._op, connector_class.check_retry_on_exception = _op, check_retry_on_exception
