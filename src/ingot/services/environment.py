"""Ironic's own virtual environment: made once, from a lock with hashes, and found again afterwards.

Owns `${XDG_CACHE_HOME:-~/.cache}/ingot/ironic/<version>-<digest>`, where the digest covers the lock, the plugin's sources and
the interpreter; a change of any of them makes a new environment beside the old one, so a running Ironic keeps the one it was
started from. Virtual environments cannot be moved, so one is built in place under a file lock and counts only once its marker
is there; what a killed build left behind is removed by the next one, after the tools it had started have ended too: they hold
the same lock. When it is there, `ensure` costs a few milliseconds.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ingot.services import plugin
from ingot.services.errors import EnvironmentUnavailable
from ingot.trust import redact

Progress = Callable[[str], None]

DEFAULT_VERSION: Final = "39"
LOCKS: Final = Path(__file__).parent / "environments"
_MARKER: Final = ".ingot-complete"
_LINES_SHOWN: Final = 15
_OURS: Final = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")


@dataclass(frozen=True, slots=True)
class IronicEnvironment:
    """An environment that is complete."""

    version: str
    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def python(self) -> Path:
        return self.bin / "python"

    def program(self, name: str) -> Path:
        """A command of this environment, such as `ironic` or `ironic-dbsync`."""
        return self.bin / name


def silent(_: str) -> None:
    """Progress for those who do not want to hear."""


def versions(locks: Path = LOCKS) -> list[str]:
    """The versions of Ironic there is a lock for."""
    return sorted(file.stem.removeprefix("ironic-") for file in locks.glob("ironic-*.lock"))


def ensure(
    version: str = DEFAULT_VERSION, progress: Progress = silent, locks: Path = LOCKS
) -> IronicEnvironment:
    """The environment of this version of Ironic; made when it is not there yet. Blocks."""
    lock = _lock_of(version, locks)
    sources = plugin.sources()
    made = IronicEnvironment(version, cache_folder() / f"{version}-{_digest(lock, sources)}")
    if _complete(made):
        return made
    made.folder.parent.mkdir(parents=True, exist_ok=True)
    with _only_builder(made.folder, progress) as held:
        if not _complete(made):
            _build(made, lock, sources, held, progress)
    return made


def without_ours(variables: Mapping[str, str]) -> dict[str, str]:
    """These variables for a process that is not of our environment: what speaks of ours would lead it astray."""
    return {name: value for name, value in variables.items() if name not in _OURS}


def _lock_of(version: str, locks: Path) -> Path:
    if version not in versions(locks):
        raise EnvironmentUnavailable(
            f"Ingot has no lock for Ironic {version!r}; it has: {', '.join(versions(locks))}. "
            "Set INGOT_IRONIC_VERSION to one of these."
        )
    return locks / f"ironic-{version}.lock"


def cache_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "ingot" / "ironic"


def _digest(lock: Path, sources: Path) -> str:
    total = hashlib.sha256(lock.read_bytes())
    total.update(plugin.digest(sources).encode())
    total.update(f"{sys.implementation.cache_tag} {sys.base_prefix}".encode())
    return total.hexdigest()[:16]


def _complete(made: IronicEnvironment) -> bool:
    # The interpreter is a link; it dangles when the one it was made from was removed.
    return (made.folder / _MARKER).is_file() and made.python.exists()


@contextmanager
def _only_builder(folder: Path, progress: Progress) -> Iterator[int]:
    """Be the only one who builds; yields the descriptor of the lock."""
    with folder.with_name(f"{folder.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("another process is making Ironic's environment; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _build(made: IronicEnvironment, lock: Path, sources: Path, held: int, progress: Progress) -> None:
    shutil.rmtree(made.folder, ignore_errors=True)
    progress(f"making a virtual environment for Ironic {made.version} in {made.folder}")
    uv = find_uv()
    for command in _recipe_with_uv(uv, made, lock) if uv else _recipe_with_pip(made, lock):
        _run(command, made, held, progress)
    progress("adding the plugin ingot-ironic")
    plugin.install(sources, _site_packages(made))
    marker = made.folder / _MARKER
    marker.write_text(f"Ironic {made.version}, complete.\n")


def find_uv() -> str | None:
    """uv on PATH, or beside our own interpreter; None when there is none."""
    beside = Path(sys.executable).with_name("uv")
    return shutil.which("uv") or (str(beside) if beside.is_file() else None)


def _recipe_with_uv(uv: str, made: IronicEnvironment, lock: Path) -> list[list[str]]:
    return [
        [
            uv,
            "venv",
            "--quiet",
            "--no-project",
            "--no-python-downloads",
            "--python",
            sys.executable,
            str(made.folder),
        ],
        [
            *(uv, "pip", "install", "--python", str(made.python)),
            # Compiled now, by one process, rather than at the first start of Ironic, which somebody waits for.
            *("--require-hashes", "--compile-bytecode", "-r", str(lock)),
        ],
    ]


def _recipe_with_pip(made: IronicEnvironment, lock: Path) -> list[list[str]]:
    return [
        [sys.executable, "-m", "venv", str(made.folder)],
        [
            *(str(made.python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"),
            *("--progress-bar", "off", "--require-hashes", "-r", str(lock)),
        ],
    ]


def _run(command: list[str], made: IronicEnvironment, held: int, progress: Progress) -> None:
    last: deque[str] = deque(maxlen=_LINES_SHOWN)
    try:
        with subprocess.Popen(
            command,
            env=without_ours(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(held,),
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                last.append(redact(line.rstrip()))
                # uv lists a hundred packages; the person who waits wants to know that it moves.
                if not last[-1].startswith(" + "):
                    progress(last[-1])
    except OSError as error:
        raise EnvironmentUnavailable(
            f"Cannot run {command[0]} to make Ironic's environment: {error.strerror}."
        ) from error
    if process.returncode:
        raise EnvironmentUnavailable(
            f"Making Ironic's environment in {made.folder} failed ({Path(command[0]).name} ended with {process.returncode}). "
            "It needs a package index it can reach and about 400 MB of disk; what is half made is removed at the next try. "
            "Its last lines:\n  " + "\n  ".join(last)
        )


def _site_packages(made: IronicEnvironment) -> Path:
    return made.folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
