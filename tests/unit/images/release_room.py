"""Release payloads to try things with: small ISO images, the metadata of their stream, a payload that is built of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ingot.images.release.building import Ingredients, StreamFile, build
from ingot.images.release.layout import Layout
from live_images import BY_NAME, LABEL, live_image

GENERATIONS = {
    "x86_64": BY_NAME["2023-07"],
    "aarch64": BY_NAME["2023-07-aarch64"],
    "ppc64le": BY_NAME["2023-07-ppc64le"],
    "s390x": BY_NAME["2023-07-s390x"],
}
TWO = ("x86_64", "aarch64")


@cache
def iso_of(architecture: str, label: str) -> bytes:
    """The live ISO image of a release."""
    return live_image(GENERATIONS[architecture], label=label)


@dataclass(frozen=True)
class Stream:
    """ISO images in a folder, and what a stream says about them."""

    isos: Mapping[str, Path]
    file: Path

    @property
    def ingredients(self) -> dict[str, Ingredients]:
        return {
            architecture: Ingredients(iso=path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
            for architecture, path in self.isos.items()
        }


def publish(folder: Path, architectures: tuple[str, ...] = TWO, label: str = LABEL) -> Stream:
    """The ISO images of a release and its stream metadata, as `ingot release fetch` leaves them in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    isos, described = {}, {}
    for architecture in architectures:
        content = iso_of(architecture, label)
        path = folder / f"{label}-live-iso.{architecture}.iso"
        path.write_bytes(content)
        isos[architecture] = path
        disk = {
            "location": f"https://builds.example/{path.name}",
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        described[architecture] = {
            "artifacts": {"metal": {"release": label, "formats": {"iso": {"disk": disk}}}}
        }
    document = {
        "stream": "stable",
        "metadata": {"last-modified": "2026-07-09T10:00:00Z"},
        "architectures": described,
    }
    file = folder / "coreos-stream.json"
    file.write_text(json.dumps(document))
    return Stream(isos, file)


def payload_in(folder: Path, architectures: tuple[str, ...] = TWO, label: str = LABEL) -> Layout:
    """A payload, without our tool in it."""
    stream = publish(folder.parent / f"{folder.name}-isos", architectures, label)
    layout = Layout(folder)
    build(layout, stream.ingredients, StreamFile(stream.file.read_bytes()))
    return layout


def files_in(folder: Path) -> dict[str, bytes]:
    """Everything that is in a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def flip(path: Path, at: int) -> None:
    """Damage one bit of a file."""
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
