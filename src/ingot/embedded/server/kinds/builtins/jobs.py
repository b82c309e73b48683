"""Job: pods that run until enough of them have ended well.

A job finds its pods by its own UID: the labels and the selector for that are made here when it is created, as
Kubernetes makes them. What a job runs cannot be changed, except while it has never started.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.builtins import rules
from ingot.embedded.server.kinds.builtins.making import built_in
from ingot.embedded.server.kinds.builtins.workloads import (
    TEMPLATE_COLUMNS,
    fill_in_template,
    template_problems,
)
from ingot.embedded.server.kinds.columns import AGE, NAME, Column, age, duration

_UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
_NAME_LABEL: Final = "batch.kubernetes.io/job-name"
_MARKS: Final = ("labels", "annotations")
_PLACE: Final = ("nodeSelector", "affinity", "tolerations", "schedulingGates")
_NO_LIMIT: Final = 2**31 - 1


def _prepare(new: Document, old: Document | None) -> None:
    fill_in_template(new)
    spec = new["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", _NO_LIMIT if "backoffLimitPerIndex" in spec else 6)
    if "podFailurePolicy" in spec:
        spec.setdefault("podReplacementPolicy", "Failed")


def _complete(job: Document) -> None:
    if not job["spec"].get("manualSelector"):
        _find_by_uid(job)
    if not job["metadata"].get("labels") and (labels := dig(job, "spec", "template", "metadata", "labels")):
        job["metadata"]["labels"] = dict(labels)


def _find_by_uid(job: Document) -> None:
    uid, name = job["metadata"].get("uid", ""), job["metadata"].get("name", "")
    labels = job["spec"]["template"].setdefault("metadata", {}).setdefault("labels", {})
    labels |= {_UID_LABEL: uid, "controller-uid": uid, _NAME_LABEL: name, "job-name": name}
    selector = job["spec"].setdefault("selector", {})
    selector.setdefault("matchLabels", {}).setdefault(_UID_LABEL, uid)


def _check(new: Document, old: Document | None) -> list[Cause]:
    spec = new["spec"]
    found: list[Cause] = []
    for name in (
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "backoffLimitPerIndex",
        "ttlSecondsAfterFinished",
    ):
        found += rules.not_negative(spec.get(name), f"spec.{name}")
    if spec.get("selector") is None:
        found.append(cause("Required", "spec.selector", ""))
    else:
        labels = dig(spec, "template", "metadata", "labels") or {}
        found += rules.label_selector(spec["selector"], "spec.selector")
        if not rules.selects(spec["selector"], labels):
            words = "`selector` does not match template `labels`"
            found.append(cause("Invalid", "spec.template.metadata.labels", words, shown=rules.shown(labels)))
    if dig(spec, "template", "spec", "restartPolicy") == "Always":
        words = 'valid values: "OnFailure", "Never"'
        found.append(cause("Required", "spec.template.spec.restartPolicy", words))
    found += template_problems(new, restarts=("Always", "OnFailure", "Never"))
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        words = "when completion mode is Indexed"
        found.append(cause("Required", "spec.completions", words))
    return found + _unchangeable(new, old)


def _unchangeable(new: Document, old: Document | None) -> list[Cause]:
    if old is None:
        return []
    found = rules.immutable(new, old, "spec", "selector")
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        found += rules.immutable(new, old, "spec", name)
    indexed = new["spec"].get("completionMode") == "Indexed"
    if not (indexed and new["spec"].get("completions") == new["spec"].get("parallelism")):
        found += rules.immutable(new, old, "spec", "completions")
    # Until a suspended job starts, somebody may still say where it shall run.
    waits = old["spec"].get("suspend") and dig(old, "status", "startTime") is None
    if not (waits and _without_place(new) == _without_place(old)):
        found += rules.immutable(new, old, "spec", "template")
    return found


def _without_place(job: Document) -> Document:
    """The template of a job but for what says where its pods shall run."""
    template = dict(job["spec"]["template"])
    metadata = {name: value for name, value in template.get("metadata", {}).items() if name not in _MARKS}
    spec = {name: value for name, value in template.get("spec", {}).items() if name not in _PLACE}
    return {**template, "metadata": metadata, "spec": spec}


def _status(job: Document) -> str:
    holding = [
        condition.get("type")
        for condition in dig(job, "status", "conditions") or ()
        if condition.get("status") == "True"
    ]
    for name in ("Complete", "Failed"):
        if name in holding:
            return name
    if dig(job, "metadata", "deletionTimestamp"):
        return "Terminating"
    for name in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if name in holding:
            return name
    return "Running"


def _completions(job: Document) -> str:
    done = dig(job, "status", "succeeded") or 0
    if (wanted := dig(job, "spec", "completions")) is not None:
        return f"{done}/{wanted}"
    parallel = dig(job, "spec", "parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _took(job: Document) -> str:
    start, end = dig(job, "status", "startTime"), dig(job, "status", "completionTime")
    if not start:
        return ""
    if not end:
        return age(start)
    return duration(int((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()))


JOBS: Final = built_in(
    "batch",
    "Job",
    "jobs",
    categories=("all",),
    status=True,
    generation=True,
    columns=(
        NAME,
        Column("Status", _status, description="Whether it runs, is complete, or has failed."),
        Column("Completions", _completions, description="How many pods have ended well, of how many."),
        Column("Duration", _took, description="How long it took, or takes already."),
        AGE,
        *TEMPLATE_COLUMNS,
    ),
    fields={"status.successful": lambda job: str(dig(job, "status", "succeeded") or 0)},
    prepare=_prepare,
    complete=_complete,
    check=_check,
)
