"""The parts of one machine, as data for the supervisor.

Owns who listens where, who is told what, and who waits for whom. Credentials are made here before the first part starts, in files
that only their owner can read; a part is told the file, never the value. `make_ready` may be repeated: what is there stays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ingot.cli.parts.state import StateFolder
from ingot.embedded.supervisor import Part, answers, connects, may_be_busy
from ingot.lab import labfile
from ingot.services.settings import IronicPaths, IronicSettings
from ingot.trust import Authority, Certificate, kept_token, write_private

LISTENERS: Final = ("api-server", "ironic", "front", "boot", "images", "lab", "operator")
IRONIC_USER: Final = "ingot"
INSTALL_COREOS: Final = "customDeploy: {method: install_coreos}"
_HERE: Final = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the person asked for."""

    servers: int = 3
    provision: int = 1
    hosts: bool = True
    lab: bool = True
    coreos: Path | None = None
    """What ramdisks are made of: a release payload (a folder), or a live image (a file). None: no CoreOS."""
    network_boot: bool = False
    """Servers may boot over the network."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the parts need to trust each other, on disk."""

    ca_file: Path
    ironic: Certificate
    auth_root: Path
    push_token_file: Path


def make_ready(state: StateFolder) -> Credentials:
    """The CA, Ironic's certificate and password, the push token."""
    authority = Authority(state.ca)
    auth = state.operator / "auth"
    kept_token(auth / "ironic" / "password")
    write_private(auth / "ironic" / "username", IRONIC_USER.encode())
    push_token = state.operator / "push-token"
    kept_token(push_token)
    return Credentials(
        ca_file=authority.ca_file,
        ironic=authority.issue(state.ironic, "ironic", _HERE),
        auth_root=auth,
        push_token_file=push_token,
    )


def parts(state: StateFolder, ports: Mapping[str, int], trusted: Credentials, wishes: Wishes) -> list[Part]:
    """What to run, in the order in which a person reads it."""
    ironic = ironic_settings(state, ports, trusted, wishes)
    planned = [api_server(state, ports, trusted)]
    if wishes.coreos is not None:
        planned.append(images(state, ports, trusted, ironic, wishes.coreos))
    planned += [ironic_service(ironic, trusted), front(ironic, trusted)]
    if wishes.lab:
        planned.append(lab(state, ports, trusted, ironic, wishes))
    planned.append(operator(state, ports, trusted, ironic, wishes))
    return planned


def api_server(state: StateFolder, ports: Mapping[str, int], trusted: Credentials) -> Part:
    port = ports["api-server"]
    return Part(
        name="api-server",
        argv=ingot("api-server", "--state", str(state.path), "--listen", f"127.0.0.1:{port}"),
        probe=answers(f"https://127.0.0.1:{port}/readyz", trusted.ca_file),
        address=f"https://127.0.0.1:{port}",
    )


def images(
    state: StateFolder, ports: Mapping[str, int], trusted: Credentials, ironic: IronicSettings, coreos: Path
) -> Part:
    port = ports["images"]
    return Part(
        name="images",
        argv=ingot(
            *("operator", "--state", str(state.path), "--controllers", "images"),
            *("--images-listen", f"127.0.0.1:{port}"),
        ),
        environment={
            "KUBECONFIG": str(state.kubeconfig),
            # Whom the agent in a ramdisk calls, and who vouches for that.
            "IRONIC_BASE_URL": ironic.base_url,
            "IRONIC_CACERT_FILE": str(trusted.ca_file),
            **(
                {"INGOT_RELEASE_PAYLOAD": "", "DEPLOY_ISO": str(coreos)}
                if coreos.is_file()
                else {"INGOT_RELEASE_PAYLOAD": str(coreos)}
            ),
        },
        after=("api-server",),
        ready_line="operator ready",
        probe=connects(port, trusted.ca_file),
        address=f"https://127.0.0.1:{port}",
    )


def ironic_settings(
    state: StateFolder, ports: Mapping[str, int], trusted: Credentials, wishes: Wishes
) -> IronicSettings:
    return IronicSettings(
        paths=IronicPaths.below(state.ironic),
        cert_file=trusted.ironic.cert_file,
        key_file=trusted.ironic.key_file,
        ca_file=trusted.ca_file,
        username=IRONIC_USER,
        password_file=trusted.auth_root / "ironic" / "password",
        # Machines reach the front server; Ironic itself is for the operator.
        reverse_proxy=True,
        private_port=str(ports["ironic"]),
        listen_port=ports["front"],
        network_boot=wishes.network_boot,
        boot_port=ports["boot"],
        use_coreos=wishes.coreos is not None,
        # Simulated servers and the depot of images have certificates of this installation.
        bmc_ca_file=trusted.ca_file,
        webserver_ca_file=trusted.ca_file,
        push_url=f"https://127.0.0.1:{ports['operator']}/v1/push",
        push_ca_file=trusted.ca_file,
        push_token_file=trusted.push_token_file,
    )


def _of(settings: IronicSettings) -> dict[str, str]:
    """What the service reads. A shell may tune it, but not move it: where it is, all parts have to agree."""
    return {"IRONIC_IP": settings.ip, **settings.to_environment()}


def ironic_service(settings: IronicSettings, trusted: Credentials) -> Part:
    return Part(
        name="ironic",
        argv=ingot("service", "ironic"),
        environment=_of(settings),
        # Its main process lives on when the one that serves could not start: only an answer proves anything.
        # With a thousand hosts it may take minutes until somebody has the time to answer.
        probe=may_be_busy(
            answers(f"{settings.api_url}/", trusted.ca_file),
            connects(urlsplit(settings.api_url).port or settings.listen_port, trusted.ca_file),
            busy_for=600.0,
        ),
        address=settings.api_url,
        grace=20.0,
    )


def front(settings: IronicSettings, trusted: Credentials) -> Part:
    return Part(
        name="front",
        argv=ingot("service", "front"),
        environment=_of(settings),
        ready_line="front ready",
        probe=answers(f"{settings.base_url}/healthz", trusted.ca_file),
        address=settings.base_url,
    )


def lab(
    state: StateFolder,
    ports: Mapping[str, int],
    trusted: Credentials,
    ironic: IronicSettings,
    wishes: Wishes,
) -> Part:
    port = ports["lab"]
    return Part(
        name="lab",
        argv=ingot(
            *("lab", "farm", "--state", str(state.path), "--listen", f"127.0.0.1:{port}"),
            *("--count", str(wishes.servers), "--agent-api", ironic.base_url),
            *(("--ipxe-url", ironic.boot_url) if ironic.network_boot else ()),
        ),
        ready_line="lab ready",
        probe=connects(port, trusted.ca_file),
        address=f"https://127.0.0.1:{port}",
    )


def operator(
    state: StateFolder,
    ports: Mapping[str, int],
    trusted: Credentials,
    ironic: IronicSettings,
    wishes: Wishes,
) -> Part:
    port = ports["operator"]
    return Part(
        name="operator",
        argv=ingot(
            *("operator", "--state", str(state.path), "--provisioner", "ironic"),
            *("--controllers", "hosts,machines", "--defaults-namespace", "default"),
            *("--push-listen", f"127.0.0.1:{port}"),
        ),
        environment={
            "KUBECONFIG": str(state.kubeconfig),
            "IRONIC_ENDPOINT": f"{ironic.api_url}/v1",
            "IRONIC_CACERT_FILE": str(trusted.ca_file),
            "METAL3_AUTH_ROOT_DIR": str(trusted.auth_root),
            **(
                {
                    "IRONIC_USE_COREOS_IPA": "true",
                    "INGOT_IMAGES_URL": f"https://127.0.0.1:{ports['images']}",
                    **_coreos_unless_told(),
                }
                if wishes.coreos is not None
                else {}
            ),
        },
        # The lab says where its ramdisk is once it has started.
        late_environment=lambda: _ramdisks_of_lab(state, wishes) if wishes.lab else {},
        # Images first: a host that is looked at asks for its ramdisk.
        after=(
            "api-server",
            "ironic",
            *(("images",) if wishes.coreos is not None else ()),
            *(("lab",) if wishes.lab else ()),
        ),
        ready_line="operator ready",
        probe=connects(port, trusted.ca_file),
        address=f"https://127.0.0.1:{port}",
    )


def _coreos_unless_told() -> dict[str, str]:
    """What is installed for Machines that do not say it: what their ramdisk is made of, unless the shell says otherwise."""
    return {} if os.environ.get("INGOT_RELEASE_TARGET") else {"INGOT_RELEASE_TARGET": INSTALL_COREOS}


def _ramdisks_of_lab(state: StateFolder, wishes: Wishes) -> Mapping[str, str]:
    lab = labfile.load(state.path)
    found = {"DEPLOY_ISO_URL": lab.ramdisk_url}
    if wishes.network_boot:
        found |= {"DEPLOY_KERNEL_URL": lab.kernel_url, "DEPLOY_RAMDISK_URL": lab.initrd_url}
    return found


def ingot(*arguments: str) -> Sequence[str]:
    """The command line of another `ingot`, the one that belongs to this interpreter."""
    beside = Path(sys.executable).with_name("ingot")
    if beside.is_file():
        return [str(beside), *arguments]
    return [sys.executable, "-c", "from ingot.cli.main import main; main()", *arguments]
