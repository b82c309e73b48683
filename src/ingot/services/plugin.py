"""Putting the `ingot-ironic` distribution into an environment, from its sources.

The plugin is pure Python and depends on nothing that Ironic does not bring, so installing it is copying a package and writing
the four metadata files that make it a distribution with entry points (PyPA's "recording installed projects"). No build
backend is needed, so this works offline and on a machine that has nothing but an interpreter.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ingot.services.errors import EnvironmentUnavailable

SOURCES_VARIABLE: Final = "INGOT_IRONIC_PLUGIN"
_PACKAGE: Final = "ingot_ironic"


def sources(environment: Mapping[str, str] = os.environ) -> Path:
    """The plugin's source folder: the one named by INGOT_IRONIC_PLUGIN, the one shipped with us, or the checkout's."""
    here = Path(__file__).resolve()
    named = environment.get(SOURCES_VARIABLE)
    places = [Path(named)] if named else [here.parent / "ironic-plugin", here.parents[3] / "ironic-plugin"]
    for place in places:
        if (place / "pyproject.toml").is_file() and (place / "src" / _PACKAGE).is_dir():
            return place
    raise EnvironmentUnavailable(
        f"The sources of the plugin for Ironic (ingot-ironic) are not in {' nor in '.join(map(str, places))}. "
        f"Set {SOURCES_VARIABLE} to the folder ironic-plugin of a checkout."
    )


def digest(folder: Path) -> str:
    """Changes whenever a file of the plugin does."""
    total = hashlib.sha256((folder / "pyproject.toml").read_bytes())
    for file in _modules(folder):
        total.update(f"\0{file.relative_to(folder)}\0".encode())
        total.update(file.read_bytes())
    return total.hexdigest()


def install(folder: Path, site_packages: Path) -> None:
    """Lay the distribution down in this site-packages folder."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    info = site_packages / f"{_PACKAGE}-{project['version']}.dist-info"
    shutil.rmtree(site_packages / _PACKAGE, ignore_errors=True)
    info.mkdir(exist_ok=True)
    written = list(_copied(folder, site_packages))
    for name, text in _metadata(project).items():
        (info / name).write_text(text)
        written.append(info / name)
    lines = [_record_line(file, site_packages) for file in written]
    (info / "RECORD").write_text("".join([*lines, f"{info.name}/RECORD,,\n"]))


def _modules(folder: Path) -> list[Path]:
    return sorted((folder / "src" / _PACKAGE).rglob("*.py"))


def _copied(folder: Path, site_packages: Path) -> Iterator[Path]:
    for file in _modules(folder):
        place = site_packages / file.relative_to(folder / "src")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
        yield place


def _metadata(project: Mapping[str, Any]) -> dict[str, str]:
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in names.items())
        for group, names in project["entry-points"].items()
    ]
    return {
        "METADATA": f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: ingot\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "INSTALLER": "ingot\n",
        "entry_points.txt": "\n".join(groups),
    }


def _record_line(file: Path, site_packages: Path) -> str:
    content = file.read_bytes()
    value = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{file.relative_to(site_packages)},sha256={value},{len(content)}\n"
