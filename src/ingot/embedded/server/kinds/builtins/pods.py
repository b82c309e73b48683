"""Pod: born Pending, bound to a node once, and ended by that node.

A pod is what its creator said: of its spec only images, tolerations and deadlines can change later. Deleting one that
runs somewhere only asks for its end; it is gone when its node says so, with a grace of nought.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Final

from ingot.embedded.server.documents import Document, dig, timestamp
from ingot.embedded.server.errors import Cause, Refused, Unreadable, bad_request, cause
from ingot.embedded.server.kinds.builtins import podspecs, rules
from ingot.embedded.server.kinds.builtins.making import built_in
from ingot.embedded.server.kinds.builtins.podcells import POD_COLUMNS
from ingot.embedded.server.kinds.builtins.tables import message, take_in
from ingot.embedded.server.kinds.builtins.tables.intake import Undecodable
from ingot.embedded.server.kinds.jsonpath import as_text
from ingot.embedded.server.kinds.kind import Action, FieldReader, field_at
from ingot.embedded.server.kinds.quantity import value_of

_BINDING: Final = message("io.k8s.api.core.v1.Binding")
_COUNTED: Final = ("cpu", "memory")


def _prepare(new: Document, old: Document | None) -> None:
    spec = new.setdefault("spec", {})
    podspecs.fill_in(spec)
    podspecs.request_up_to_limits(spec)
    if old is not None:
        return
    spec.setdefault("enableServiceLinks", True)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if spec.get("hostNetwork"):
        for container in podspecs.containers_of(spec):
            for port in container.get("ports", ()):
                port.setdefault("hostPort", port.get("containerPort", 0))


def _complete(new: Document) -> None:
    new["status"] = {"phase": "Pending", "qosClass": quality(new["spec"])}


def quality(spec: Document) -> str:
    """Guaranteed, Burstable or BestEffort: who has to go first when a node runs out."""
    resources = [container.get("resources") or {} for container in podspecs.containers_of(spec)]
    asked = [
        (dig(part, "requests", name) or dig(part, "limits", name), dig(part, "limits", name))
        for part in resources
        for name in _COUNTED
    ]
    if not any(_counts(request) or _counts(limit) for request, limit in asked):
        return "BestEffort"
    return (
        "Guaranteed" if all(_counts(limit) and request == limit for request, limit in asked) else "Burstable"
    )


def _counts(quantity: str | None) -> bool:
    return quantity is not None and bool(value_of(quantity))


def _check(new: Document, old: Document | None) -> list[Cause]:
    if old is None:
        return podspecs.problems(new["spec"], "spec")
    if _what_stays(new["spec"], old["spec"]) != old["spec"]:
        words = (
            "of a pod only the images of its containers can be changed, its tolerations (by adding some) and its "
            "activeDeadlineSeconds (to less); for anything else delete it and create another"
        )
        return [cause("Forbidden", "spec", words)]
    found = podspecs.problems(new["spec"], "spec") + _deadline(new["spec"], old["spec"])
    tolerations = new["spec"].get("tolerations", [])
    if any(toleration not in tolerations for toleration in old["spec"].get("tolerations", [])):
        words = "tolerations can be added, but those that are there stay"
        found.append(cause("Forbidden", "spec.tolerations", words))
    return found


def _deadline(new: Document, old: Document) -> list[Cause]:
    """A pod can be given less time, never more."""
    before, after = old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds")
    if before is None or (after is not None and after <= before):
        return []
    words = (
        "a deadline that is set cannot be taken away"
        if after is None
        else f"can only become less than the {before} it is"
    )
    return [cause("Invalid", "spec.activeDeadlineSeconds", words, shown=rules.shown(after))]


def _what_stays(new: Document, old: Document) -> Document:
    """The new spec with the old values where a change is allowed: equal to the old one if nothing else changed."""
    made: Document = copy.deepcopy(new)
    for part in ("initContainers", "containers"):
        for container, before in zip(made.get(part, ()), old.get(part, ()), strict=False):
            container["image"] = before.get("image", "")
    for name in ("activeDeadlineSeconds", "tolerations"):
        made.pop(name, None)
        if name in old:
            made[name] = old[name]
    return made


def _grace(pod: Document, wished: int | None) -> int:
    """What runs nowhere, or no more, needs no time to end."""
    if not dig(pod, "spec", "nodeName") or dig(pod, "status", "phase") in ("Succeeded", "Failed"):
        return 0
    seconds = dig(pod, "spec", "terminationGracePeriodSeconds") if wished is None else wished
    return int(seconds or 0)


def _bind(pod: Document, binding: Document) -> Document:
    """Put the pod on the node that a Binding names. That is done once in its life."""
    metadata, name = pod["metadata"], pod["metadata"]["name"]
    node = _wanted_node(binding, name)
    if metadata.get("deletionTimestamp"):
        raise _not_bound(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if there := pod["spec"].get("nodeName"):
        raise _not_bound(name, f'pod {name} is already assigned to node "{there}"')
    pod["spec"]["nodeName"] = node
    for part in ("labels", "annotations"):
        if given := dig(binding, "metadata", part):
            metadata[part] = {**metadata.get(part, {}), **given}
    conditions = [
        condition
        for condition in dig(pod, "status", "conditions") or ()
        if condition.get("type") != "PodScheduled"
    ]
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp()}
    pod["status"] = {**pod.get("status", {}), "conditions": [*conditions, scheduled]}
    return pod


def _wanted_node(binding: Document, pod: str) -> str:
    try:
        take_in(binding, _BINDING)
    except Undecodable as error:
        raise Unreadable("Binding", "v1", str(error)) from None
    if dig(binding, "metadata", "name") != pod:
        raise bad_request("name in URL does not match name in Binding object")
    target = binding["target"]
    if target.get("kind") not in (None, "", "Node"):
        problem = cause(
            "NotSupported",
            "target.kind",
            'supported values: "Node", "<empty>"',
            shown=rules.shown(target["kind"]),
        )
    elif not target.get("name"):
        problem = cause("Required", "target.name", "")
    else:
        return str(target["name"])
    raise Refused(
        422,
        "Invalid",
        f'Binding "{pod}" is invalid: {problem.field}: {problem.message}',
        details={"name": pod, "kind": "Binding"},
        causes=[problem],
    )


def _not_bound(name: str, why: str) -> Refused:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
    return Refused(409, "Conflict", message, details={"name": name, "kind": "pods/binding"})


def _truth(path: str) -> FieldReader:
    read = field_at(path)
    return lambda pod: read(pod) or "false"


def _address(pod: Document) -> str:
    return as_text(dig(pod, "status", "podIP") or "")


PODS: Final = replace(
    built_in(
        "",
        "Pod",
        "pods",
        shows_removed=True,
        short_names=("po",),
        categories=("all",),
        status=True,
        generation=True,
        columns=POD_COLUMNS,
        fields={
            **{
                name: field_at(f".{name}")
                for name in (
                    "spec.nodeName",
                    "spec.restartPolicy",
                    "spec.schedulerName",
                    "spec.serviceAccountName",
                    "status.phase",
                    "status.nominatedNodeName",
                )
            },
            "spec.hostNetwork": _truth(".spec.hostNetwork"),
            "status.podIP": _address,
        },
        prepare=_prepare,
        complete=_complete,
        check=_check,
    ),
    grace=_grace,
    actions={"binding": Action(takes=("", "v1", "Binding"), perform=_bind)},
)
