"""Small live images of CoreOS, one of every generation and architecture, put together here byte by byte.

They are what the builder of the real ones makes, without what boots: the same files, areas, headers and recipes, with a
kernel, initial RAM disk and root file system of a few kilobytes that are recognisable and otherwise noise.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ingot.formats.coreos.minimal import make_recipe
from ingot.formats.initrd import cpio
from ingot.formats.iso9660 import Iso, build_iso

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AREA = 256 << 10
LABEL = "fedora-coreos-38.20230718.dev.0"


def default_arguments(label: str) -> str:
    """The kernel's arguments in an image as it is published."""
    return f"mitigations=auto,nosmt coreos.liveiso={label} ignition.firstboot ignition.platform.id=metal"


DEFAULT = default_arguments(LABEL)
S390X_ARGUMENTS_AT, S390X_ARGUMENTS = 66688, 896
RECIPE_ROOM = 16 << 10


@dataclass(frozen=True)
class Generation:
    """What an image of some year has; the fields follow the history of the format."""

    name: str
    architecture: str = "x86_64"
    ignition_header: bool = False
    arguments_header: bool = False
    arguments_json: bool = True
    filling_in_json: bool = False
    ignition_json: bool = True
    recipe: bool = True
    features: str = "all"

    @property
    def arguments(self) -> bool:
        return self.arguments_header or self.arguments_json

    @property
    def network(self) -> bool:
        return self.features != "none"


GENERATIONS = [
    Generation(
        "2020-09",
        ignition_header=True,
        arguments_json=False,
        ignition_json=False,
        recipe=False,
        features="none",
    ),
    Generation(
        "2021-01",
        ignition_header=True,
        arguments_header=True,
        arguments_json=False,
        ignition_json=False,
        recipe=False,
        features="none",
    ),
    Generation(
        "2021-09",
        ignition_header=True,
        arguments_header=True,
        ignition_json=False,
        recipe=False,
        features="none",
    ),
    Generation("2021-12", ignition_header=True, arguments_header=True, ignition_json=False, features="first"),
    Generation("2022-02", ignition_json=False, features="first"),
    Generation("2022-09", ignition_json=False),
    Generation("2023-03"),
    Generation("2023-03-s390x", "s390x", arguments_json=False),
    Generation("2023-07", filling_in_json=True),
    Generation("2023-07-s390x", "s390x", filling_in_json=True),
    Generation("2023-07-aarch64", "aarch64", filling_in_json=True),
    Generation("2023-07-ppc64le", "ppc64le", filling_in_json=True),
]
NEWEST = next(generation for generation in GENERATIONS if generation.name == "2023-07")
BY_NAME = {generation.name: generation for generation in GENERATIONS}

_FEATURES: dict[str, dict[str, Any]] = {
    "first": {"installer-config": True, "live-initrd-network": True},
    "all": {
        "installer-config": True,
        "installer-config-directives": {"append-karg": True, "console": True, "copy-network": True},
        "live-initrd-network": True,
    },
}
_LOADERS = {
    "x86_64": ("/EFI/fedora/grub.cfg", "/isolinux/isolinux.cfg"),
    "aarch64": ("/EFI/fedora/grub.cfg",),
    "ppc64le": ("/boot/grub/grub.cfg",),
}


def noise(seed: str, size: int) -> bytes:
    return hashlib.shake_256(seed.encode()).digest(size)


def live_initrd(generation: Generation = NEWEST, *, label: str = LABEL) -> bytes:
    """The initial RAM disk of a live system: an archive that is not compressed, then one that is."""
    early = cpio.entry_bytes("early_cpio", cpio.REGULAR | 0o644, b"1\n") + cpio.trailer()
    members = [
        cpio.entry_bytes("etc", cpio.DIRECTORY | 0o755),
        cpio.entry_bytes("etc/coreos-live-initramfs", cpio.REGULAR | 0o644, label.encode() + b"\n"),
        cpio.entry_bytes(
            "etc/coreos-live-want-rootfs", cpio.REGULAR | 0o644, stream_hash(root_file_system(label))
        ),
    ]
    if generation.network:
        features = json.dumps(_FEATURES[generation.features]).encode()
        members += [
            cpio.entry_bytes("etc/coreos", cpio.DIRECTORY | 0o755),
            cpio.entry_bytes("etc/coreos/features.json", cpio.REGULAR | 0o644, features),
        ]
    packed = gzip.compress(b"".join(members) + cpio.trailer(), mtime=0)
    return early + bytes(-len(early) % 512) + packed + bytes(-len(packed) % 4)


def root_file_system(label: str = LABEL) -> bytes:
    """An archive that is not compressed, with the squashfs where the live system looks for it, and the build it is of."""
    image = b"hsqs" + noise(f"rootfs of {label}", 60_000)
    return (
        cpio.entry_bytes("root.squashfs", cpio.REGULAR | 0o644, image)
        + cpio.entry_bytes("etc", cpio.DIRECTORY | 0o755)
        + cpio.entry_bytes("etc/coreos-live-rootfs", cpio.REGULAR | 0o644, label.encode() + b"\n")
        + cpio.trailer()
    )


def stream_hash(content: bytes, size: int = 2 << 20) -> bytes:
    """What the initial RAM disk wants the root file system to be: one digest for each part of it."""
    parts = (content[at : at + size] for at in range(0, len(content), size))
    return f"stream-hash sha256 {size}\n".encode() + b"".join(
        hashlib.sha256(part).hexdigest().encode() + b"\n" for part in parts
    )


def live_image(
    generation: Generation = NEWEST,
    lies: Mapping[str, Mapping[str, object]] | None = None,
    *,
    label: str = LABEL,
    ballast: int = 0,
) -> bytes:
    """A live image of a build as it is published, or with other values in the JSON files that are named.

    With so many bytes of ballast before the files that matter: real ones lie far from the start.
    """
    files = _files(generation, label)
    if ballast:
        files = {"/ballast": bytes(ballast), **files}
    for path, values in (lies or {}).items():
        files[path] = json.dumps({**json.loads(files[path]), **values}).encode()
    made = bytearray(_built(files, label))
    if generation.arguments_header or generation.ignition_header:
        _write_headers(made, generation, label)
    if generation.recipe:
        _write_recipe(made, files, label)
    return bytes(made)


def minimal_image(generation: Generation = NEWEST, *, label: str = LABEL) -> bytes:
    """The minimal image that a recipe leads to, before its kernel arguments are changed."""
    return _built(_without_rootfs(_files(generation, label)), label)


def _files(generation: Generation, label: str) -> dict[str, bytes]:
    arguments = default_arguments(label)
    files = {
        "/images/pxeboot/vmlinuz": noise("kernel", 30_000),
        "/images/pxeboot/initrd.img": live_initrd(generation, label=label),
        "/images/pxeboot/rootfs.img": root_file_system(label),
        "/empty": b"",
    }
    places: list[dict[str, Any]] = []
    if generation.architecture == "s390x":
        ignition = _add_s390x(files, arguments)
        places.append({"offset": S390X_ARGUMENTS_AT, "path": "images/cdboot.img", "pad": "\0", "end": "\0"})
        size = S390X_ARGUMENTS
    else:
        files["/images/ignition.img"] = bytes(AREA)
        ignition = {"file": "images/ignition.img"}
        size = len(arguments) + 1024
        for path in _LOADERS[generation.architecture]:
            head = b"linux /images/pxeboot/vmlinuz " if "grub" in path else b"append initrd=/images/x "
            area = (
                (arguments + "\n").ljust(size, "#").encode()
                if generation.arguments
                else arguments.encode() + b"\n"
            )
            files[path] = b"set timeout=5\n" + head + area + b"# COREOS_KARG_EMBED_AREA\ninitrd /images/x\n"
            place: dict[str, Any] = {"offset": 14 + len(head), "path": path.lstrip("/")}
            places.append({**place, **({"pad": "#", "end": "\n"} if generation.filling_in_json else {})})
    if generation.arguments_header:
        files["/.cmdline"] = (arguments + "\n").ljust(size, "#").encode()
    if generation.arguments_json:
        described = {"default": arguments, "files": places, "size": size}
        files["/coreos/kargs.json"] = json.dumps(described, indent=2, sort_keys=True).encode() + b"\n"
    if generation.ignition_json:
        files["/coreos/igninfo.json"] = json.dumps(ignition, indent=2, sort_keys=True).encode() + b"\n"
    if generation.network:
        files["/coreos/features.json"] = json.dumps(_FEATURES[generation.features]).encode() + b"\n"
    if generation.recipe:
        files["/coreos/miniso.dat"] = bytes(RECIPE_ROOM)
    return files


def _add_s390x(files: dict[str, bytes], arguments: str) -> dict[str, Any]:
    """Kernel, arguments, initial RAM disk and area in one file, as the firmware loads it."""
    head = bytearray(noise("cdboot", 100_000))
    area = arguments.encode().ljust(S390X_ARGUMENTS, b"\0")
    head[S390X_ARGUMENTS_AT : S390X_ARGUMENTS_AT + S390X_ARGUMENTS] = area
    front = bytes(head) + files["/images/pxeboot/initrd.img"]
    files["/images/cdboot.img"] = front + bytes(AREA) + b"tail"
    return {"file": "images/cdboot.img", "length": AREA, "offset": len(front)}


def _built(files: dict[str, bytes], label: str) -> bytes:
    image = build_iso(files, label=label, made_at=WHEN)
    return image + bytes(-len(image) % (1 << 16))  # isohybrid pads too


def _without_rootfs(files: dict[str, bytes]) -> dict[str, bytes]:
    left_out = ("/images/pxeboot/rootfs.img", "/coreos/miniso.dat")
    return {path: content for path, content in files.items() if path not in left_out}


def _write_headers(image: bytearray, generation: Generation, label: str) -> None:
    iso = Iso(io.BytesIO(bytes(image)), plain_names=True)
    area = iso.entry("IMAGES/IGNITION.IMG")
    image[32744:32768] = struct.pack("<8sQQ", b"coreiso+", area.offset, area.size)
    if not generation.arguments_header:
        return
    offsets = [iso.entry(path.upper()).offset + 14 for path in _LOADERS[generation.architecture]]
    heads = (len(b"linux /images/pxeboot/vmlinuz "), len(b"append initrd=/images/x "))
    places = [offset + head for offset, head in zip(offsets, heads, strict=True)] + [0] * 4
    size = len(default_arguments(label)) + 1024
    image[32672:32744] = struct.pack("<8sQQ6Q", b"coreKarg", size, iso.entry("_CMDLINE").offset, *places)


def _write_recipe(image: bytearray, files: dict[str, bytes], label: str) -> None:
    full = Iso(io.BytesIO(bytes(image)), plain_names=True)
    # The minimal image is built beside the full one, before the recipe is known.
    minimal = Iso(io.BytesIO(_built(_without_rootfs(files), label)), plain_names=True)
    recipe = make_recipe(full, minimal, maker="tests")
    assert len(recipe) <= RECIPE_ROOM
    at = full.entry("COREOS/MINISO.DAT").offset
    image[at : at + len(recipe)] = recipe
