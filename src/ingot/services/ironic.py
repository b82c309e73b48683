"""The Ironic service: put its files in place, bring its database up to date, become Ironic.

`made_ready` ends with a command to `become` by exec, so the process that was started as the service is Ironic's master: signals
reach it, and whoever started it sees it die. Secrets travel in files that only the owner may read, never in arguments.
That the process is alive says nothing about its health (a worker that cannot start is started again for ever): who wants to
know asks `GET /`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from ingot.services import environment as environments
from ingot.services import ownership, schema
from ingot.services.environment import IronicEnvironment, Progress, without_ours
from ingot.services.errors import ProgramMissing, SettingsError
from ingot.services.ironic_conf import render
from ingot.services.schema import DatabaseSync
from ingot.services.settings import IronicSettings
from ingot.trust import Secret, htpasswd_line, write_private

# The names by which Ironic and its libraries look for a program that makes ISO 9660 images.
_ISO_MAKERS: Final = ("mkisofs", "genisoimage", "xorrisofs")
# bcrypt looks at no more than this; who relied on the rest would have a weaker password than they think.
_LONGEST_PASSWORD: Final = 72


@dataclass(frozen=True, slots=True)
class Command:
    """What to become."""

    arguments: tuple[str, ...]
    environment: dict[str, str]

    def become(self) -> NoReturn:
        program = self.arguments[0]
        os.execve(program, self.arguments, self.environment)  # noqa: S606 - no shell is wanted


def made_ready(settings: IronicSettings, inherited: Mapping[str, str], progress: Progress) -> Command:
    """Everything in place, and this process the owner of the state folder: what is left is to become the command."""
    os.umask(0o077)
    _make_folders(settings)
    path = program_path(settings, inherited.get("PATH", os.defpath))
    made = environments.ensure(settings.version, progress)
    lock = ownership.take(settings.paths.lock_file)
    prepare(settings)
    schema.bring_up_to_date(DatabaseSync(settings, made, lock), progress)
    _lead_own_group()
    arguments = (str(made.program("ironic")), "--config-file", str(settings.paths.config_file))
    return Command(arguments, child_environment(settings, made, inherited, path))


def _make_folders(settings: IronicSettings) -> None:
    for folder in settings.paths.folders:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def prepare(settings: IronicSettings) -> None:
    """htpasswd and ironic.conf, as Ironic finds them at its start."""
    for variable, file in _given_files(settings).items():
        if not (file.is_file() and os.access(file, os.R_OK)):
            raise SettingsError(f"{variable} names {file}, which is not a file that can be read.")
    password = _password(settings.password_file)
    write_private(settings.paths.htpasswd_file, f"{htpasswd_line(settings.username, password)}\n".encode())
    write_private(settings.paths.config_file, render(settings).encode())


def _password(file: Path) -> Secret:
    content = file.read_bytes().strip()
    try:
        password = Secret(content.decode())
    except UnicodeDecodeError:
        password = Secret("")
    if not password or len(content) > _LONGEST_PASSWORD:
        raise SettingsError(
            f"INGOT_IRONIC_PASSWORD_FILE names {file}, which does not hold a password: text of at most "
            f"{_LONGEST_PASSWORD} bytes, and not empty. Write another one into it."
        )
    return password


def program_path(settings: IronicSettings, path: str) -> str:
    """The PATH for Ironic. It calls `mkisofs` by that name; xorrisofs understands the same and takes its place."""
    found = {name: shutil.which(name, path=path) for name in _ISO_MAKERS}
    program = next((program for program in found.values() if program), None)
    if program is None:
        raise ProgramMissing(
            "Ironic needs a program that makes ISO images for config drives and boot media: none of "
            f"{', '.join(_ISO_MAKERS)} is on PATH. Install one; in Debian the package is xorriso."
        )
    if found["mkisofs"]:
        return path
    stand_in = settings.paths.programs / "mkisofs"
    stand_in.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (stand_in.is_symlink() and stand_in.readlink() == Path(program)):
        stand_in.unlink(missing_ok=True)
        stand_in.symlink_to(program)
    return f"{stand_in.parent}{os.pathsep}{path}"


def child_environment(
    settings: IronicSettings, made: IronicEnvironment, inherited: Mapping[str, str], path: str
) -> dict[str, str]:
    """What Ironic and its children see: what we see, without our own variables, which can hold a database password."""
    ours = settings.to_environment()
    kept = {name: value for name, value in without_ours(inherited).items() if name not in ours}
    return kept | {"PATH": f"{made.bin}{os.pathsep}{path}"}


def _given_files(settings: IronicSettings) -> dict[str, Path]:
    files = {
        "IRONIC_CERT_FILE": settings.cert_file,
        "IRONIC_KEY_FILE": settings.key_file,
        "IRONIC_CACERT_FILE": settings.ca_file,
        "INGOT_IRONIC_PASSWORD_FILE": settings.password_file,
        "BMC_CACERT_FILE": settings.bmc_ca_file,
        "WEBSERVER_CACERT_FILE": settings.webserver_ca_file,
        "INGOT_PUSH_CA_FILE": settings.push_ca_file,
        "INGOT_PUSH_TOKEN_FILE": settings.push_token_file,
    }
    return {variable: file for variable, file in files.items() if file}


def _lead_own_group() -> None:
    """Ironic's drain signal sends SIGTERM to its whole process group; that must not be the group of whoever started it."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
