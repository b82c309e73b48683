"""Whether switches are looked after, from the environment that Metal3 uses.

IRONIC_NETWORKING_ENABLED says so; IRONIC_SWITCH_CONFIGS_SECRET and IRONIC_SWITCH_CREDENTIALS_SECRET name the Secrets that
Ironic's networking service mounts, and IRONIC_SWITCH_CREDENTIALS_PATH where it mounts the second.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from ingot.hosts import SwitchSettings


def switches_from(environment: Mapping[str, str]) -> SwitchSettings | None:
    """None where nobody asked for it."""
    if not _enabled(environment.get("IRONIC_NETWORKING_ENABLED", "")):
        return None
    named = {
        name: environment.get(name, "")
        for name in ("IRONIC_SWITCH_CONFIGS_SECRET", "IRONIC_SWITCH_CREDENTIALS_SECRET")
    }
    if missing := [name for name, value in named.items() if not value]:
        raise click.ClickException(
            f"IRONIC_NETWORKING_ENABLED is set, and {' and '.join(missing)} is not: it names a Secret that Ironic's "
            "networking service mounts."
        )
    if len(set(named.values())) == 1:
        raise click.ClickException(f"{' and '.join(named)} name the same Secret; they have to be two.")
    configs, credentials = named.values()
    if path := environment.get("IRONIC_SWITCH_CREDENTIALS_PATH", ""):
        return SwitchSettings(
            configs_secret=configs, credentials_secret=credentials, credentials_path=_checked(path)
        )
    return SwitchSettings(configs_secret=configs, credentials_secret=credentials)


def _enabled(text: str) -> bool:
    match text.strip().lower():
        case "" | "0" | "f" | "false" | "no":
            return False
        case "1" | "t" | "true" | "yes":
            return True
    raise click.ClickException(f"IRONIC_NETWORKING_ENABLED is {text!r}; expected true or false.")


def _checked(path: str) -> str:
    """It becomes a part of a line in a file."""
    if not path.startswith("/") or not path.isprintable() or "%" in path:
        raise click.ClickException(
            f"IRONIC_SWITCH_CREDENTIALS_PATH is {path!r}; expected the absolute path of a folder."
        )
    return path
