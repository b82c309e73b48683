"""What a pod runs: the defaults and the rules of a pod's spec, in a Pod and in the template of a workload alike.

The defaults here are those that depend on something; the constant ones are in the table. The rules are the ones a
client would notice: names, ports, variables, mounts that have no volume.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from ingot.embedded.server.documents import Document
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.builtins import rules
from ingot.embedded.server.kinds.builtins.tables import message
from ingot.embedded.server.kinds.quantity import value_of

_VARIABLE: Final = re.compile(r"[ -<>-~]+", re.ASCII)
_SOURCES: Final = frozenset(message("io.k8s.api.core.v1.VolumeSource").by_name)
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_LARGEST_ID: Final = 2**31 - 1
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")


def fill_in(spec: Document) -> None:
    for container in containers_of(spec):
        container.setdefault("imagePullPolicy", _pull_policy(container.get("image", "")))
    for volume in spec.get("volumes", ()):
        if not _SOURCES & volume.keys():
            volume["emptyDir"] = {}
    # One name for two fields: an old one that is still written, and the one that counts.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def containers_of(spec: Document) -> Iterator[Document]:
    for part in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(part, ())


def _pull_policy(image: str) -> str:
    """What has a digest or a tag stays what it is; the newest may be another one tomorrow."""
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2] or "latest"
    return "Always" if tag == "latest" else "IfNotPresent"


def request_up_to_limits(spec: Document) -> None:
    """Who says how much may be used and not how much is needed needs all of it. Only pods say so; a template does not."""
    for container in containers_of(spec):
        resources = container.get("resources") or {}
        for name, limit in (resources.get("limits") or {}).items():
            resources.setdefault("requests", {}).setdefault(name, limit)


def problems(spec: Document, at: str) -> list[Cause]:
    found: list[Cause] = []
    if not spec.get("containers"):
        found.append(cause("Required", f"{at}.containers", ""))
    volumes = spec.get("volumes", [])
    found += _volumes(volumes, f"{at}.volumes")
    names = {volume.get("name") for volume in volumes}
    for part in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(part, ())):
            found += _container(container, f"{at}.{part}[{index}]", names, spec)
    found += _names(spec, at)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and deadline < 1:
        words = "must be between 1 and 2147483647, inclusive"
        found.append(cause("Invalid", f"{at}.activeDeadlineSeconds", words, shown=str(deadline)))
    found += _network(spec, at)
    return found + rules.labels(spec.get("nodeSelector", {}), f"{at}.nodeSelector")


def _names(spec: Document, at: str) -> list[Cause]:
    """No two programs of a pod have the same name; of two, the one that runs first is blamed."""
    found: list[Cause] = []
    seen: set[str] = set()
    for part in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(part, ())):
            name = container.get("name", "")
            if name in seen:
                found.append(cause("Duplicate", f"{at}.{part}[{index}].name", "", shown=rules.shown(name)))
            seen.add(name)
    return found


def _network(spec: Document, at: str) -> list[Cause]:
    found: list[Cause] = []
    if spec.get("dnsPolicy") == "None" and "dnsConfig" not in spec:
        words = "must provide `dnsConfig` when `dnsPolicy` is None"
        found.append(cause("Required", f"{at}.dnsConfig", words))
    for index, alias in enumerate(spec.get("hostAliases", ())):
        if not rules.is_address(alias.get("ip", "")):
            words = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            shown = rules.shown(alias.get("ip", ""))
            found.append(cause("Invalid", f"{at}.hostAliases[{index}].ip", words, shown=shown))
    return found


def _volumes(volumes: list[Document], at: str) -> list[Cause]:
    found = rules.duplicates(volumes, "name", at)
    for index, volume in enumerate(volumes):
        where = f"{at}[{index}]"
        found += rules.label_name(volume.get("name", ""), f"{where}.name")
        given = sorted(_SOURCES & volume.keys())
        found += [
            cause("Forbidden", f"{where}.{name}", "may not specify more than 1 volume type")
            for name in given[1:]
        ]
        for source, name in (("secret", "secretName"), ("configMap", "name")):
            if source in volume and not volume[source].get(name):
                found.append(cause("Required", f"{where}.{source}.{name}", ""))
        path = (volume.get("hostPath") or {}).get("path", "")
        if ".." in path.split("/"):
            found.append(
                cause("Invalid", f"{where}.hostPath.path", "must not contain '..'", shown=rules.shown(path))
            )
    return found


def _container(container: Document, at: str, volumes: set[str | None], spec: Document) -> list[Cause]:
    found = rules.label_name(container.get("name", ""), f"{at}.name")
    if not container.get("image"):
        found.append(cause("Required", f"{at}.image", ""))
    found += _ports(container.get("ports", ()), f"{at}.ports", host_network=bool(spec.get("hostNetwork")))
    found += _variables(container.get("env", ()), f"{at}.env")
    found += _mounts(container.get("volumeMounts", ()), f"{at}.volumeMounts", volumes)
    found += _resources(container.get("resources") or {}, f"{at}.resources")
    found += _security(container.get("securityContext") or {}, f"{at}.securityContext")
    for name in _PROBES:
        if probe := container.get(name):
            found += _probe(probe, f"{at}.{name}")
    return found


def _resources(resources: Document, at: str) -> list[Cause]:
    found: list[Cause] = []
    limits = resources.get("limits") or {}
    for name, amount in (resources.get("requests") or {}).items():
        if name in limits and (value_of(amount) or 0) > (value_of(limits[name]) or 0):
            words = f"must be less than or equal to {name} limit of {limits[name]}"
            found.append(cause("Invalid", f"{at}.requests", words, shown=rules.shown(amount)))
    return found


def _security(context: Document, at: str) -> list[Cause]:
    words = "must be between 0 and 2147483647, inclusive"
    return [
        cause("Invalid", f"{at}.{name}", words, shown=str(context[name]))
        for name in ("runAsUser", "runAsGroup")
        if name in context and not 0 <= context[name] <= _LARGEST_ID
    ]


def _ports(ports: Iterable[Document], at: str, *, host_network: bool) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        where, number = f"{at}[{index}]", port.get("containerPort", 0)
        if number == 0:
            found.append(cause("Required", f"{where}.containerPort", ""))
        found += rules.port_number(number or None, f"{where}.containerPort")
        found += rules.port_number(port.get("hostPort"), f"{where}.hostPort")
        if host_network and port.get("hostPort") not in (None, number):
            words = "must match `containerPort` when `hostNetwork` is true"
            found.append(cause("Invalid", f"{where}.hostPort", words, shown=str(port["hostPort"])))
        if name := port.get("name"):
            found += rules.port_name(name, f"{where}.name")
            if name in seen:
                found.append(cause("Duplicate", f"{where}.name", "", shown=rules.shown(name)))
            seen.add(name)
    return found


def _variables(variables: Iterable[Document], at: str) -> list[Cause]:
    found: list[Cause] = []
    for index, variable in enumerate(variables):
        where, name = f"{at}[{index}]", variable.get("name", "")
        if name and not _VARIABLE.fullmatch(name):
            words = "the name of a variable is made of printable ASCII characters, without '='"
            found.append(cause("Invalid", f"{where}.name", words, shown=rules.shown(name)))
        source = variable.get("valueFrom")
        if source is None:
            continue
        if variable.get("value"):
            words = "may not be specified when `value` is not empty"
            found.append(cause("Invalid", f"{where}.valueFrom", words, shown='""'))
        if not source:
            words = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
            found.append(cause("Invalid", f"{where}.valueFrom", words, shown='""'))
        elif len(source) > 1:
            words = "may not have more than one field specified at a time"
            found.append(cause("Invalid", f"{where}.valueFrom", words, shown='""'))
    return found


def _mounts(mounts: Iterable[Document], at: str, volumes: set[str | None]) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        where, name, path = f"{at}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if name not in volumes:
            found.append(Cause(f"{where}.name", "FieldValueNotFound", f"Not found: {rules.shown(name)}"))
        if path and path in seen:
            found.append(cause("Invalid", f"{where}.mountPath", "must be unique", shown=rules.shown(path)))
        seen.add(path)
        below = mount.get("subPath", "")
        if below.startswith("/") or ".." in below.split("/"):
            words = "must be a relative path" if below.startswith("/") else "must not contain '..'"
            found.append(cause("Invalid", f"{where}.subPath", words, shown=rules.shown(below)))
    return found


def _probe(probe: Document, at: str) -> list[Cause]:
    given = [name for name in _HANDLERS if name in probe]
    found = []
    if not given:
        found.append(cause("Required", at, "must specify a handler type"))
    found += [
        cause("Forbidden", f"{at}.{name}", "may not specify more than 1 handler type") for name in given[1:]
    ]
    if "httpGet" in probe:
        found += rules.port_number(probe["httpGet"].get("port"), f"{at}.httpGet.port")
    if "exec" in probe and not probe["exec"].get("command"):
        found.append(cause("Required", f"{at}.exec.command", ""))
    for name in (
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ):
        found += rules.not_negative(probe.get(name), f"{at}.{name}")
    if "livenessProbe" in at and probe.get("successThreshold", 1) != 1:
        found.append(
            cause("Invalid", f"{at}.successThreshold", "must be 1", shown=str(probe["successThreshold"]))
        )
    return found
