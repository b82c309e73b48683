"""Ingress: which host names and paths lead to which services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.builtins import rules
from ingot.embedded.server.kinds.builtins.making import built_in
from ingot.embedded.server.kinds.columns import AGE, NAME, Column
from ingot.embedded.server.kinds.names import subdomain_problem


def _check(new: Document, old: Document | None) -> list[Cause]:
    spec = new.get("spec") or {}
    rules_, backend = spec.get("rules", []), spec.get("defaultBackend")
    if not rules_ and backend is None:
        words = "either `defaultBackend` or `rules` must be specified"
        return [cause("Invalid", "spec", words, shown="[]")]
    found = _backend(backend, "spec.defaultBackend") if backend is not None else []
    for index, rule in enumerate(rules_):
        where = f"spec.rules[{index}]"
        host = rule.get("host", "")
        if rules.is_address(host):
            words = "must be a DNS name, not an IP address"
            found.append(cause("Invalid", f"{where}.host", words, shown=rules.shown(host)))
        elif host and (problem := subdomain_problem(host.removeprefix("*."))):
            found.append(cause("Invalid", f"{where}.host", problem, shown=rules.shown(host)))
        for number, path in enumerate(dig(rule, "http", "paths") or ()):
            found += _path(path, f"{where}.http.paths[{number}]")
    return found


def _path(path: Document, at: str) -> list[Cause]:
    text = path.get("path", "")
    found = _backend(path.get("backend") or {}, f"{at}.backend")
    exact = path.get("pathType") in ("Exact", "Prefix")
    if (exact or text) and not text.startswith("/"):
        found.append(cause("Invalid", f"{at}.path", "must be an absolute path", shown=rules.shown(text)))
    if exact and ("//" in text or "/./" in text or "/../" in text):
        found.append(cause("Invalid", f"{at}.path", "must not contain '//'", shown=rules.shown(text)))
    return found


def _backend(backend: Document, at: str) -> list[Cause]:
    service = backend.get("service")
    if service is None and backend.get("resource") is None:
        return [cause("Invalid", at, "resource or service backend is required", shown='""')]
    if service is None:
        return []
    port = service.get("port") or {}
    if not port:
        return [cause("Required", at, "port name or number is required")]
    if "name" in port and "number" in port:
        words = "cannot set both port name & port number"
        return [cause("Invalid", at, words, shown='""')]
    return rules.port_number(port.get("number"), f"{at}.service.port.number")


def _hosts(ingress: Document) -> Iterator[str]:
    return (rule["host"] for rule in dig(ingress, "spec", "rules") or () if rule.get("host"))


def _address(ingress: Document) -> str:
    entries = dig(ingress, "status", "loadBalancer", "ingress") or ()
    return ",".join(entry.get("ip") or entry.get("hostname") or "" for entry in entries)


INGRESSES: Final = built_in(
    "networking.k8s.io",
    "Ingress",
    "ingresses",
    short_names=("ing",),
    status=True,
    generation=True,
    columns=(
        NAME,
        Column(
            "Class",
            lambda d: dig(d, "spec", "ingressClassName") or "<none>",
            description="Who puts the rules into effect.",
        ),
        Column("Hosts", lambda d: ",".join(_hosts(d)) or "*", description="The host names."),
        Column("Address", _address, description="Where requests may be sent to."),
        Column(
            "Ports",
            lambda d: "80, 443" if dig(d, "spec", "tls") else "80",
            description="The ports of that address.",
        ),
        AGE,
    ),
    check=_check,
)
