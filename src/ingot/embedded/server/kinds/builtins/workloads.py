"""Deployment, DaemonSet, ReplicaSet and StatefulSet: a template of pods, and how many of them there shall be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.builtins import podspecs, rules
from ingot.embedded.server.kinds.builtins.making import Check, Prepare, built_in
from ingot.embedded.server.kinds.columns import AGE, NAME, Column
from ingot.embedded.server.kinds.kind import Kind, field_at
from ingot.embedded.server.kinds.scale import Scale, label_selector_text

GROUP: Final = "apps"
_SCALE: Final = Scale(selector=label_selector_text)


def fill_in_template(new: Document) -> None:
    """The template is there, as a pod's spec with defaults."""
    spec = new.setdefault("spec", {})
    podspecs.fill_in(spec.setdefault("template", {}).setdefault("spec", {}))


def _rolls(new: Document, field: str) -> None:
    """Only a roll-out has something to say about how it goes."""
    strategy = new["spec"].setdefault(field, {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {})


def _prepared(strategy: str) -> Prepare:
    def prepare(new: Document, old: Document | None) -> None:
        fill_in_template(new)
        if strategy:
            _rolls(new, strategy)

    return prepare


def _prepare_stateful(new: Document, old: Document | None) -> None:
    _prepared("updateStrategy")(new, old)
    for claim in new["spec"].get("volumeClaimTemplates", ()):
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}}


def template_problems(new: Document, *, restarts: tuple[str, ...] = ("Always",)) -> list[Cause]:
    template = new["spec"].get("template") or {}
    found = podspecs.problems(template.get("spec") or {}, "spec.template.spec")
    policy = dig(template, "spec", "restartPolicy")
    if policy not in restarts:
        listed = ", ".join(f'"{name}"' for name in restarts)
        found.append(
            cause(
                "NotSupported",
                "spec.template.spec.restartPolicy",
                f"supported values: {listed}",
                shown=rules.shown(policy),
            )
        )
    labels = dig(template, "metadata", "labels") or {}
    return found + rules.labels(labels, "spec.template.labels")


def _selector_problems(new: Document, kind: str) -> list[Cause]:
    selector = new["spec"].get("selector")
    if selector is None:
        return [cause("Required", "spec.selector", "")]
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        words = f"empty selector is invalid for {kind}"
        return [cause("Invalid", "spec.selector", words, shown=rules.shown(selector))]
    if found := rules.label_selector(selector, "spec.selector"):
        return found
    labels = dig(new, "spec", "template", "metadata", "labels") or {}
    if not rules.selects(selector, labels):
        words = "`selector` does not match template `labels`"
        return [cause("Invalid", "spec.template.metadata.labels", words, shown=rules.shown(labels))]
    return []


def _checked(kind: str, *more: Callable[[Document, Document | None], list[Cause]]) -> Check:
    def check(new: Document, old: Document | None) -> list[Cause]:
        spec = new["spec"]
        found = _selector_problems(new, kind)
        for name in ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
            found += rules.not_negative(spec.get(name), f"spec.{name}")
        found += template_problems(new) + rules.immutable(new, old, "spec", "selector")
        return found + [problem for rule in more for problem in rule(new, old)]

    return check


def _deployment_strategy(new: Document, old: Document | None) -> list[Cause]:
    spec = new["spec"]
    found: list[Cause] = []
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate" and "rollingUpdate" in strategy:
        words = "may not be specified when strategy `type` is 'Recreate'"
        found.append(cause("Forbidden", "spec.strategy.rollingUpdate", words))
    rolling = strategy.get("rollingUpdate") or {}
    for name in ("maxUnavailable", "maxSurge"):
        found += rules.share(rolling.get(name), f"spec.strategy.rollingUpdate.{name}")
    if rolling and all(rolling.get(name) in (0, "0%") for name in ("maxUnavailable", "maxSurge")):
        words = "may not be 0 when `maxSurge` is 0"
        shown = rules.shown(rolling["maxUnavailable"])
        found.append(cause("Invalid", "spec.strategy.rollingUpdate.maxUnavailable", words, shown=shown))
    deadline, least = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds", 0)
    if deadline is not None and deadline <= least:
        words = "must be greater than minReadySeconds"
        found.append(cause("Invalid", "spec.progressDeadlineSeconds", words, shown=str(deadline)))
    return found


def _daemon_strategy(new: Document, old: Document | None) -> list[Cause]:
    rolling = dig(new, "spec", "updateStrategy", "rollingUpdate") or {}
    where = "spec.updateStrategy.rollingUpdate"
    found = [
        problem
        for name in ("maxUnavailable", "maxSurge")
        for problem in rules.share(rolling.get(name), f"{where}.{name}")
    ]
    if rolling and all(rolling.get(name) in (0, "0%") for name in ("maxUnavailable", "maxSurge")):
        found.append(cause("Required", f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return found


_STATEFUL_CHANGES: Final = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
)


def _stateful_changes(new: Document, old: Document | None) -> list[Cause]:
    if old is None:
        return []
    kept = {name: value for name, value in new["spec"].items() if name not in _STATEFUL_CHANGES}
    before = {name: value for name, value in old["spec"].items() if name not in _STATEFUL_CHANGES}
    if kept == before:
        return []
    words = f"of a stateful set only {', '.join(sorted(_STATEFUL_CHANGES))} can be changed"
    return [cause("Forbidden", "spec", words)]


# What is shown


def _containers(document: Document) -> list[Document]:
    return dig(document, "spec", "template", "spec", "containers") or []


TEMPLATE_COLUMNS: Final = (
    Column(
        "Containers",
        lambda d: ",".join(container["name"] for container in _containers(d)),
        priority=1,
        description="The programs of a pod.",
    ),
    Column(
        "Images",
        lambda d: ",".join(container.get("image", "") for container in _containers(d)),
        priority=1,
        description="Their images.",
    ),
    Column("Selector", lambda d: label_selector_text(d) or "<none>", priority=1, description="Its pods."),
)


def _count(name: str, title: str, words: str, *, type_: str = "integer") -> Column:
    return Column(title, lambda d: dig(d, "status", name) or 0, type=type_, description=words)


def _wanted(document: Document) -> int:
    return dig(document, "spec", "replicas") or 0


_OF_WANTED: Final = Column(
    "Ready",
    lambda d: f"{dig(d, 'status', 'readyReplicas') or 0}/{_wanted(d)}",
    description="How many of the wanted pods are ready.",
)

DEPLOYMENTS: Final = built_in(
    GROUP,
    "Deployment",
    "deployments",
    short_names=("deploy",),
    categories=("all",),
    status=True,
    generation=True,
    scale=_SCALE,
    columns=(
        NAME,
        _OF_WANTED,
        _count("updatedReplicas", "Up-to-date", "How many are of the newest template.", type_="string"),
        _count("availableReplicas", "Available", "How many have been ready for a while.", type_="string"),
        AGE,
        *TEMPLATE_COLUMNS,
    ),
    prepare=_prepared("strategy"),
    check=_checked("deployment", _deployment_strategy),
)

DAEMON_SETS: Final = built_in(
    GROUP,
    "DaemonSet",
    "daemonsets",
    short_names=("ds",),
    categories=("all",),
    status=True,
    generation=True,
    columns=(
        NAME,
        _count("desiredNumberScheduled", "Desired", "How many nodes it is for."),
        _count("currentNumberScheduled", "Current", "On how many of them it is."),
        _count("numberReady", "Ready", "On how many it is ready."),
        _count("updatedNumberScheduled", "Up-to-date", "How many are of the newest template."),
        _count("numberAvailable", "Available", "How many have been ready for a while."),
        Column(
            "Node Selector",
            lambda d: (
                ",".join(
                    f"{key}={value}"
                    for key, value in sorted(
                        (dig(d, "spec", "template", "spec", "nodeSelector") or {}).items()
                    )
                )
                or "<none>"
            ),
            description="Which nodes it is for.",
        ),
        AGE,
        *TEMPLATE_COLUMNS,
    ),
    prepare=_prepared("updateStrategy"),
    check=_checked("daemonset", _daemon_strategy),
)


def _replicas_column(title: str, read: Callable[[Document], object], words: str) -> Column:
    return Column(title, read, type="integer", description=words)


REPLICA_SETS: Final = built_in(
    GROUP,
    "ReplicaSet",
    "replicasets",
    short_names=("rs",),
    categories=("all",),
    status=True,
    generation=True,
    scale=_SCALE,
    columns=(
        NAME,
        _replicas_column("Desired", _wanted, "How many pods are wanted."),
        _count("replicas", "Current", "How many there are."),
        _count("readyReplicas", "Ready", "How many are ready."),
        AGE,
        *TEMPLATE_COLUMNS,
    ),
    fields={"status.replicas": field_at(".status.replicas")},
    prepare=_prepared(""),
    check=_checked("replicaset"),
)

STATEFUL_SETS: Final = built_in(
    GROUP,
    "StatefulSet",
    "statefulsets",
    short_names=("sts",),
    categories=("all",),
    status=True,
    generation=True,
    scale=_SCALE,
    columns=(NAME, _OF_WANTED, AGE, *TEMPLATE_COLUMNS[:2]),
    prepare=_prepare_stateful,
    check=_checked("statefulset", _stateful_changes),
)

WORKLOADS: Final[tuple[Kind, ...]] = (DEPLOYMENTS, DAEMON_SETS, REPLICA_SETS, STATEFUL_SETS)
