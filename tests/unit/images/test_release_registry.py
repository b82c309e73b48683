"""A payload in a real registry (Debian's docker-registry), over TLS and with a password; kills on both sides."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from release_room import files_in, payload_in, publish

from ingot.cli.main import main
from ingot.formats.oci import parse_reference
from ingot.images.fetching import Patience, Progress
from ingot.images.release import Payload
from ingot.images.release.assembling import LayerFile
from ingot.images.release.building import Ingredients, build
from ingot.images.release.layout import Layout
from ingot.images.release.mirroring import mirror
from ingot.images.release.places import FolderPlace, RegistryPlace
from ingot.images.release.registry import RegistrySession, RegistrySettings, find_pull_secrets
from ingot.trust import Authority, Secret, htpasswd_line
from live_images import noise
from moving_files import sizes_in

PROGRAM = shutil.which("docker-registry")
pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="docker-registry is not on PATH (`make setup` fetches it, from Debian's packages)"
)
PATIENCE = 60.0
LARGE = 32 << 20


class RealRegistry:
    """A registry process on a port of the kernel's choice, which it keeps when it is started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.storage = folder / "storage"
        authority = Authority(folder / "ca")
        self.ca = authority.ca_file
        certificate = authority.issue(folder / "tls", "registry", ["127.0.0.1", "localhost"])
        (folder / "htpasswd").write_text(htpasswd_line("ingot", Secret("right"), rounds=4) + "\n")
        self._settings = {
            "version": "0.1",
            "log": {"level": "info", "accesslog": {"disabled": True}},
            "storage": {"filesystem": {"rootdirectory": str(self.storage)}},
            "auth": {"htpasswd": {"realm": "registry", "path": str(folder / "htpasswd")}},
            "http": {
                "addr": "127.0.0.1:0",
                "secret": "the same after a restart",
                "tls": {"certificate": str(certificate.cert_file), "key": str(certificate.key_file)},
            },
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.auth_file = folder / "auth.json"

    def start(self) -> None:
        assert PROGRAM is not None
        self._settings["http"]["addr"] = f"127.0.0.1:{self.port}"
        config, log = self.folder / "config.yml", self.folder / "log"
        config.write_text(yaml.safe_dump(self._settings))
        with log.open("wb") as out:
            self._process = subprocess.Popen([PROGRAM, "serve", str(config)], stdout=out, stderr=out)
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(r"listening on 127\.0\.0\.1:(\d+), tls", log.read_text())):
            assert self._process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, "the registry does not come up"
            time.sleep(0.05)
        self.port = int(found[1])
        self.log_in("right")

    def log_in(self, password: str) -> None:
        auth = base64.b64encode(f"ingot:{password}".encode()).decode()
        self.auth_file.write_text(json.dumps({"auths": {self.host: {"auth": auth}}}))

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def options(self) -> list[str]:
        return ["--ca", str(self.ca), "--authfile", str(self.auth_file)]

    def stored(self) -> int:
        """How many bytes it holds by now, finished or not."""
        return sum(sizes_in(self.storage, "data"))

    def session(self) -> RegistrySession:
        return RegistrySession(
            RegistrySettings(
                pull_secrets=find_pull_secrets({}, self.auth_file),
                authorities=self.ca,
                patience=Patience(retries=200, first=0.05, longest=0.1),
            )
        )


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[RealRegistry]:
    made = RealRegistry(tmp_path / "registry")
    made.start()
    yield made
    made.kill()


def command(*arguments: object) -> list[str]:
    return [str(Path(sys.executable).with_name("ingot")), "release", *map(str, arguments)]


def ingot(*arguments: object, fails: bool = False) -> str:
    done = CliRunner().invoke(main, ["release", *map(str, arguments)])
    assert (done.exit_code != 0) == fails, done.output
    assert not fails or isinstance(done.exception, SystemExit), "a traceback"
    return done.stderr if fails else done.stdout


def large_payload(folder: Path) -> Layout:
    """A payload that takes a moment to copy."""
    stream = publish(folder.parent / "large-isos", ("x86_64",))
    iso = stream.ingredients["x86_64"]
    tool = [LayerFile("usr/share/large", noise("large", LARGE))]
    layout = Layout(folder)
    build(layout, {"x86_64": Ingredients(iso=iso.iso, sha256=iso.sha256, tool=tool)})
    return layout


def test_to_the_registry_and_back_with_the_commands(registry: RealRegistry, tmp_path: Path) -> None:
    layout = payload_in(tmp_path / "payload")
    digest, name = layout.root().digest, f"{registry.host}/coreos/payload"
    told = json.loads(ingot("push", *registry.options, "-o", "json", layout.folder, f"{name}:44"))
    assert (told["digest"], told["kept"]) == (digest, 0)
    assert "nothing to copy" in ingot("push", *registry.options, layout.folder, f"{name}:44")
    shown = json.loads(ingot("show", *registry.options, "-o", "json", f"{name}:44"))
    assert shown["digest"] == digest
    assert [image["architecture"] for image in shown["images"]] == ["aarch64", "x86_64"]
    assert "verified" in ingot("verify", *registry.options, f"{name}@{digest}")
    ingot("pull", *registry.options, f"{name}@{digest}", tmp_path / "back")
    assert files_in(tmp_path / "back") == files_in(layout.folder)
    assert "nothing to copy" in ingot("pull", *registry.options, f"{name}:44", tmp_path / "back")
    # And to another repository, without a byte on the way.
    ingot("mirror", *registry.options, f"{name}:44", f"{registry.host}/mirrored/payload:44")
    assert (
        json.loads(ingot("show", *registry.options, "-o", "json", f"{registry.host}/mirrored/payload:44"))[
            "digest"
        ]
        == digest
    )


def test_what_a_person_did_wrong_is_told(registry: RealRegistry, tmp_path: Path) -> None:
    layout = payload_in(tmp_path / "payload", ("x86_64",))
    name = f"{registry.host}/coreos/payload"
    push = ("push", layout.folder, f"{name}:44")
    assert "is not trusted" in ingot(*push, "--authfile", registry.auth_file, fails=True)
    (tmp_path / "nobody.json").write_text('{"auths": {}}')
    told = ingot(*push, "--ca", registry.ca, "--authfile", tmp_path / "nobody.json", fails=True)
    assert "nobody.json has nothing for" in told
    registry.log_in("s3cret")
    told = ingot(*push, *registry.options, fails=True)
    assert "with the credentials in" in told
    assert "s3cret" not in told
    registry.log_in("right")
    assert "coreos/payload has no 44" in ingot(
        "pull", *registry.options, f"{name}:44", tmp_path / "x", fails=True
    )


async def test_a_registry_that_is_killed_in_the_middle_gets_the_rest_when_it_is_back(
    registry: RealRegistry, tmp_path: Path
) -> None:
    layout = large_payload(tmp_path / "payload")
    reference = parse_reference(f"{registry.host}/coreos/payload:44")
    back: list[asyncio.Future[None]] = []

    def kill_once(progress: Progress) -> None:
        """Just when a third of the large blob is over; it comes back by itself."""
        if progress.total == progress.done or progress.done < LARGE // 3 or back:
            return
        registry.kill()
        back.append(asyncio.ensure_future(asyncio.to_thread(registry.start)))

    async with registry.session() as session:
        there, here = RegistryPlace(session, reference), FolderPlace(tmp_path / "back")
        for source, target in ((FolderPlace(layout.folder), there), (there, here)):
            await mirror(source, target, kill_once)
            await back.pop()
    assert files_in(tmp_path / "back") == files_in(layout.folder)


def test_a_copy_that_is_killed_in_the_middle_is_finished_by_the_next(
    registry: RealRegistry, tmp_path: Path
) -> None:
    layout = large_payload(tmp_path / "payload")
    name = f"{registry.host}/coreos/payload:44"

    def killed(arguments: list[object], begun: int, progress: Path | None) -> None:
        process = subprocess.Popen(command(*arguments, *registry.options))
        try:
            deadline = time.monotonic() + PATIENCE
            while process.poll() is None:
                found = registry.stored() if progress is None else _parts(progress)
                if found > begun + LARGE // 4:
                    break
                assert time.monotonic() < deadline
                time.sleep(0.002)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert process.returncode == -signal.SIGKILL, "it was done before it could be killed"

    killed(["push", layout.folder, name], 0, None)
    ingot("push", *registry.options, layout.folder, name)
    killed(["pull", name, tmp_path / "back"], 0, tmp_path / "back")
    had = _parts(tmp_path / "back")
    assert had > LARGE // 4
    assert not (tmp_path / "back" / "index.json").exists()
    told = json.loads(ingot("pull", *registry.options, "-o", "json", name, tmp_path / "back"))
    assert told["digest"] == layout.root().digest
    Payload.open(tmp_path / "back").verify("x86_64")
    assert files_in(tmp_path / "back") == files_in(layout.folder)


def _parts(folder: Path) -> int:
    return sum(sizes_in(folder / "blobs" / "sha256", ".part-*"))
