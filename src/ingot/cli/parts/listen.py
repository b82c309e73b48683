"""Where a part listens: the option's value `ADDRESS:PORT`, and being told to stop. The same for every part that runs alone."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from typing import NamedTuple

import click


class Listen(NamedTuple):
    host: str
    port: int


class AddressAndPort(click.ParamType[Listen]):
    name = "ADDRESS:PORT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Listen:
        if isinstance(value, Listen):
            return value
        host, colon, port = str(value).rpartition(":")
        if not colon or not host or not port.isdecimal() or int(port) > 65535:
            self.fail(
                f"{value!r} is not ADDRESS:PORT; for example 127.0.0.1:6443, or port 0 for any free one",
                param,
                ctx,
            )
        return Listen(host.strip("[]"), int(port))


def cannot_listen(error: OSError, listen: Listen, what: str, option: str) -> click.ClickException:
    """What to say when an address cannot be had; `what` comes in there, `option` is where to give another."""
    # In the kernel's words: the library's repeat the address as a tuple. A name that does not resolve has none.
    why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    return click.ClickException(
        f"cannot listen {what} at {listen.host}:{listen.port}: {why}. Give another address with {option}."
    )


def told_to_stop() -> asyncio.Event:
    """Set by SIGTERM and by Ctrl-C."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def log_to_stderr(*, verbose: bool = False) -> None:
    """How a part logs; stdout is for the line that says it is ready."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
