"""Where a changed image goes: into its own file, to a new file, or to standard output.

Owns writing. In place, only the changed areas are written, then synced; an image that is interrupted in the middle of it is
mended by `iso reset`, which does not depend on what the areas hold. A new file appears under its name when it is whole,
or not at all, and never replaces one that is there. Nothing is written before the change is decided.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import click

from ingot.cli.live.inputs import about, read_image
from ingot.formats.coreos import LiveIso, Patch

CHUNK: Final = 1 << 20
_PRIVATE: Final = 0o600
"""An image may hold an Ignition config with secrets."""
_PREFIX: Final = ".ingot-temp-"
_DESCRIPTORS: Final = "/proc/self/fd"


def change_image(path: str, output: str | None, decide: Callable[[LiveIso], list[Patch]]) -> None:
    """Change a live image as `decide` says: in place without an output, to standard output with "-", else to a new file."""
    if output is None:
        with about(path), Path(path).open("r+b", buffering=0) as file:
            # Two changes at once would each put back what the other took away.
            fcntl.flock(file, fcntl.LOCK_EX)
            write_patches(file.fileno(), decide(LiveIso(_buffered(file.fileno()))))
            os.fsync(file.fileno())
        return
    with read_image(path) as file:
        patches = decide(LiveIso(file))
        if output == "-":
            stream(file, patches, binary_output())
            return
        with new_file(output) as made:
            copy_range(file, made.fileno(), 0, size_of(file))
            write_patches(made.fileno(), patches)


def write_patches(descriptor: int, patches: Iterable[Patch]) -> None:
    for patch in patches:
        view, at = memoryview(patch.content), patch.offset
        while view:
            written = os.pwrite(descriptor, view, at)
            view, at = view[written:], at + written


def stream(file: BinaryIO, patches: Iterable[Patch], out: BinaryIO) -> None:
    """The image with its patches laid over it, in order."""
    at = 0
    for patch in sorted(patches, key=lambda patch: patch.offset):
        _pipe(file, out, at, patch.offset - at)
        out.write(patch.content)
        at = patch.offset + len(patch.content)
    _pipe(file, out, at, size_of(file) - at)
    out.flush()


def size_of(file: BinaryIO) -> int:
    """How long a file is, also where it is a block device."""
    return file.seek(0, os.SEEK_END)


def copy_range(file: BinaryIO, descriptor: int, offset: int, length: int) -> None:
    """Copy bytes of a file to where another one stands; within one file system the kernel may share the blocks."""
    end = offset + length
    while offset < end:
        try:
            copied = os.copy_file_range(file.fileno(), descriptor, end - offset, offset_src=offset)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                raise
            copied = os.write(descriptor, os.pread(file.fileno(), min(CHUNK, end - offset), offset))
        if not copied:
            raise OSError(errno.EIO, "the file became shorter while it was copied", file.name)
        offset += copied


def check_free(path: str) -> None:
    """Refuse a name that is taken, before anything is written under it or beside it."""
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)


@contextlib.contextmanager
def new_file(path: str, *, private: bool = True) -> Iterator[BinaryIO]:
    """A file that appears under this name, whole and synced, when the block ends without an error.

    Until then it has no name at all where the file system can do that, so that even a kill leaves nothing behind.
    It is for its owner alone, unless it holds nothing private.
    """
    check_free(path)
    target = Path(path)
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        handle, temporary = _unnamed(target.parent) or tempfile.mkstemp(prefix=_PREFIX, dir=target.parent)
        with os.fdopen(handle, "w+b") as file:
            try:
                yield file
                file.flush()
                if not private:
                    os.fchmod(handle, _usual_mode())
                os.fsync(handle)
                _name(temporary, target.name, folder)
            finally:
                if not temporary.startswith(_DESCRIPTORS):
                    Path(temporary).unlink(missing_ok=True)
        os.fsync(folder)
    finally:
        os.close(folder)


def scratch_file() -> contextlib.AbstractContextManager[BinaryIO]:
    """A file without a name, for what is put together before it goes to standard output."""
    return tempfile.TemporaryFile()


def replace_file(path: str, content: bytes) -> None:
    """Write a small file whole; what stood under its name is there until then."""
    target = Path(path)
    if target.exists() and not target.is_file():
        target.write_bytes(content)  # a pipe or device is written to, not replaced
        return
    handle, temporary = tempfile.mkstemp(prefix=_PREFIX, dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(handle, target.stat().st_mode & 0o777 if target.exists() else _usual_mode())
            os.fsync(handle)
        Path(temporary).replace(target)
    finally:
        Path(temporary).unlink(missing_ok=True)


def binary_output() -> BinaryIO:
    """Standard output for bytes; a terminal gets none."""
    if sys.stdout.isatty():
        raise click.ClickException("Refusing to write binary data to terminal")
    return sys.stdout.buffer


def _pipe(file: BinaryIO, out: BinaryIO, offset: int, length: int) -> None:
    end = offset + length
    while offset < end:
        data = os.pread(file.fileno(), min(CHUNK, end - offset), offset)
        if not data:
            raise OSError(errno.EIO, "the file became shorter while it was read", file.name)
        out.write(data)
        offset += len(data)


def _buffered(descriptor: int) -> BinaryIO:
    """The same open file for reading, without closing it in the end."""
    return os.fdopen(descriptor, "rb", closefd=False)


def _name(temporary: str, name: str, folder: int) -> None:
    """Give a file its name, unless somebody else took that meanwhile: a link refuses where a rename would replace."""
    try:
        os.link(temporary, name, dst_dir_fd=folder, follow_symlinks=True)
    except OSError as error:
        no_links = error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
        if not no_links or temporary.startswith(_DESCRIPTORS):
            raise
        # No links on this file system: take the name with an empty file, which the rename then replaces.
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE, dir_fd=folder))
        os.replace(temporary, name, dst_dir_fd=folder)


def _usual_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _unnamed(folder: Path) -> tuple[int, str] | None:
    """A file without a name in this folder, and where a link to it is made from."""
    try:
        handle = os.open(folder, os.O_TMPFILE | os.O_RDWR, _PRIVATE)
    except OSError:  # not every file system has them; the named kind says what is wrong if that fails too
        return None
    if os.path.lexists(source := f"{_DESCRIPTORS}/{handle}"):
        return handle, source
    os.close(handle)
    return None
