"""Options of lists, watches and deletes that contradict each other or themselves, in the words of Kubernetes.

Pure: parameters in, causes out. Reading the options is the business of `requests`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ingot.embedded.server.documents import Document
from ingot.embedded.server.errors import Cause, cause

_MATCH = "resourceVersionMatch"


def list_problems(parameters: Mapping[str, str]) -> list[Cause]:
    match, version = parameters.get(_MATCH, ""), parameters.get("resourceVersion", "")
    found = []
    if match and not version:
        found.append(cause("Forbidden", _MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided"))
    if match and parameters.get("continue"):
        found.append(cause("Forbidden", _MATCH, f"{_MATCH} is forbidden when continue is provided"))
    if match not in ("", "Exact", "NotOlderThan"):
        words = 'supported values: "Exact", "NotOlderThan", ""'
        found.append(cause("NotSupported", _MATCH, words, shown=f'"{match[:40]}"'))
    if match == "Exact" and version == "0":
        words = f'{_MATCH} "exact" is forbidden for resourceVersion "0"'
        found.append(cause("Forbidden", _MATCH, words))
    if "sendInitialEvents" in parameters:
        words = "sendInitialEvents is forbidden for list"
        found.append(cause("Forbidden", "sendInitialEvents", words))
    return found


def watch_problems(parameters: Mapping[str, str]) -> list[Cause]:
    match, initial = parameters.get(_MATCH, ""), "sendInitialEvents" in parameters
    found = []
    if initial and match != "NotOlderThan":
        words = f"sendInitialEvents requires setting {_MATCH} to NotOlderThan"
        found.append(cause("Forbidden", _MATCH, words))
    if match and not initial:
        words = f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"
        found.append(cause("Forbidden", _MATCH, words))
    if match not in ("", "NotOlderThan"):
        words = 'supported values: "NotOlderThan"'
        found.append(cause("NotSupported", _MATCH, words, shown=f'"{match[:40]}"'))
    if parameters.get("continue"):
        found.append(cause("Forbidden", _MATCH, f"{_MATCH} is forbidden when continue is provided"))
    return found


def delete_problems(options: Document, policy: str) -> list[Cause]:
    """`policy` is the propagation policy, wherever it was given."""
    found = []
    if policy and options.get("orphanDependents") is not None:
        words = "orphanDependents and deletionPropagation cannot be both set"
        found.append(cause("Invalid", "propagationPolicy", words, shown=f'"{policy[:40]}"'))
    if policy not in ("", "Orphan", "Background", "Foreground"):
        words = 'supported values: "Foreground", "Background", "Orphan", "nil"'
        found.append(cause("NotSupported", "propagationPolicy", words, shown=f'"{policy[:40]}"'))
    return found
