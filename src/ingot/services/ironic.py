"""The Ironic service: put its files in place, bring its database up to date, become Ironic.

`made_ready` ends with a command to `become` by exec, so the process that was started as the service is Ironic's master: signals
reach it, and whoever started it sees it die. Secrets travel in files that only the owner may read, never in arguments.
That the process is alive says nothing about its health (a worker that cannot start is started again for ever): who wants to
know asks `GET /`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NoReturn

from ingot.services import agent_logs, hardware, ipxe, ironic_image, ownership, schema
from ingot.services import environment as environments
from ingot.services.codec import variables
from ingot.services.environment import IronicEnvironment, Progress, without_ours
from ingot.services.errors import ProgramMissing, SettingsError
from ingot.services.front.files import url_of_files
from ingot.services.ironic_conf import render
from ingot.services.schema import DatabaseSync
from ingot.services.settings import IronicSettings
from ingot.trust import Secret, htpasswd_line, kept_token, write_private

# The names by which Ironic and its libraries look for a program that makes ISO 9660 images.
_ISO_MAKERS: Final = ("mkisofs", "genisoimage", "xorrisofs")
# By these names the library requests is told of certificates, and prefers them to those of its session.
_BUNDLES: Final = frozenset({"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"})
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
    for sentence in ironic_image.passed_over(inherited):
        progress(f"Warning: {sentence}")
    path = program_path(settings, inherited.get("PATH", os.defpath))
    made = environments.ensure(settings.version, progress)
    lock = ownership.take(settings.paths.lock_file)
    agent_logs.prune(settings.paths.agent_logs, settings.agent_logs_mib * agent_logs.MIB)
    prepare(settings, driven(path, progress))
    if not settings.skip_dbsync:
        schema.bring_up_to_date(DatabaseSync(settings, made, lock), progress)
    _lead_own_group()
    arguments = (str(made.program("ironic")), "--config-file", str(settings.paths.config_file))
    return Command(arguments, child_environment(settings, made, inherited, path))


def _make_folders(settings: IronicSettings) -> None:
    for folder in settings.paths.folders:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def driven(path: str, progress: Progress) -> tuple[str, ...]:
    """The hardware types that can be driven from here. One whose program is missing is left out: Ironic would not start.

    Who wants to know later asks `GET /v1/drivers`, which lists those that are there.
    """
    missing = {
        name: program for name, program in hardware.programs().items() if not shutil.which(program, path=path)
    }
    for name, program in missing.items():
        progress(
            f"Warning: {program} is not on PATH, so hosts of the type {name} cannot be managed. "
            f"Install the package {program} and start again; everything else works without."
        )
    return tuple(name for name in hardware.ALL if name not in missing)


def prepare(settings: IronicSettings, drives: tuple[str, ...] = hardware.ALL) -> None:
    """htpasswd and ironic.conf, as Ironic finds them at its start; for network boot, what its scripts are made of."""
    for variable, file in _given_files(settings):
        if not (file.is_file() and os.access(file, os.R_OK)):
            raise SettingsError(f"{variable} names {file}, which is not a file that can be read.")
    write_private(settings.paths.htpasswd_file, f"{_callers(settings)}\n".encode())
    write_private(settings.paths.config_file, render(_with_files(settings), drives).encode())
    if settings.network_boot:
        write_private(settings.paths.ipxe_template_file, ipxe.TEMPLATE.encode())
        write_private(
            settings.paths.http_root / ipxe.CA_ARCHIVE, ipxe.ca_archive(settings.ca_file.read_bytes())
        )


def _with_files(settings: IronicSettings) -> IronicSettings:
    """With the URLs under which the front server hands out what Ironic publishes, unless others are given."""
    if not settings.reverse_proxy:
        return settings
    key = kept_token(settings.paths.files_key_file)
    elsewhere = settings.external_callback
    return replace(
        settings,
        http_url=settings.http_url or url_of_files(settings.base_url, key),
        external_http_url=settings.external_http_url or (url_of_files(elsewhere, key) if elsewhere else None),
    )


def _callers(settings: IronicSettings) -> str:
    """The lines of the htpasswd file."""
    if settings.htpasswd:
        return "\n".join(line.strip() for line in settings.htpasswd.reveal().splitlines())
    # That both are there is a rule of the settings.
    assert settings.username is not None
    assert settings.password_file is not None
    return htpasswd_line(settings.username, _password(settings.password_file))


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
    """What Ironic and its children see: what we see, without our own variables, which can hold a database password.

    Whom to believe is said by the settings: a bundle in the environment counts more with the library that asks registries.
    """
    ours = {*settings.to_environment(), *ironic_image.SPELLINGS}
    if settings.webserver_ca_file is not None:
        ours |= _BUNDLES
    kept = {name: value for name, value in without_ours(inherited).items() if name not in ours}
    return kept | {"PATH": f"{made.bin}{os.pathsep}{path}"}


def _given_files(settings: IronicSettings) -> Iterator[tuple[str, Path]]:
    """The files that whoever started us names: those of the settings, apart from what we write ourselves.

    What is to be booted must be a file too: of a folder Ironic would hand out everything.
    """
    named = (
        (variable, getattr(settings, field)) for field, (variable, _) in variables(IronicSettings).items()
    )
    yield from ((variable, file) for variable, file in named if isinstance(file, Path))
    yield from ((variable, Path(file)) for variable, file in settings.boot_files)


def _lead_own_group() -> None:
    """Ironic's drain signal sends SIGTERM to its whole process group; that must not be the group of whoever started it."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
