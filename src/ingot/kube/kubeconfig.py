"""Kubeconfig files: several seen as one, and their entries read with care.

The first file that defines a name wins, and relative paths count from the file they stand in, as with kubectl. What an entry
means is the business of `config`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from ingot.kube.content import Content, FileContent, Given
from ingot.kube.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Entry:
    """A cluster, user, context, or a part of one, and the file it stands in."""

    body: Mapping[str, object]
    file: Path

    def text(self, name: str) -> str:
        value = self.body.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ConfigError(f"{self.file}: {name} should be text")
        return value

    def flag(self, name: str) -> bool:
        value = self.body.get(name)
        # "false" in quotes is text, and text is true to Python: that must not switch anything off.
        if not isinstance(value, bool | None):
            raise ConfigError(f"{self.file}: {name} should be true or false, found {value!r}")
        return bool(value)

    def texts(self, name: str) -> tuple[str, ...]:
        values = self.body.get(name) or []
        if not (isinstance(values, list) and all(isinstance(value, str) for value in values)):
            raise ConfigError(f"{self.file}: {name} should be a list of texts")
        return tuple(values)

    def parts(self, name: str) -> list[Entry]:
        values = self.body.get(name) or []
        if not (isinstance(values, list) and all(isinstance(value, dict) for value in values)):
            raise ConfigError(f"{self.file}: {name} should be a list of mappings")
        return [Entry(value, self.file) for value in values]

    def part(self, name: str) -> Entry | None:
        value = self.body.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ConfigError(f"{self.file}: {name} should be a mapping")
        return Entry(value, self.file)

    def file_of(self, name: str) -> Path | None:
        value = self.text(name)
        return self.file.parent / value if value else None

    def content(self, name: str) -> Content | None:
        """What stands under `name-data`, else in the file that `name` gives."""
        data = self.text(f"{name}-data")
        if data:
            try:
                return Given(base64.b64decode(data, validate=False))
            except binascii.Error as error:
                raise ConfigError(f"{self.file}: {name}-data is not base64") from error
        file = self.file_of(name)
        return FileContent(file, name) if file else None


class Kubeconfig:
    """Several files seen as one."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.names = ", ".join(str(path) for path in paths)
        self._entries: dict[tuple[str, str], Entry] = {}
        self._current = ""
        if not [path for path in paths if self._add(path)]:
            raise ConfigError(
                f"there is no kubeconfig at {self.names}. Set KUBECONFIG to the file that describes the cluster, "
                "or start one on this machine with `ingot up`."
            )

    def chosen(self, context: str | None) -> tuple[Entry, Entry, Entry]:
        """A context, or the current one; its cluster, and its user."""
        name = context or self._current
        if not name:
            raise ConfigError(f"{self.names} has no current-context; choose one with --context")
        chosen = self._entry("contexts", name)
        cluster = self._entry("clusters", chosen.text("cluster"))
        user = chosen.text("user")
        return chosen, cluster, self._entry("users", user) if user else Entry({}, chosen.file)

    def _add(self, path: Path) -> bool:
        """Take in what a file says that others before it did not; false where there is no file."""
        try:
            content = yaml.safe_load(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise ConfigError(f"the kubeconfig {path} cannot be read: {error.strerror}") from error
        except yaml.YAMLError as error:
            # Neither as the cause nor in its own words: it quotes the line, and that may hold a token.
            raise ConfigError(f"the kubeconfig {path} cannot be read: {_where(error)}") from None
        if not isinstance(content, dict):
            raise ConfigError(f"the kubeconfig {path} should be a mapping with clusters, users and contexts")
        self._current = self._current or str(content.get("current-context") or "")
        for section, member in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            items = content.get(section) or []
            if not isinstance(items, list):
                raise ConfigError(f"the kubeconfig {path}: {section} should be a list")
            for item in items:
                if not (isinstance(item, dict) and isinstance(item.get("name"), str)):
                    raise ConfigError(f"the kubeconfig {path} has an entry without a name under {section}")
                body = item.get(member) or {}
                if not isinstance(body, dict):
                    raise ConfigError(
                        f"the kubeconfig {path}: {member} of {item['name']} should be a mapping"
                    )
                self._entries.setdefault((section, item["name"]), Entry(body, path))
        return True

    def _entry(self, section: str, name: str) -> Entry:
        try:
            return self._entries[section, name]
        except KeyError:
            known = ", ".join(sorted(other for part, other in self._entries if part == section)) or "none"
            raise ConfigError(
                f"{self.names} has no entry {name!r} under {section}; it has: {known}"
            ) from None


def _where(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return "it is not YAML"
