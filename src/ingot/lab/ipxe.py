"""iPXE: running the scripts that a server gets when it boots from the network.

Owns the part of the language that boot scripts for the agent use: variables, labels, conditions, `chain`, `kernel`, `initrd`,
`boot`, `sanboot`, `exit`. It ends in what is to be booted, or in None: the firmware goes on with the next device. Everything
that a script loads is really fetched, by the caller's `load`. A script's `sleep` lasts at most a second: it only spaces out
tries.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin

from ingot.lab.errors import BootFailure

_VARIABLE: Final = re.compile(r"\$\{([^${}]*)\}")
_MOST_LINES: Final = 10_000
_DEEPEST: Final = 8


@dataclass(frozen=True, slots=True)
class NetBoot:
    """A kernel with its command line and its ramdisk, or an ISO image alone."""

    kernel: str = ""
    command_line: str = ""
    initrds: tuple[str, ...] = ()
    iso: str = ""


class LoadFailed(Exception):
    """Something could not be fetched; the script may have another way."""


Load = Callable[[str], Awaitable[bytes]]


class _Ended(Exception):
    """The script is over: what it booted, or None."""

    def __init__(self, booted: NetBoot | None) -> None:
        super().__init__("the script has ended")
        self.booted = booted


async def network_boot(url: str, *, macs: Sequence[str], load: Load) -> NetBoot | None:
    """Boot the script behind the URL on a server with these network cards, the first of which asked for it."""
    try:
        script = (await load(url)).decode("utf-8", "replace")
    except LoadFailed as error:
        raise BootFailure(f"the network boot script cannot be fetched: {error}") from error
    machine = _Machine(macs, load)
    try:
        await machine.run(script, url, depth=0)
    except _Ended as ended:
        return ended.booted
    return None


class _Machine:
    def __init__(self, macs: Sequence[str], load: Load) -> None:
        self._load = load
        self._left = _MOST_LINES
        self._values = {f"net{number}/mac": mac for number, mac in enumerate(macs)}
        self._values["mac"] = macs[0]
        self._kernel, self._command_line = "", ""
        self._initrds: list[str] = []

    async def run(self, script: str, base: str, *, depth: int) -> bool:
        """Run a script to its end; whether it ended well."""
        lines = script.splitlines()
        if not lines or not lines[0].startswith("#!ipxe"):
            raise BootFailure("what the server was given to boot from the network is no iPXE script")
        labels = {line.strip()[1:]: at for at, line in enumerate(lines) if line.strip().startswith(":")}
        at, went_well = 0, True
        while at < len(lines):
            self._left -= 1
            if self._left < 0:
                raise BootFailure("the network boot script does not come to an end")
            line = lines[at].strip()
            at += 1
            if not line or line[0] in "#:":
                continue
            went_well, goto, leave = await self._line(line, base, depth)
            if leave:
                return went_well
            if goto is not None:
                if goto not in labels:
                    raise BootFailure(f"the network boot script goes to {goto!r}, and there is no such label")
                at = labels[goto] + 1
            elif not went_well:
                return False
        return went_well

    async def _line(self, line: str, base: str, depth: int) -> tuple[bool, str | None, bool]:
        """Run one line: whether it went well, the label it goes to, whether it leaves the script."""
        went_well, run = True, True
        for operator, words in _commands(self._expanded(line)):
            run = {"": True, "||": not went_well, "&&": went_well}[operator]
            if not run or not words:
                went_well = went_well or (operator == "||" and not words)
                continue
            if words[0] == "goto":
                return True, words[1] if len(words) > 1 else "", False
            if words[0] == "exit":
                return (len(words) < 2 or words[1] == "0"), None, True
            went_well = await self._command(words, base, depth)
        return went_well, None, False

    async def _command(self, words: list[str], base: str, depth: int) -> bool:
        name, rest = words[0], _without_options(words[1:])
        match name, rest:
            case "set", [variable, *value]:
                self._values[variable.partition(":")[0]] = " ".join(value)
            case "inc", [variable, *_]:
                self._values[variable] = str(int(self._values.get(variable) or "0") + 1)
            case "isset", values:
                return any(values)
            case "iseq", [one, other]:
                return one == other
            case "sleep", [seconds, *_] if seconds.isdecimal():
                await asyncio.sleep(min(1, int(seconds)))
            case "imgfree", _:
                self._kernel, self._command_line, self._initrds = "", "", []
            case "kernel", [url, *arguments]:
                return await self._take_kernel(urljoin(base, url), arguments)
            case "initrd", [url, *_]:
                return await self._take_initrd(urljoin(base, url))
            case "chain", [url, *_]:
                return await self._chain(urljoin(base, url), depth)
            case "boot", _:
                if not self._kernel:
                    return False
                raise _Ended(NetBoot(self._kernel, self._command_line, tuple(self._initrds)))
            case "sanboot", [url, *_]:
                raise _Ended(NetBoot(iso=urljoin(base, url)))
            case "sanboot", []:
                raise _Ended(None)
            case (("reboot" | "poweroff"), _):
                raise BootFailure("the network boot script found nothing to boot and gave up")
        return True

    async def _take_kernel(self, url: str, arguments: list[str]) -> bool:
        try:
            await self._load(url)
        except LoadFailed:
            return False
        self._kernel, self._command_line = url, " ".join(arguments)
        return True

    async def _take_initrd(self, url: str) -> bool:
        try:
            await self._load(url)
        except LoadFailed:
            return False
        self._initrds.append(url)
        return True

    async def _chain(self, url: str, depth: int) -> bool:
        if depth >= _DEEPEST:
            raise BootFailure("network boot scripts call one another without an end")
        try:
            script = (await self._load(url)).decode("utf-8", "replace")
        except LoadFailed:
            return False
        return await self.run(script, url, depth=depth + 1)

    def _expanded(self, line: str) -> str:
        """The line with the values of its variables, inner ones first; a variable without a value is nothing."""
        while (found := _VARIABLE.search(line)) is not None:
            name, _, form = found[1].partition(":")
            value = self._values.get(name, "")
            line = (
                line[: found.start()]
                + (value.replace(":", "-") if form == "hexhyp" else value)
                + line[found.end() :]
            )
        return line


def _commands(line: str) -> list[tuple[str, list[str]]]:
    """The commands of a line, each with the operator before it."""
    commands: list[tuple[str, list[str]]] = [("", [])]
    for word in line.split():
        if word in ("||", "&&"):
            commands.append((word, []))
        else:
            commands[-1][1].append(word)
    return commands


def _without_options(words: list[str]) -> list[str]:
    """The arguments after the options; `--timeout` has a value, the other known ones have none."""
    while words and words[0].startswith("--"):
        words = words[2:] if words[0] == "--timeout" else words[1:]
    return words
