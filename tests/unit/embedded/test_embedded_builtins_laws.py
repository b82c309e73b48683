"""Laws for all built-in kinds: whatever a client sends, the answer is an object or a refusal, and taking it in twice is
taking it in once."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingot.embedded.server.documents import encode
from ingot.embedded.server.errors import Refused
from ingot.embedded.server.kinds.builtins import BUILT_IN, DEFINITIONS, message_of
from ingot.embedded.server.kinds.builtins.tables import ListOf, MapOf, Message, Scalar
from ingot.embedded.server.kinds.kind import Kind

KINDS = {kind.resource: kind for kind in BUILT_IN if kind is not DEFINITIONS}
JUNK = st.sampled_from([None, "", "x", 0, -1, True, 1.5, [], {}, ["x"], {"a": "b"}, [None], [{}], 2**70])
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "text": st.sampled_from(["", "a", "a-b", "A_B", "a.b.c", "a/b", "x" * 70, "None", "10.0.0.1", "ü"]),
    "int32": st.sampled_from([-1, 0, 1, 80, 70000, 2**31 - 1]),
    "int64": st.sampled_from([-1, 0, 1, 2**40]),
    "bool": st.booleans(),
    "bytes": st.sampled_from(["", "YQ==", "e30="]),
    "time": st.sampled_from(["2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z"]),
    "microtime": st.just("2026-01-01T00:00:00.000001Z"),
    "quantity": st.sampled_from(["0", "1", "500m", "1Gi", -1, 0.5]),
    "number-or-text": st.sampled_from([0, 80, "http", "25%", "x"]),
    "any": JUNK,
}


@st.composite
def messages(draw: st.DrawFn, of: Message, depth: int = 0) -> dict[str, Any]:
    names = list(of.by_name)
    # The deeper, the less there is: most of what matters is near the top.
    chosen = draw(st.lists(st.sampled_from(names), max_size=max(1, 5 - depth), unique=True)) if names else []
    needed = [name for name, field in of.by_name.items() if field.required and draw(st.integers(0, 9))]
    made = {}
    for name in dict.fromkeys([*needed, *chosen]):
        if name not in ("metadata", "apiVersion", "kind"):
            made[name] = draw(values(of.by_name[name].type, depth + 1))
    return made


def values(type_: Any, depth: int) -> st.SearchStrategy[Any]:
    match type_:
        case ListOf(of):
            meant: st.SearchStrategy[Any] = st.lists(values(of, depth), min_size=1, max_size=2)
        case MapOf(of):
            meant = st.dictionaries(
                st.sampled_from(["a", "a b", "cpu", "x/y"]), values(of, depth), max_size=2
            )
        case Scalar(name, options):
            meant = st.sampled_from(options) if options else SCALARS[name]
        case _:
            meant = messages(type_, depth)
    return st.integers(0, 30).flatmap(lambda die: JUNK if die == 0 else meant)


_POD = {"containers": [{"name": "a", "image": "x"}], "volumes": [{"name": "v"}]}
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": _POD}
_WORKLOAD = {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}}
_HOOK = {
    "name": "a.b.c",
    "clientConfig": {"url": "https://a/b"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}],
}
_STORAGE = {"accessModes": ["ReadWriteOnce"]}
_BINDING = {"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]}
# Something good of the kinds that chance alone would hardly ever make.
GOOD: dict[str, dict[str, Any]] = {
    "pods": {"spec": _POD},
    "services": {"spec": {"ports": [{"port": 80}]}},
    "deployments.apps": _WORKLOAD,
    "daemonsets.apps": _WORKLOAD,
    "replicasets.apps": _WORKLOAD,
    "statefulsets.apps": _WORKLOAD,
    "jobs.batch": {"spec": {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}},
    "persistentvolumeclaims": {"spec": {**_STORAGE, "resources": {"requests": {"storage": "1Gi"}}}},
    "persistentvolumes": {"spec": {**_STORAGE, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}},
    "events": {"involvedObject": {"namespace": "ns"}},
    "events.events.k8s.io": {
        "regarding": {"namespace": "ns"},
        "eventTime": "2026-01-01T00:00:00.000001Z",
        "type": "Normal",
        **dict.fromkeys(("reportingController", "reportingInstance", "action", "reason"), "x"),
    },
    "ingresses.networking.k8s.io": {"spec": {"rules": [{"host": "a.b"}]}},
    "roles.rbac.authorization.k8s.io": {
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    },
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": {"webhooks": [_HOOK]},
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": {"webhooks": [_HOOK]},
}


@st.composite
def touched(draw: st.DrawFn, good: dict[str, Any], of: Message) -> dict[str, Any]:
    """Something good with one part, at any depth, changed, added or spoilt."""
    made = dict(good)
    names = [name for name in of.by_name if name not in ("metadata", "apiVersion", "kind")]
    name = draw(st.sampled_from(names))
    type_, there = of.by_name[name].type, good.get(name)
    inner = type_.of if isinstance(type_, ListOf) else type_
    if isinstance(inner, Message) and there and draw(st.integers(0, 4)):
        first = there[0] if isinstance(there, list) else there
        changed = draw(touched(first, inner))
        made[name] = [changed, *there[1:]] if isinstance(there, list) else changed
    else:
        made[name] = draw(values(type_, 3))
    return made


def documents(kind: Kind) -> st.SearchStrategy[dict[str, Any]]:
    of = message_of(kind.group, kind.kind)
    assert of is not None
    good = GOOD.get(kind.resource, {})
    metadata = {"name": "n", "uid": "u", **({"namespace": "ns"} if kind.namespaced else {})}
    anything = st.just(good) | touched(good, of) | touched(good, of) | messages(of)
    return anything.map(lambda made: copy.deepcopy({**made, "metadata": metadata}))


def written(kind: Kind, document: dict[str, Any], old: dict[str, Any] | None) -> dict[str, Any] | None:
    """The way every write goes; None where it is refused."""
    new = copy.deepcopy(document)
    new["apiVersion"], new["kind"] = kind.api_version, kind.kind
    try:
        kind.warn(new, old)
        kind.prepare(new, old)
        kind.shape.conform(new)
        if old is None:
            kind.complete(new)
    except Refused:
        return None
    if kind.shape.problems(new) or kind.check(new, old):
        return None
    return new


@pytest.mark.parametrize("resource", KINDS)
@given(data=st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_is_sent_is_kept_or_refused(resource: str, data: st.DataObject) -> None:
    kind = KINDS[resource]
    first = written(kind, data.draw(documents(kind)), None)
    if first is None:
        return
    encode(first)
    for column in kind.columns:
        column.read(first)
    kind.selectable(first)
    if kind.grace is not None:
        assert kind.grace(first, None) >= 0
    # What was taken in is taken in as it is, and nothing in it has become unchangeable.
    assert written(kind, first, first) == first
    written(kind, data.draw(documents(kind)), first)
