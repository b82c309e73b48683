"""Builds the agent's container: Debian's tools, the real ironic-python-agent, and ingot-agent, as an OCI layout.

    sudo .venv/bin/python deploy/agent/build.py FOLDER

Needs root (for chroot), Debian's apt, and uv; no container engine. Three layers, so that a change of ours moves kilobytes:

    Debian    packages.txt, without manuals and what a container has no use for
    agent     ironic-python-agent and what it needs, from agent-13.lock with hashes
    ingot     ingot-agent, the configuration

The first two are kept in the user's cache folder, under a name made from everything they depend on; they are built in minutes
once, the rest in seconds. The same inputs make the same digests: times and owners are not taken over from this machine, and
compiled Python is checked by nobody's clock.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ingot.formats.oci import ContainerConfig
from ingot.images.release.assembling import Layer, LayerFile, add_image, add_index, add_layer, tree
from ingot.images.release.layout import Layout
from ingot.services.environment import cache_folder, find_uv, without_ours

HERE: Final = Path(__file__).parent
OURS: Final = HERE.parents[1] / "agent"
LOCK: Final = HERE / "agent-13.lock"
SUITE: Final = "bookworm"
PYTHON: Final = "3.11"  # the suite's
SITE: Final = f"usr/local/lib/python{PYTHON}/dist-packages"  # where the suite's Python looks for what is not of the suite
COMMAND: Final = "usr/local/bin/ironic-python-agent"
_RECIPE: Final = 1  # counted on when the trees in the cache are to be made in another way
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LAUNCHER: Final = """\
#!/usr/bin/python3
from ironic_python_agent.cmd.agent import run

run()
"""
# Left out of packages, and what differs from one build to the next or says something about the machine that built it.
_NO_FILES: Final = (
    "usr/share/doc/*",
    "usr/share/man/*",
    "usr/share/info/*",
    "usr/share/locale/*",
    "usr/share/lintian/*",
)
_NOT_SHIPPED: Final = (
    "dev/",
    "proc/",
    "sys/",
    "run/",
    "tmp/",
    "var/log/",
    "var/cache/",
    "var/lib/apt/",
    "var/tmp/",
)
_NOT_SHIPPED_FILES: Final = frozenset(
    (
        *("etc/resolv.conf", "etc/hostname", "etc/hosts", "etc/.pwd.lock"),
        *("etc/nvme/hostid", "etc/nvme/hostnqn"),  # who a machine is to its storage: each has its own
    )
)

Say = Callable[[str], None]


def build(folder: Path, say: Say = print) -> str:
    """Put the container together in this folder (an OCI layout); returns the digest of the image."""
    debian = _kept("debian", _digest(HERE / "packages.txt"), _debian, say)
    agent = _kept("agent", _digest(LOCK), lambda made, say: _agent(made, debian, say), say)
    layout = Layout(folder)
    with tempfile.TemporaryDirectory() as scratch, layout.writing():
        own = _own(Path(scratch), debian)
        say("assembling the image")
        layers = [
            add_layer(layout, _shipped(debian), made_by=f"mmdebstrap {SUITE}"),
            add_layer(layout, _shipped(agent), made_by=f"ironic-python-agent from {LOCK.name}"),
            add_layer(layout, tree(own), made_by=f"ingot-agent {_version()}"),
        ]
        root = _image(layout, layers)
    return root


def _image(layout: Layout, layers: list[Layer]) -> str:
    config = ContainerConfig(
        env=[f"PATH={_PATH}", "LC_ALL=C.UTF-8"],
        entrypoint=[f"/{COMMAND}", "--config-dir", "/etc/ironic-python-agent"],
        labels={
            "org.opencontainers.image.title": "ironic-python-agent with ingot-agent",
            "org.opencontainers.image.version": _version(),
        },
    )
    architecture = platform.machine()
    image = add_image(layout, layers, architecture=architecture, config=config)
    root = add_index(layout, {architecture: image})
    layout.point_to(root)
    return root.digest


def _kept(name: str, key: str, make: Callable[[Path, Say], None], say: Say) -> Path:
    """A tree from the cache; made when it is not there, and there only when it is whole."""
    folder = cache_folder().with_name("agent-image") / f"{name}-{SUITE}-{platform.machine()}-{key}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not folder.is_dir():
            fresh = folder.with_name(f"{folder.name}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            make(fresh, say)
            fresh.rename(folder)
    return folder


def _digest(inputs: Path) -> str:
    """Changes with the file, and with how it is turned into a tree."""
    recipe = f"{_RECIPE} {SUITE} {PYTHON} {_NO_FILES}".encode()
    return hashlib.sha256(recipe + inputs.read_bytes()).hexdigest()[:16]


def _debian(made: Path, say: Say) -> None:
    say(f"installing {SUITE} (minutes, once)")
    packages = [line for line in (HERE / "packages.txt").read_text().splitlines() if line and line[0] != "#"]
    with tempfile.TemporaryDirectory() as scratch:
        _run(
            *_mmdebstrap(Path(scratch)),
            "--mode=root",
            "--format=directory",
            "--variant=essential",
            f"--include={','.join(packages)}",
            *(f"--dpkgopt=path-exclude=/{pattern}" for pattern in _NO_FILES),
            "--dpkgopt=path-include=/usr/share/doc/*/copyright",
            *("--quiet", SUITE, str(made)),
        )
    _compiled(made, f"/usr/lib/python{PYTHON}", "/usr/lib/python3/dist-packages")


def _mmdebstrap(scratch: Path) -> list[str]:
    """The program, or, where it is not installed, the one in its package."""
    if found := shutil.which("mmdebstrap"):
        return [found]
    tools = scratch / "usr" / "bin"
    _run("apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", "mmdebstrap", cwd=scratch)
    (package,) = scratch.glob("mmdebstrap_*.deb")
    _run("dpkg-deb", "-x", str(package), str(scratch))
    return ["env", f"PATH={tools}:{_PATH}", "mmdebstrap"]  # it calls other programs of its package


def _agent(made: Path, debian: Path, say: Say) -> None:
    say(f"installing ironic-python-agent from {LOCK.name}")
    uv = find_uv()
    if uv is None:
        raise SystemExit("uv is not installed; `make setup` brings it.")
    _run(
        # Copies: a link into uv's cache would be one file with every other environment of this machine.
        *(
            uv,
            "pip",
            "install",
            "--quiet",
            "--link-mode",
            "copy",
            "--require-hashes",
            "--no-deps",
            "-r",
            str(LOCK),
        ),
        *("--python", sys.executable, "--python-version", PYTHON, "--target", str(made / SITE)),
    )
    # Commands of the packages carry the path of this machine's Python; the one that is needed is written anew.
    shutil.rmtree(made / SITE / "bin", ignore_errors=True)
    shutil.rmtree(made / SITE / "ironic_python_agent" / "tests", ignore_errors=True)
    for leftover in (made / SITE / ".lock", *(made / SITE).glob("*.dist-info/direct_url.json")):
        leftover.unlink(missing_ok=True)
    command = made / COMMAND
    command.parent.mkdir(parents=True)
    command.write_text(_LAUNCHER)
    command.chmod(0o755)
    _compiled_apart(made, debian)


def _own(scratch: Path, debian: Path) -> Path:
    """ingot-agent and the configuration, as a tree."""
    own, wheels = scratch / "own", scratch / "wheels"
    wheels.mkdir()
    program = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    _run(sys.executable, "-c", program, str(wheels), cwd=OURS)
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(own / SITE)
    config = own / "etc" / "ironic-python-agent" / "00-defaults.conf"
    config.parent.mkdir(parents=True)
    shutil.copyfile(HERE / config.name, config)
    (own / "mnt" / "coreos").mkdir(parents=True)
    _compiled_apart(own, debian)
    return own


def _compiled(root: Path, *folders: str) -> None:
    """Compile Python below the root with its own interpreter; what is there is dropped, because it is bound to times."""
    for cache in root.rglob("__pycache__"):
        shutil.rmtree(cache)
    words = ("python3", "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash")
    # Some files of the standard library are meant not to compile; they are not needed.
    _run("chroot", str(root), *words, *folders, check=False)


def _compiled_apart(made: Path, debian: Path) -> None:
    """Compile a tree that is not in the root yet, with the root's interpreter."""
    place = Path(tempfile.mkdtemp(dir=debian / "tmp"))
    try:
        shutil.copytree(made / SITE, place / SITE, ignore=shutil.ignore_patterns("__pycache__"))
        inside = "/" + str((place / SITE).relative_to(debian))
        words = ("python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash")
        _run("chroot", str(debian), *words, "-s", inside, "-p", f"/{SITE}", inside, check=False)
        shutil.rmtree(made / SITE)
        shutil.move(place / SITE, made / SITE)
    finally:
        shutil.rmtree(place)


def _shipped(root: Path) -> Iterator[LayerFile]:
    for file in tree(root):
        if not file.path.startswith(_NOT_SHIPPED) and file.path not in _NOT_SHIPPED_FILES:
            yield file


def _version() -> str:
    ours = tomllib.loads((OURS / "pyproject.toml").read_text())["project"]["version"]
    theirs = (HERE / "agent-13.in").read_text().strip().partition("==")[2]
    return f"{theirs}-ingot-{ours}"


def _run(*words: str, cwd: Path | None = None, check: bool = True) -> None:
    environment = without_ours(os.environ) | {
        "SOURCE_DATE_EPOCH": "0",
        "LC_ALL": "C.UTF-8",
        "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
    }
    ended = subprocess.run(
        words, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if check and ended.returncode:
        raise SystemExit(f"{words[0]} failed ({ended.returncode}): {(ended.stderr or ended.stdout)[-2000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the agent's container as an OCI layout.")
    parser.add_argument("folder", type=Path, help="where the layout is made or changed")
    if os.geteuid() != 0:
        parser.error("only root can build it: packages are installed in a folder with chroot")
    print(build(parser.parse_args().folder))


if __name__ == "__main__":
    main()
