"""The attempts to install: each from the beginning, on a disk that the one before left without partitions.

Owns what is put below the root of the running CoreOS (the Ignition config and keyfiles, readable by root alone, removed
afterwards) and the coreos-installer process. Blocks until the disk is written or nothing can be done any more. Leaves the choice
of the disk, and what the firmware is told afterwards, to `manager`.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ingot_agent import command, download, ignition
from ingot_agent.checksum import Digest, found_in
from ingot_agent.errors import Failed, Hopeless
from ingot_agent.order import Image, Order
from ingot_agent.relay import Relay
from ingot_agent.transcript import Progress, Transcript, is_hopeless, progress

LOG = logging.getLogger(__name__)
ATTEMPTS: Final = 3
_CANNOT_RUN: Final = (125, 126, 127)  # chroot's own
_QUIET: Final = 10.0  # seconds between two lines about progress


@dataclass(frozen=True, slots=True)
class _Kept:
    """Paths as coreos-installer sees them; None for what there is not."""

    ignition: str | None = None
    network: str | None = None


@dataclass(frozen=True, slots=True)
class Installer:
    """Installs on a device of the machine whose CoreOS is below `root`."""

    root: Path
    opened: download.Opener
    environment: Mapping[str, str] = field(default_factory=lambda: command.ENVIRONMENT)
    pause: float = 10.0
    sleep: Callable[[float], None] = time.sleep

    def install(self, order: Order, device: str) -> None:
        """Write the order to the device; raises Refused, Failed or Hopeless, and a disk that was begun cannot boot."""
        config = ignition.config(order.ignition, hostname=order.hostname, ssh_keys=order.ssh_keys)
        with self._kept(config, order.keyfiles) as kept:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    return self._attempt(order, device, kept)
                except Hopeless:
                    raise
                except Failed as error:
                    if attempt == ATTEMPTS:
                        raise Failed(f"{error} (attempt {attempt} of {ATTEMPTS})") from error
                    LOG.warning("attempt %d of %d to install CoreOS failed: %s", attempt, ATTEMPTS, error)
                    self.sleep(self.pause * attempt)

    def _attempt(self, order: Order, device: str, kept: _Kept) -> None:
        with self._relay(order.image) as relay:
            words = command.install(
                order,
                root=self.root,
                device=device,
                image_url=relay.url if relay else None,
                ignition_file=kept.ignition,
                network_folder=kept.network,
            )
            spelled = {relay.url: str(order.image)} if relay else {}
            what = str(order.image) if order.image else "the build that runs"
            LOG.info("installing CoreOS on %s: %s", device, what)
            code, heard = self._run(words, Transcript(spelled))
            if relay and code == 0 and not relay.verified:
                _make_unbootable(device)  # whatever coreos-installer took for the image
                raise relay.failure or Hopeless(f"coreos-installer did not read the image {order.image}.")
            if relay and relay.failure:
                raise relay.failure
        if code in _CANNOT_RUN:
            raise Hopeless(
                f"coreos-installer cannot be run below {self.root} ({heard.reason()}). "
                "Is this ramdisk CoreOS, with its root file system mounted there?"
            )
        if code:
            kind = Hopeless if is_hopeless(heard.reason()) else Failed
            raise kind(f"coreos-installer could not install on {device}: {heard.reason()}")

    def _relay(self, image: Image | None) -> Relay | nullcontext[None]:
        if image is None:
            return nullcontext()
        wanted = image.hash
        if not isinstance(wanted, Digest):
            wanted = found_in(download.text_at(wanted.url, self.opened), image.url, wanted)
        return Relay(image.url, wanted, self.opened)

    def _run(self, words: list[str], heard: Transcript) -> tuple[int, Transcript]:
        LOG.debug("running %s", words[:4])
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self.environment,
                text=True,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise Hopeless(f"chroot cannot be run: {error.strerror}.") from error
        with process:
            assert process.stdout is not None
            said = _Said()
            for line in process.stdout:
                said.hear(heard.line(line))
        return process.returncode, heard

    @contextmanager
    def _kept(self, config: bytes | None, keyfiles: Mapping[str, str]) -> Iterator[_Kept]:
        """What coreos-installer reads, while it is needed."""
        if config is None and not keyfiles:
            yield _Kept()
            return
        try:
            folder = Path(tempfile.mkdtemp(prefix="ingot-", dir=self.root / "run"))
        except OSError as error:
            raise Hopeless(f"nothing can be written below {self.root / 'run'}: {error.strerror}.") from error
        try:
            inside = "/" + str(folder.relative_to(self.root))
            if config is not None:
                _write(folder / "config.ign", config)
            if keyfiles:
                (folder / "network").mkdir(mode=0o700)
            for name, text in keyfiles.items():
                _write(folder / "network" / name, text.encode())
            yield _Kept(
                ignition=f"{inside}/config.ign" if config is not None else None,
                network=f"{inside}/network" if keyfiles else None,
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _write(file: Path, content: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(content)


def _make_unbootable(device: str) -> None:
    """Overwrite where firmware and kernel look for something to boot."""
    try:
        with Path(device).open("r+b", buffering=0) as disk:
            disk.write(bytes(1 << 20))
            os.fsync(disk.fileno())
    except OSError as error:
        raise Hopeless(
            f"an image that was not verified is on {device}, and cannot be removed: {error}"
        ) from error


class _Said:
    """What coreos-installer says, in the agent's log: all of it for those who look closely, how far it is for everybody."""

    def __init__(self) -> None:
        self._told: Progress | None = None
        self._when = float("-inf")

    def hear(self, line: str) -> None:
        now = progress(line)
        if now is None:
            LOG.debug("coreos-installer: %s", line)
        elif self._is_news(now):
            self._told, self._when = now, time.monotonic()
            LOG.info("install_coreos: %s of the image written", now)

    def _is_news(self, now: Progress) -> bool:
        ended = now.percent == 100 and (self._told is None or self._told.percent != 100)
        return ended or time.monotonic() - self._when >= _QUIET
