"""Arguments of a Linux kernel that somebody adds to the usual ones.

They become a line in the configuration of a boot loader: of iPXE, GRUB or isolinux, each of which reads it as a program of its
own. So the grammar is narrow: words, separated by spaces, each NAME or NAME=VALUE. Neither a name nor a value holds what a boot
loader or a shell gives a meaning: quotes other than a pair around a whole value, `$`, `;`, `&`, `|`, `<`, `>`, backslash, `#`,
braces, backticks. No word begins with a dash, because boot loaders have options.

Some arguments are the ramdisk's contract with the server that it calls: who else sets them, sends it elsewhere.

The line has two sorts of readers. To the kernel, GRUB and systemd what stands in quotes is one value. ironic-python-agent,
Ignition, iPXE and the shell scripts of a ramdisk cut the line at every blank, quotes or not. So both readings are checked: a
value may be quoted and have blanks, and none of the arguments of that contract may stand in it.
"""

from __future__ import annotations

import re
from typing import Final

from ingot.api import bmc

LONGEST: Final = 2048
"""Kernels cut off what is longer."""
_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
_PLAIN: Final = r"(?:[A-Za-z0-9_.:/,@+=~*^?!()\[\]-]|%[0-9A-Fa-f]{2})"
_ARGUMENT: Final = re.compile(rf'(?P<name>{_NAME})(?:=(?P<value>{_PLAIN}*|"(?:{_PLAIN}| )*"))?(?: +|\Z)')
_SERVERS: Final = frozenset(
    {
        "ipa-api-url",
        "ipa-inspection-callback-url",
        "ipa-agent-token",
        "ipa-agent-token-required",
        "ipa-insecure",
        "ipa-use-mdns",
        "ir-pub-id",
        # With boot_method=vmedia the agent reads all of these from whichever disc it finds in a drive.
        "boot-method",
    }
)
"""What tells the ramdisk whom it talks to, and how each proves who it is; the kernel takes _ and - for the same."""
_TIME_SERVER: Final = "ipa-ntp-server"


def problem_with(arguments: str) -> str | None:
    if not arguments.isascii() or not arguments.isprintable():
        return "they have to be one line of printable ASCII characters."
    if len(arguments) > LONGEST:
        return f"they are {len(arguments)} characters long, and at most {LONGEST} fit."
    rest = arguments.strip(" ")
    while rest:
        found = _ARGUMENT.match(rest)
        if found is None:
            word = rest.partition(" ")[0]
            return (
                f"{word!r} is not NAME or NAME=VALUE in letters, digits, .:/,@+=~*^?!()[]- and %XX; a boot loader or a shell "
                "could take it for something else."
            )
        if problem := _problem_with_one(found["name"], (found["value"] or "").strip('"')):
            return problem
        rest = rest[found.end() :]
    cut_at_blanks = (word.strip('"').partition("=") for word in arguments.split())
    problems = (_problem_with_one(name, value.strip('"')) for name, _, value in cut_at_blanks)
    return next(filter(None, problems), None)


def _problem_with_one(name: str, value: str) -> str | None:
    plain = name.lower().replace("_", "-")
    if plain in _SERVERS:
        return (
            f"{name} is set by the server that the ramdisk reports to, and by nobody else, in quotes neither: the agent in the "
            "ramdisk does not heed them. Leave it out."
        )
    if plain == _TIME_SERVER and not all(bmc.is_host(one) for one in value.split(",")):
        return f"{name} has to be a host, or several with commas between them."
    return None
