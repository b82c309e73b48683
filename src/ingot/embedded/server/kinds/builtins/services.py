"""Service: one name and port for whatever pods answer behind it.

On one machine nobody stands between a client and the pods: no address is handed out here that nothing would answer
at. A Service whose creator wishes for no address is headless (`clusterIP: None`), which tells every client to look
for the pods themselves; an address that a creator brings is kept.
"""

from __future__ import annotations

from typing import Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.builtins import rules
from ingot.embedded.server.kinds.builtins.making import built_in
from ingot.embedded.server.kinds.columns import AGE, NAME, Column
from ingot.embedded.server.kinds.names import label_1035_problem, label_problem

_NONE: Final = "None"
_ADDRESS: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def _prepare(new: Document, old: Document | None) -> None:
    spec = new.setdefault("spec", {})
    kind = spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports", ()):
        port.setdefault("targetPort", port.get("port", 0))
    if kind in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec.get("sessionAffinity") == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
    if kind == "ExternalName":
        return
    spec.setdefault("internalTrafficPolicy", "Cluster")
    if old is not None:
        # Who changes a service need not say again which address it has.
        for name in _ADDRESS:
            if name in old["spec"]:
                spec.setdefault(name, old["spec"][name])
        _give_address(spec)


def _complete(new: Document) -> None:
    new["status"] = {"loadBalancer": {}}
    if new["spec"]["type"] != "ExternalName":
        _give_address(new["spec"])


def _give_address(spec: Document) -> None:
    if not spec.get("ports") and not spec.get("clusterIP"):
        # Only who asks for no address may leave out the ports; `_check` says so.
        return
    address = spec.get("clusterIP") or next(iter(spec.get("clusterIPs", ())), _NONE)
    spec["clusterIP"] = address
    spec.setdefault("clusterIPs", [address])
    spec.setdefault("ipFamilies", ["IPv6" if ":" in address else "IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def _check(new: Document, old: Document | None) -> list[Cause]:
    spec = new["spec"]
    ports = spec.get("ports", [])
    found: list[Cause] = []
    if spec["type"] == "ExternalName":
        if not spec.get("externalName"):
            found.append(cause("Required", "spec.externalName", ""))
    else:
        found += _addresses(spec)
        if not ports and spec.get("clusterIP") != _NONE:
            found.append(cause("Required", "spec.ports", ""))
        if spec["type"] == "ClusterIP" and "externalTrafficPolicy" in spec:
            words = "may only be set for externally-accessible services"
            shown = rules.shown(spec["externalTrafficPolicy"])
            found.append(cause("Invalid", "spec.externalTrafficPolicy", words, shown=shown))
    if old is not None and "ExternalName" not in (spec["type"], old["spec"].get("type")):
        found += rules.immutable(new, old, "spec", "clusterIP")
    found += rules.labels(spec.get("selector", {}), "spec.selector")
    return found + _ports(ports)


def _addresses(spec: Document) -> list[Cause]:
    found = []
    addresses = spec.get("clusterIPs", [])
    if addresses and addresses[0] != spec.get("clusterIP"):
        words = "must match the first of `clusterIPs`"
        found.append(cause("Invalid", "spec.clusterIP", words, shown=rules.shown(spec.get("clusterIP"))))
    for index, address in enumerate(addresses):
        if address != _NONE and not rules.is_address(address):
            words = "must be empty, 'None', or a valid IP address"
            found.append(cause("Invalid", f"spec.clusterIPs[{index}]", words, shown=rules.shown(address)))
    return found


def _ports(ports: list[Document]) -> list[Cause]:
    found = rules.duplicates(ports, "name", "spec.ports")
    seen: set[tuple[object, object]] = set()
    for index, port in enumerate(ports):
        where = f"spec.ports[{index}]"
        name = port.get("name", "")
        if not name and len(ports) > 1:
            found.append(cause("Required", f"{where}.name", ""))
        elif name and (problem := label_problem(name)):
            found.append(cause("Invalid", f"{where}.name", problem, shown=rules.shown(name)))
        number = port.get("port", 0)
        if not 1 <= number <= 65535:
            words = "must be between 1 and 65535, inclusive"
            found.append(cause("Invalid", f"{where}.port", words, shown=str(number)))
        target = port.get("targetPort")
        if isinstance(target, str):
            found += rules.port_name(target, f"{where}.targetPort")
        else:
            found += rules.port_number(target, f"{where}.targetPort")
        same = (number, port.get("protocol", "TCP"))
        if same in seen:
            found.append(cause("Duplicate", where, "", shown=rules.shown(port)))
        seen.add(same)
    return found


def _outside(service: Document) -> str:
    spec = service.get("spec") or {}
    match spec.get("type"):
        case "ExternalName":
            return str(spec.get("externalName", ""))
        case "LoadBalancer":
            found = [
                entry.get("ip") or entry.get("hostname") or ""
                for entry in dig(service, "status", "loadBalancer", "ingress") or ()
            ]
            return ",".join([*found, *spec.get("externalIPs", ())]) or "<pending>"
        case _:
            return ",".join(spec.get("externalIPs", ())) or "<none>"


def _ports_shown(service: Document) -> str:
    return (
        ",".join(
            f"{port.get('port')}:{port['nodePort']}/{port.get('protocol')}"
            if port.get("nodePort")
            else f"{port.get('port')}/{port.get('protocol')}"
            for port in dig(service, "spec", "ports") or ()
        )
        or "<none>"
    )


def _selector(service: Document) -> str:
    found = dig(service, "spec", "selector") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(found.items())) or "<none>"


SERVICES: Final = built_in(
    "",
    "Service",
    "services",
    shows_removed=True,
    short_names=("svc",),
    categories=("all",),
    status=True,
    columns=(
        NAME,
        Column("Type", lambda d: dig(d, "spec", "type"), description="How it can be reached."),
        Column(
            "Cluster-IP", lambda d: dig(d, "spec", "clusterIP") or "<none>", description="Its own address."
        ),
        Column("External-IP", _outside, description="Its addresses outside."),
        Column("Port(s)", _ports_shown, description="Its ports."),
        AGE,
        Column("Selector", _selector, priority=1, description="Labels of the pods behind it."),
    ),
    fields=("spec.clusterIP", "spec.type"),
    name_problem=label_1035_problem,
    prepare=_prepare,
    complete=_complete,
    check=_check,
)
