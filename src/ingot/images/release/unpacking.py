"""Making files of a payload, for those who need files: ISO images, kernels, initial RAM disks, root file systems.

    TARGET/releases/KEY.N/  everything of one release, and its stamp, which is written last
    TARGET/current          a link to the release that counts; `previous` to the one before
    TARGET/NAME             links through `current`: coreos-ARCH.iso, coreos-ARCH-vmlinuz, …, and the names that Ironic's
                            configuration has, ironic-python-agent.kernel, …, also with _ARCH

A release is made beside the one that counts, verified, and then put in its place by renaming one link: who serves the folder
hands out files of the old release or of the new one, never of both, and no name ever leads nowhere. The key is the hash of all
that the files depend on (ISO images, kernel arguments, which files, version of our tool), so a change of any of it makes a new
release. A stamp counts only when every file still has the size and hash that it says. Releases before the previous one go.
Several may unpack into the same folder at once: they take turns, and who comes second finds the work done.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

import msgspec

from ingot.images.fetching import Progress
from ingot.images.fetching.partial import sync_folder
from ingot.images.release.errors import PayloadDamaged, PayloadError, ReleaseError
from ingot.images.release.extracting import Extract, Kind, Parts, extracts_of, write_extract
from ingot.images.release.payload import Payload
from ingot.images.release.tool import this_architecture, tool_version
from ingot.trust.files import alone_in, write_public

RELEASES: Final = "releases"
CURRENT: Final = "current"
PREVIOUS: Final = "previous"
STAMP: Final = "stamp.json"
_ALIAS: Final = "ironic-python-agent"
_HALF: Final = ".ingot-link"
"""The end of a link's name while it is not in its place."""

_RELEASE: Final = re.compile(r"[0-9a-f]{16}\.[0-9]+", re.ASCII)
"""How our folders in `releases` are called; what else is there is not ours."""

Tell = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is wanted of a payload."""

    architectures: Sequence[str] = ()
    """None: all that it has."""
    parts: Parts = Parts.ALL
    arguments: Sequence[str] = ()
    """Appended to the kernel arguments of the ISO images, one by one."""
    own_architecture: str = field(default_factory=this_architecture)
    """Whose files have the names without an architecture."""


class StampedFile(msgspec.Struct, frozen=True):
    size: int
    sha256: str


class Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """What a release is made from, and what it consists of."""

    key: str
    tool: str
    parts: str
    arguments: list[str]
    isos: dict[str, str]
    """By architecture, the hash of the ISO image in the payload."""
    versions: dict[str, str]
    files: dict[str, StampedFile]
    links: dict[str, str]


@dataclass(frozen=True, slots=True)
class Unpacked:
    folder: Path
    stamp: Stamp
    changed: bool
    """False when all of it was there, and counted."""


def unpack(payload: Payload, target: Path, wish: Wish, tell: Tell = lambda _: None) -> Unpacked:
    """Have the files of a payload in a folder, verified."""
    chosen = _chosen(payload, wish)
    target.mkdir(parents=True, exist_ok=True)
    with alone_in(target):
        _check_ours(target)
        key = _key(payload, chosen, wish)
        found = next(_good(target, key, tell), None)
        made = found or _make(payload, chosen, wish, target, key, tell)
        switched = _switch(target, made[0], made[1])
        _sweep(target)
    return Unpacked(made[0], made[1], changed=found is None or switched)


def check_unpacked(target: Path, tell: Tell = lambda _: None) -> Stamp:
    """Read everything that counts in a folder again and compare it with its stamp."""
    release = target / CURRENT
    stamp = _stamp(release)
    if stamp is None:
        raise PayloadError(
            f"{target} holds no release that was unpacked whole. Unpack one with `ingot release unpack`"
        )
    wrong = next(_differences(release, stamp, tell), None)
    if wrong is not None:
        raise PayloadDamaged(
            f"{wrong}. Unpack the payload again; a release that is whole takes the place of this one"
        )
    return stamp


def _chosen(payload: Payload, wish: Wish) -> list[str]:
    chosen = sorted(set(wish.architectures or payload.images))
    for architecture in chosen:
        payload.image(architecture)
    return chosen


def _key(payload: Payload, chosen: Sequence[str], wish: Wish) -> str:
    depends_on = {
        "tool": tool_version(),
        "parts": wish.parts.value,
        "arguments": list(wish.arguments),
        "own": wish.own_architecture,
        "isos": {architecture: payload.images[architecture].sha256 for architecture in chosen},
    }
    return hashlib.sha256(msgspec.json.encode(depends_on, order="deterministic")).hexdigest()


def _good(target: Path, key: str, tell: Tell) -> Iterator[tuple[Path, Stamp]]:
    """Releases with this key that are whole."""
    for release in sorted((target / RELEASES).glob(f"{key[:16]}.*")):
        stamp = _stamp(release)
        if stamp is not None and stamp.key == key and not any(_differences(release, stamp, tell)):
            yield release, stamp


def _stamp(release: Path) -> Stamp | None:
    try:
        return msgspec.json.decode((release / STAMP).read_bytes(), type=Stamp)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None


def _differences(release: Path, stamp: Stamp, tell: Tell) -> Iterator[str]:
    for name, said in stamp.files.items():
        path = release / name
        if path.is_symlink() or not path.is_file() or path.stat().st_size != said.size:
            yield f"{path} is not as it was unpacked"
        elif (found := _hashed(path, said.size, tell)) != said.sha256:
            yield f"{path} was changed: its sha256 is {found}, not {said.sha256}"
    for name, leads_to in stamp.links.items():
        path = release / name
        if not path.is_symlink() or str(path.readlink()) != leads_to:
            yield f"{path} is not the link that it was"


def _make(
    payload: Payload, chosen: Sequence[str], wish: Wish, target: Path, key: str, tell: Tell
) -> tuple[Path, Stamp]:
    extracts: list[tuple[str, Extract]] = []
    for architecture in chosen:
        payload.verify(
            architecture, _teller(f"verifying {architecture}", _weight(payload, architecture), tell)
        )
        image = payload.images[architecture]
        extracts += [(architecture, one) for one in extracts_of(image, wish.parts, wish.arguments)]
    release = _new_folder(target, key)
    try:
        stamp = Stamp(
            key=key,
            tool=tool_version(),
            parts=wish.parts.value,
            arguments=list(wish.arguments),
            isos={architecture: payload.images[architecture].sha256 for architecture in chosen},
            versions={architecture: payload.images[architecture].version for architecture in chosen},
            files={name: made for _, one in extracts for name, made in _written(one, release, tell)},
            links=dict(_links(extracts, wish.own_architecture)),
        )
        for name, leads_to in stamp.links.items():
            (release / name).symlink_to(leads_to)
        write_public(release / STAMP, msgspec.json.format(msgspec.json.encode(stamp)) + b"\n")
        sync_folder(release)
        sync_folder(release.parent)
    except BaseException:
        shutil.rmtree(release, ignore_errors=True)
        raise
    return release, stamp


def _written(extract: Extract, release: Path, tell: Tell) -> Iterator[tuple[str, StampedFile]]:
    """A file, and beside an ISO image its hash, so that the folder can be opened as a payload itself."""
    path = release / extract.name
    write_extract(
        extract, path, lambda done: tell(Progress(name=extract.name, done=done, total=extract.source.length))
    )
    size = path.stat().st_size
    # What counts is what is there now, not what was meant to be written.
    found = _hashed(path, size, tell)
    if extract.sha256 not in (None, found):
        raise PayloadDamaged(f"{path} has the sha256 {found} after it was written, not {extract.sha256}")
    yield extract.name, StampedFile(size, found)
    if extract.kind is Kind.ISO:
        write_public(release / f"{extract.name}.sha256", found.encode())
        yield f"{extract.name}.sha256", StampedFile(len(found), hashlib.sha256(found.encode()).hexdigest())


def _links(extracts: Sequence[tuple[str, Extract]], own: str) -> Iterator[tuple[str, str]]:
    """The names that Ironic's configuration has for the files."""
    architectures = {architecture for architecture, _ in extracts}
    plain = own if own in architectures else next(iter(architectures)) if len(architectures) == 1 else None
    for architecture, extract in extracts:
        if extract.kind is not None:
            yield f"{_ALIAS}_{architecture}.{extract.kind}", extract.name
            if architecture == plain:
                yield f"{_ALIAS}.{extract.kind}", extract.name


def _check_ours(target: Path) -> None:
    """Before anything is done: other tools have folders of the same shape, and releases of their own in them."""
    for path in (target / CURRENT, target / PREVIOUS):
        ours = path.is_symlink() and _RELEASE.fullmatch(path.readlink().name)
        if not ours and (path.is_symlink() or path.exists()):
            raise ReleaseError(f"{path} is somebody else's. Unpack the payload into a folder of its own")


def _switch(target: Path, release: Path, stamp: Stamp) -> bool:
    """Make a release the one that counts, in an order in which no name leads nowhere at any moment; False if it did already."""
    names = {*stamp.files, *stamp.links}
    for left_over in target.glob(f".*{_HALF}"):
        left_over.unlink()
    for path in target.iterdir():
        if path.is_symlink() and path.readlink().parts[:1] == (CURRENT,) and path.name not in names:
            path.unlink()
    wanted, before = f"{RELEASES}/{release.name}", target / CURRENT
    switched = not before.is_symlink() or str(before.readlink()) != wanted
    if switched:
        if before.is_symlink() and before.exists():
            _link(target / PREVIOUS, str(before.readlink()))
        _link(before, wanted)
    for name in sorted(names):
        path = target / name
        if not path.is_symlink() or str(path.readlink()) != f"{CURRENT}/{name}":
            _link(path, f"{CURRENT}/{name}")
    sync_folder(target)
    return switched


def _sweep(target: Path) -> None:
    kept = {(target / link).readlink().name for link in (CURRENT, PREVIOUS) if (target / link).is_symlink()}
    for release in (target / RELEASES).iterdir():
        if release.name not in kept and _RELEASE.fullmatch(release.name):
            shutil.rmtree(release)


def _link(path: Path, leads_to: str) -> None:
    if path.is_dir() and not path.is_symlink():
        raise ReleaseError(f"{path} is a folder, where a link has to be. Move it away")
    temporary = path.with_name(f".{path.name}{_HALF}")
    temporary.symlink_to(leads_to)
    temporary.replace(path)


def _new_folder(target: Path, key: str) -> Path:
    for number in count(1):
        folder = target / RELEASES / f"{key[:16]}.{number}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue  # one that is not whole, and perhaps served all the same until this one takes its place
        return folder
    raise AssertionError("there is always a next number")


def _hashed(path: Path, size: int, tell: Tell) -> str:
    hasher, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            hasher.update(chunk)
            done += len(chunk)
            tell(Progress(name=f"verifying {path.name}", done=done, total=size))
    return hasher.hexdigest()


def _teller(name: str, total: int, tell: Tell) -> Callable[[int], None]:
    done = 0

    def more(size: int) -> None:
        nonlocal done
        done += size
        tell(Progress(name=name, done=done, total=total))

    return more


def _weight(payload: Payload, architecture: str) -> int:
    return payload.images[architecture].iso.length
