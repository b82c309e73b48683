"""What a person can do once everything is up: commands that can be copied as they stand."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from ingot.api.meta import Key
from ingot.cli.parts.state import StateFolder, default_folder


def commands(state: StateFolder, hosts: Sequence[Key], *, detached: bool) -> list[str]:
    """Lines to print when all is up."""
    kubectl = _kubectl()
    lines = [
        "Everything is up. Its API is a Kubernetes API:",
        f"  export KUBECONFIG={shlex.quote(str(state.kubeconfig))}",
        f"  {kubectl} get bmh -A -w",
    ]
    if hosts:
        lines += _about(kubectl, hosts[0])
    if detached:
        lines += ["It runs in the background:", f"  {ingot('status', state)}", f"  {ingot('down', state)}"]
    else:
        lines += [f"Ctrl-C stops everything; `{ingot('up', state)}` goes on where it was."]
    return lines


def _about(kubectl: str, host: Key) -> list[str]:
    where = f"-n {host.namespace} " if host.namespace != "default" else ""
    patch = f"  {kubectl} patch {where}bmh {host.name} --type merge -p"
    tries = {
        f"  {kubectl} describe {where}bmh {host.name}": "",
        f'{patch} \'{{"spec":{{"online":false}}}}\'': "power off",
        f'{patch} \'{{"spec":{{"online":true}}}}\'': "power on",
        f'{patch} \'{{"spec":{{"image":null}}}}\'': "deprovision: the disk is cleaned",
    }
    width = max(len(line) for line in tries)
    return [f"{line:<{width}}   # {what}" if what else line for line, what in tries.items()]


def _kubectl() -> str:
    """How to call kubectl: by its name, unless only the one that `make setup` built is there."""
    cache = os.environ.get("XDG_CACHE_HOME")
    built = (Path(cache) if cache else Path.home() / ".cache") / "ingot" / "tools" / "bin" / "kubectl"
    found = shutil.which("kubectl")
    if built.is_file() and (found is None or Path(found) == built):
        return shlex.quote(str(built))
    return "kubectl"


def ingot(command: str, state: StateFolder) -> str:
    """How to call a command of ours on this state folder."""
    where = "" if state.path == default_folder() else f" --state {shlex.quote(str(state.path))}"
    return f"{_program()} {command}{where}"


def _program() -> str:
    """How to call this `ingot`: by its name where that finds it, else by its path."""
    beside = Path(sys.executable).with_name("ingot")
    found = shutil.which("ingot")
    if not beside.is_file() or (found is not None and Path(found).samefile(beside)):
        return "ingot"
    near = beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside
    return shlex.quote(str(near))
