"""The hardware manager that ironic-python-agent loads on a CoreOS ramdisk.

Translates between the agent and the rest: what the agent hands over becomes an order, what went wrong becomes the agent's own
errors. Takes part in inspection (which build runs) and in listing devices and logs; inspection, cleaning and all other steps
stay the agent's own. Where the ramdisk is not CoreOS it says so, and the agent goes on without it.
"""

from __future__ import annotations

import io
import logging
import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from ironic_python_agent import disk_utils, efi_utils, errors, hardware, utils
from oslo_config import cfg

from ingot_agent import VERSION, download, host, order, redaction
from ingot_agent.errors import InstallError
from ingot_agent.installing import Installer
from ingot_agent.order import Surroundings, is_hostname

LOG = logging.getLogger(__name__)
# Network cards that BMCs show to the machine for talking to themselves; nobody provisions through them.
_BMC_DRIVERS: Final = frozenset(("cdc_ether", "cdc_ncm"))
_UEFI_ATTEMPTS: Final = 6
_UEFI_PAUSE: Final = 5.0
_SHORTEST_JOURNAL: Final = 50  # bytes; less is journalctl saying that there is nothing


class CoreOSHardwareManager(hardware.HardwareManager):
    """CoreOS, as the ramdisk that runs and as the system that is installed."""

    HARDWARE_MANAGER_NAME = "ingot_coreos"
    HARDWARE_MANAGER_VERSION = "1"

    def __init__(self) -> None:
        super().__init__()
        self._around = Surroundings.of(os.environ)

    def evaluate_hardware_support(self) -> int:
        if not host.is_there(self._around.root):
            LOG.info("no CoreOS is mounted at %s: nothing to do here", self._around.root)
            return int(hardware.HardwareSupport.NONE)
        return int(hardware.HardwareSupport.SERVICE_PROVIDER)

    def initialize(self) -> None:
        _hide_secrets()
        self._fix_hostname()

    def get_deploy_steps(self, node: Mapping[str, Any], ports: object) -> list[dict[str, Any]]:
        told = {name: {"description": about, "required": False} for name, about in order.ARGUMENTS.items()}
        step = {"step": "install_coreos", "priority": 0, "interface": "deploy"}
        return [step | {"reboot_requested": False, "argsinfo": told}]

    def install_coreos(self, node: Mapping[str, Any], ports: object, **given: Any) -> dict[str, Any]:
        """The deploy step: CoreOS on the node's root device, ready to boot."""
        began = time.monotonic()
        try:
            wanted = order.read(given, node, self._around, _hostname())
            device = self._free_device(node, ports)
            Installer(self._around.root, _opener(), pause=self._around.pause).install(wanted, device)
        except InstallError as error:
            raise errors.DeploymentError(str(error)) from error
        self._announce(device)
        took = round(time.monotonic() - began)
        LOG.info("CoreOS is installed on %s, in %d s", device, took)
        return {"device": device, "seconds": took, "image": str(wanted.image or "the build that ran")}

    def list_hardware_info(self) -> dict[str, Any]:
        """What the other managers found, and which CoreOS runs."""
        info: dict[str, Any] = _of_the_others(self, "list_hardware_info")
        if running := host.build(self._around.root):
            info["coreos"] = {"build": running.version, "name": running.name, "agent": VERSION}
        return info

    def filter_device(self, device: Any) -> Any:
        """Leave out the network cards that lead to the BMC; no opinion about anything else."""
        if isinstance(device, hardware.NetworkInterface) and device.driver in _BMC_DRIVERS:
            return None
        raise errors.IncompatibleHardwareMethodError

    def collect_system_logs(self, io_dict: dict[str, Any], file_list: list[str]) -> None:
        """Add the journal of the CoreOS around us."""
        words = ["journalctl", "--root", str(self._around.root), "--boot", "--no-pager", "--full"]
        try:
            journal = subprocess.run(words, capture_output=True, check=False, timeout=60).stdout
        except (OSError, subprocess.TimeoutExpired) as error:
            LOG.warning("the journal of the host cannot be read: %s", error)
            journal = b""
        if len(journal) < _SHORTEST_JOURNAL:
            raise errors.IncompatibleHardwareMethodError("the host has no journal")
        io_dict["coreos-journal"] = io.BytesIO(journal)

    def _fix_hostname(self) -> None:
        """A machine that the network gave no name gets the one that the ramdisk was made for."""
        name = host.better_hostname(socket.gethostname(), self._around.hostname)
        if name is None:
            return
        try:
            socket.sethostname(name)
            LOG.info("this machine is called %s now", name)
        except OSError as error:
            LOG.warning("this machine cannot be called %s: %s", name, error)

    def _free_device(self, node: Mapping[str, Any], ports: object) -> str:
        """The disk to install on, with no software RAID on it any more."""
        if node.get("automated_clean") is not False:
            try:
                hardware.dispatch_to_managers("delete_configuration", node, ports)
            except Exception as error:
                # Any manager may be asked, and any tool may be missing. coreos-installer says it if the disk is in use still.
                LOG.warning("software RAID could not be removed: %s", error)
            disk_utils.udev_settle()
        return str(hardware.dispatch_to_managers("get_os_install_device", permit_refresh=True))

    def _announce(self, device: str) -> None:
        """Show the new partitions to the kernel, and the new system to the firmware."""
        disk_utils.trigger_device_rescan(device)
        if hardware.dispatch_to_managers("get_boot_info").current_boot_mode != "uefi":
            return
        if not boot_entry(lambda: efi_utils.manage_uefi(device), time.sleep):
            LOG.warning("no UEFI boot loader was found on %s; the firmware has to find one itself", device)


def boot_entry(make: Callable[[], Any], sleep: Callable[[float], None]) -> bool:
    """Make the firmware's boot entry; tried for a while, because partitions may take some time to appear."""
    for attempt in range(1, _UEFI_ATTEMPTS + 1):
        try:
            return bool(make())
        except (errors.CommandExecutionError, errors.DeviceNotFound) as error:
            if attempt == _UEFI_ATTEMPTS:
                raise errors.DeploymentError(
                    f"CoreOS is installed, but the UEFI boot entry could not be made: {error}"
                ) from error
            LOG.warning("attempt %d of %d to make a boot entry: %s", attempt, _UEFI_ATTEMPTS, error)
            sleep(_UEFI_PAUSE)
    raise AssertionError("unreachable")


def _hide_secrets() -> None:
    redaction.guard(logging.getLogger())
    # Where the agent shows a whole command it leaves these out itself, if it is told to.
    known = getattr(utils, "_LARGE_KEYS", None)
    if isinstance(known, frozenset):
        utils._LARGE_KEYS = known | redaction.SECRET_KEYS


def _of_the_others(me: hardware.HardwareManager, method: str) -> Any:
    for manager in hardware.get_managers():
        if manager is me or not hasattr(manager, method):
            continue
        try:
            return getattr(manager, method)()
        except errors.IncompatibleHardwareMethodError:
            continue
    raise errors.HardwareManagerMethodNotFound(method)


def _opener() -> download.Opener:
    verify, certificate = utils.get_ssl_client_options(cfg.CONF)
    return download.opener(download.trust(verify, certificate))


def _hostname() -> str | None:
    name = socket.gethostname()
    return name if is_hostname(name) else None
