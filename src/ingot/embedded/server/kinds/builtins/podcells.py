"""What `kubectl get pods` shows: how many programs are ready, what the pod is doing, how often it was restarted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.kinds.columns import AGE, NAME, Column, age

_OVER: Final = ("Succeeded", "Failed")


def _status(pod: Document) -> str:
    status = pod.get("status") or {}
    phase = status.get("phase", "")
    if dig(pod, "metadata", "deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if phase not in _OVER:
            return "Terminating"
    reason = str(status.get("reason") or phase)
    if _condition(pod, "PodScheduled").get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    if (preparing := _preparing(pod)) and _condition(pod, "Initialized").get("status") != "True":
        return preparing
    return _running(pod, reason)


def _preparing(pod: Document) -> str:
    """What the programs that run before the others do; empty when they are done."""
    wanted = {container["name"]: container for container in dig(pod, "spec", "initContainers") or ()}
    for index, container in enumerate(dig(pod, "status", "initContainerStatuses") or ()):
        state = container.get("state") or {}
        ended, waits = state.get("terminated"), state.get("waiting") or {}
        stays = wanted.get(container.get("name", ""), {}).get("restartPolicy") == "Always"
        if (ended is not None and ended.get("exitCode", 0) == 0) or (stays and container.get("started")):
            continue
        if ended is not None:
            return f"Init:{_ended(ended)}"
        if waits.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waits['reason']}"
        return f"Init:{index}/{len(wanted)}"
    return ""


def _running(pod: Document, reason: str) -> str:
    some_run = False
    for container in reversed(dig(pod, "status", "containerStatuses") or []):
        state = container.get("state") or {}
        if why := dig(state, "waiting", "reason"):
            reason = why
        elif "terminated" in state:
            reason = _ended(state["terminated"])
        elif container.get("ready") and "running" in state:
            some_run = True
    if reason == "Completed" and some_run:
        return "Running" if _condition(pod, "Ready").get("status") == "True" else "NotReady"
    return reason


def _ended(state: Document) -> str:
    if reason := state.get("reason"):
        return str(reason)
    return f"Signal:{state['signal']}" if state.get("signal") else f"ExitCode:{state.get('exitCode', 0)}"


def _condition(pod: Document, name: str) -> Document:
    for condition in dig(pod, "status", "conditions") or ():
        if condition.get("type") == name:
            return dict(condition)
    return {}


def _ready(pod: Document) -> str:
    wanted = len(dig(pod, "spec", "containers") or ())
    ready = sum(1 for _ in _ready_ones(dig(pod, "status", "containerStatuses") or ()))
    return f"{ready}/{wanted}"


def _ready_ones(containers: Iterable[Document]) -> Iterable[Document]:
    return (found for found in containers if found.get("ready") and "running" in (found.get("state") or {}))


def _restarts(pod: Document) -> str:
    statuses = dig(pod, "status", "containerStatuses") or ()
    count = sum(container.get("restartCount", 0) for container in statuses)
    last = max((dig(found, "lastState", "terminated", "finishedAt") or "" for found in statuses), default="")
    return f"{count} ({age(last)} ago)" if count and last else str(count)


def _gates(pod: Document) -> str:
    gates = dig(pod, "spec", "readinessGates") or ()
    if not gates:
        return "<none>"
    held = sum(_condition(pod, gate["conditionType"]).get("status") == "True" for gate in gates)
    return f"{held}/{len(gates)}"


POD_COLUMNS: Final = (
    NAME,
    Column("Ready", _ready, description="How many of its programs are ready."),
    Column("Status", _status, description="What the pod is doing."),
    Column("Restarts", _restarts, description="How often its programs were started again."),
    AGE,
    Column("IP", lambda d: dig(d, "status", "podIP") or "<none>", priority=1, description="Its address."),
    Column(
        "Node", lambda d: dig(d, "spec", "nodeName") or "<none>", priority=1, description="Where it runs."
    ),
    Column(
        "Nominated Node",
        lambda d: dig(d, "status", "nominatedNodeName") or "<none>",
        priority=1,
        description="Where it will run once there is room.",
    ),
    Column("Readiness Gates", _gates, priority=1, description="Further conditions that hold."),
)
