"""Our tool as files of a container: `ingot`, and the same under the name coreos-installer, whose verbs and options it takes.

What is put in is the package that runs right now with what it needs, for machines of the same kind and the same Python; for
others, a folder is given that holds it (`pip install --target FOLDER --platform …`). The interpreter comes with the base image.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Final

import ingot
from ingot.formats.oci import LayerKind
from ingot.images.region import Region
from ingot.images.release.assembling import LayerFile, tree
from ingot.images.release.errors import ReleaseError

HOME: Final = "usr/lib/ingot"
OURS: Final = "usr/bin/ingot"
INSTALLER: Final = "usr/bin/coreos-installer"

# Only the embedded API needs them, and they are larger than everything else together.
_LEFT_OUT: Final = frozenset({"cel-expr-python", "jsonschema-rs"})
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXECUTABLE: Final = 0o755
_PLAIN: Final = 0o644

_LAUNCHER: Final = """#!/usr/bin/env python3
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib", "ingot"))
try:
    from ingot.cli.main import main
except ImportError as error:
    sys.exit(f"{sys.argv[0]}: cannot be run by Python {sys.version.split()[0]}; it was packed for @PYTHON@ ({error})")
main()
"""


def tool_version() -> str:
    return version("ingot")


def this_architecture() -> str:
    return platform.machine()


def launchers(installer: Path | None = None) -> Iterator[LayerFile]:
    """What a person calls; the real coreos-installer under its own name, where there is one."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    text = _LAUNCHER.replace("@PYTHON@", python).encode()
    yield LayerFile(INSTALLER, text, _EXECUTABLE) if installer is None else installer_file(installer)
    yield LayerFile(OURS, text, _EXECUTABLE)


def installer_file(installer: Path) -> LayerFile:
    """The real coreos-installer."""
    return LayerFile(INSTALLER, Region.whole(installer), _EXECUTABLE)


def running_tool() -> Iterator[LayerFile]:
    """The package that runs right now, and what it needs."""
    files = {file.path: file for file in _package()}
    for needed in _needed("ingot"):
        files.update((file.path, file) for file in _installed(needed))
    return iter([files[path] for path in sorted(files, key=lambda path: path.split("/"))])


def given_tool(folder: Path) -> Iterator[LayerFile]:
    """What somebody installed into a folder for another kind of machine."""
    if not (folder / "ingot" / "__init__.py").is_file():
        raise ReleaseError(
            f"{folder} does not hold our tool: there is no ingot/__init__.py in it. It is what `pip install --target` makes"
        )
    yield from _files(folder, HOME)


def _package() -> Iterator[LayerFile]:
    """Our own files, also where they are run from a checkout."""
    yield from _files(Path(ingot.__file__).parent, f"{HOME}/ingot")
    # By this the command knows its version.
    metadata = distribution("ingot").read_text("METADATA") or ""
    yield LayerFile(f"{HOME}/ingot-{tool_version()}.dist-info/METADATA", metadata.encode())


def _needed(name: str) -> Iterator[Distribution]:
    """The distributions that one needs, each once, however they need each other."""
    waiting, seen = [name], {_plain(name)}
    while waiting:
        for line in distribution(waiting.pop()).requires or []:
            requirement, _, condition = line.partition(";")
            found = _NAME.match(requirement.strip())
            if found is None or "extra" in condition or _plain(found[0]) in seen | _LEFT_OUT:
                continue
            seen.add(_plain(found[0]))
            try:
                yield distribution(found[0])
            except PackageNotFoundError:
                continue  # another Python or another system needs it
            waiting.append(found[0])


def _installed(needed: Distribution) -> Iterator[LayerFile]:
    for file in needed.files or []:
        path = Path(str(file.locate()))
        if ".." not in file.parts and not _compiled(str(file)) and path.is_file():
            yield LayerFile(f"{HOME}/{file.as_posix()}", Region.whole(path), _mode(path.stat().st_mode))


def _files(folder: Path, under: str) -> Iterator[LayerFile]:
    for file in tree(folder, under):
        if not _compiled(file.path):
            yield file if file.kind is LayerKind.SYMLINK else replace(file, mode=_mode(file.mode))


def _mode(found: int) -> int:
    """Whether it can be run, and nothing that the umask of whoever installed it had a say in."""
    return _EXECUTABLE if found & 0o100 else _PLAIN


def _compiled(path: str) -> bool:
    return "__pycache__" in path.split("/") or path.endswith(
        (".pyc", "/RECORD", "/direct_url.json", "/INSTALLER")
    )


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
