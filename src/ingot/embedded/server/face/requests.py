"""Reading requests: where they point and what they ask for.

Everything a client can choose is checked here and, for what a request carries, in `bodies`: path, names, parameters.
What comes out is typed and safe to use as a key; what is wrong is refused with a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from ingot.embedded.server.documents import Document, is_count
from ingot.embedded.server.errors import (
    Cause,
    Refused,
    bad_request,
    cause,
    invalid_options,
    method_not_allowed,
    not_found,
    unknown_path,
)
from ingot.embedded.server.face import bodies, options
from ingot.embedded.server.face.auth import Identity
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.names import label_problem
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.kinds.selectors import Selector, parse
from ingot.embedded.server.reads.reading import Query
from ingot.embedded.server.reads.watching import WatchQuery
from ingot.embedded.server.writes.managing import name_of
from ingot.embedded.server.writes.writing import Deletion, Manner

# Bytes that the name of a manager may have.
_MANAGER_LIMIT: Final = 128
_STATUS_METHODS: Final = frozenset({"get", "update", "patch"})


@dataclass(frozen=True, slots=True)
class Target:
    """A place in the API: a collection, an object in it, or a part of an object."""

    kind: Kind
    namespace: str
    name: str
    subresource: str


def target(registry: Registry, path: str) -> Target:
    """The place a path names. Raises 404 for a path that is no place."""
    group, version, rest = _split(path)
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and not (group == "" and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3:
        raise unknown_path()
    plural, name, subresource = (*rest, "", "")[:3]
    kind = registry.at(group, version, plural)
    if kind is None or (namespace and not kind.namespaced) or (name and kind.namespaced and not namespace):
        raise unknown_path()
    if subresource and subresource not in kind.subresources:
        raise unknown_path()
    if (namespace and label_problem(namespace)) or (name and kind.name_problem(name)):
        raise not_found(kind, name or namespace)
    return Target(kind, namespace, name, subresource)


def _split(path: str) -> tuple[str, str, list[str]]:
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            return "", version, rest
        case ["apis", group, version, *rest]:
            return group, version, rest
        case _:
            raise unknown_path()


def verb(method: str, where: Target, parameters: Mapping[str, str]) -> str:
    """What Kubernetes calls this: the word that permissions are about."""
    kind = where.kind
    if kind.namespaced and not where.namespace and method != "GET":
        # Over all namespaces one can only look.
        raise _no_such_method() if kind.built_in else unknown_path()
    match method, bool(where.name):
        case "GET", True:
            return "get"
        case "GET", False:
            return "watch" if flag(parameters, "watch") else "list"
        case "POST", named if not named or where.subresource in kind.actions:
            return "create"
        case "POST", True if not kind.built_in and not where.subresource:
            # Kubernetes does not look at the end of this path; the body says the name.
            return "create"
        case "PUT", True:
            return "update"
        case "PATCH", True:
            return "patch"
        case "DELETE", named:
            return "delete" if named else "deletecollection"
        case "PUT" | "PATCH", _ if not kind.built_in:
            raise bad_request("name must be provided")
        case _:
            raise _no_such_method()


def _no_such_method() -> Refused:
    return method_not_allowed("the server does not allow this method on the requested resource")


def check_served(where: Target, word: str) -> None:
    kind = where.kind
    if where.subresource in kind.actions:
        served = word == "create"
    else:
        served = word in kind.verbs and (not where.subresource or word in _STATUS_METHODS)
    if served:
        return
    raise method_not_allowed(f"the server does not allow {word} on {kind.resource}")


# Parameters


def flag(parameters: Mapping[str, str], name: str) -> bool:
    """Kubernetes takes every word for yes but these two."""
    return name in parameters and parameters[name].lower() not in ("false", "0")


def _number(parameters: Mapping[str, str], name: str) -> int:
    text = parameters.get(name, "")
    if text and not is_count(text):
        raise bad_request(f'{name}: Invalid value: "{text[:40]}": must be a number that is not negative')
    return int(text) if text else 0


def selector(where: Target, parameters: Mapping[str, str]) -> Selector:
    return parse(
        parameters.get("labelSelector", ""),
        parameters.get("fieldSelector", ""),
        known_fields=where.kind.field_names,
    )


def list_query(where: Target, parameters: Mapping[str, str]) -> Query:
    if causes := options.list_problems(parameters):
        raise invalid_options("ListOptions", causes)
    _number(parameters, "timeoutSeconds")
    return Query(
        namespace=where.namespace,
        selector=selector(where, parameters),
        # A limit below nothing is none, as in Kubernetes.
        limit=0
        if re.fullmatch(r"-[0-9]{1,18}", parameters.get("limit", ""))
        else _number(parameters, "limit"),
        token=parameters.get("continue", ""),
        version=parameters.get("resourceVersion", ""),
        exact=parameters.get("resourceVersionMatch") == "Exact",
    )


def watch_query(where: Target, parameters: Mapping[str, str]) -> WatchQuery:
    if causes := options.watch_problems(parameters):
        raise invalid_options("ListOptions", causes)
    initial = parameters.get("sendInitialEvents")
    return WatchQuery(
        namespace=where.namespace,
        selector=selector(where, parameters),
        version=parameters.get("resourceVersion", ""),
        bookmarks=flag(parameters, "allowWatchBookmarks"),
        initial_events=None if initial is None else flag(parameters, "sendInitialEvents"),
        timeout=float(_number(parameters, "timeoutSeconds")),
    )


def manner(parameters: Mapping[str, str], headers: Mapping[str, str], who: Identity, *, word: str) -> Manner:
    """How a create, update or patch is to be treated. `word` is which of them it is."""
    validation = parameters.get("fieldValidation", "")
    name = parameters.get("fieldManager", "")
    causes = []
    if validation not in ("", "Ignore", "Warn", "Strict"):
        words = 'supported values: "", "Ignore", "Strict", "Warn"'
        causes.append(cause("NotSupported", "fieldValidation", words, shown=f'"{validation[:40]}"'))
    dry = parameters.get("dryRun")
    if dry not in (None, "All"):
        causes.append(cause("NotSupported", "dryRun", 'supported values: "All"', shown=f'["{dry[:40]}"]'))
    causes += _manager_problems(name)
    causes += _apply_problems(parameters, headers.get("Content-Type", ""), word=word)
    if causes:
        raise invalid_options(f"{word.capitalize()}Options", causes)
    return Manner(
        dry_run=dry == "All",
        field_validation=validation or "Warn",
        manager=name or name_of(headers.get("User-Agent", "")),
        patching=word == "patch",
        user=who,
    )


def _manager_problems(name: str) -> list[Cause]:
    found = []
    if len(name.encode()) > _MANAGER_LIMIT:
        words = f"Too long: may not be more than {_MANAGER_LIMIT} bytes"
        found.append(Cause("fieldManager", "FieldValueTooLong", words))
    if not name.isprintable():
        found.append(cause("Invalid", "fieldManager", "it holds characters that cannot be printed"))
    return found


def _apply_problems(parameters: Mapping[str, str], content_type: str, *, word: str) -> list[Cause]:
    if word != "patch":
        return []
    if bodies.is_apply(content_type):
        if not parameters.get("fieldManager"):
            return [cause("Required", "fieldManager", "is required for apply patch")]
    elif "force" in parameters:
        return [cause("Forbidden", "force", "may not be specified for non-apply patch")]
    return []


def _dry_run(text: str) -> bool:
    if text != "All":
        words = 'supported values: "All"'
        raise invalid_options(
            "DeleteOptions", [cause("NotSupported", "dryRun", words, shown=f'["{text[:40]}"]')]
        )
    return True


# Deletions


async def deletion(request: web.BaseRequest, parameters: Mapping[str, str], who: Identity) -> Deletion:
    given = await bodies.options(request)
    if given.get("kind") not in (None, "", "DeleteOptions"):
        raise bad_request(
            f"the body of a delete says how to delete; it is a {given['kind']}, not DeleteOptions"
        )
    preconditions = _typed(given, "preconditions", dict) or {}
    policy = _typed(given, "propagationPolicy", str) or parameters.get("propagationPolicy") or ""
    if causes := options.delete_problems(given, policy):
        raise invalid_options("DeleteOptions", causes)
    if not policy and given.get("orphanDependents") is True:
        policy = "Orphan"
    dry = _typed(given, "dryRun", list) or [text for name, text in parameters.items() if name == "dryRun"]
    grace = _typed(given, "gracePeriodSeconds", int)
    if grace is None and parameters.get("gracePeriodSeconds"):
        grace = _number(parameters, "gracePeriodSeconds")
    return Deletion(
        uid=_typed(preconditions, "uid", str) or "",
        version=_typed(preconditions, "resourceVersion", str) or "",
        propagation=policy or "Background",
        grace=grace,
        dry_run=any(_dry_run(str(item)) for item in dry),
        user=who,
    )


def _typed(given: Document, name: str, type_: type[Any]) -> Any:
    value = given.get(name)
    if value is not None and not isinstance(value, type_):
        raise bad_request(f"DeleteOptions: {name} is not of the expected type")
    return value
