"""Scale: how many of something an object stands for, asked and set without knowing the kind.

`kubectl scale` and autoscalers see every such object as an `autoscaling/v1` Scale: the wanted number, the observed
one, and the selector of what is counted. Where these are in an object is the only thing a kind has to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause, cause

API_VERSION: Final = "autoscaling/v1"
KIND: Final = "Scale"
_MOST: Final = 2**31 - 1


def _no_selector(document: Document) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a kind keeps the wanted and the observed number, and how the selector is read."""

    wanted: tuple[str, ...] = ("spec", "replicas")
    observed: tuple[str, ...] = ("status", "replicas")
    selector: Callable[[Document], str] = _no_selector


def label_selector_text(document: Document) -> str:
    """`spec.selector` of a workload in the words of `labelSelector`: `app=web,tier in (a,b)`."""
    selector = dig(document, "spec", "selector") or {}
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for wanted in selector.get("matchExpressions") or ():
        key, values = wanted.get("key", ""), ",".join(sorted(wanted.get("values") or ()))
        match wanted.get("operator"):
            case "In":
                parts.append(f"{key} in ({values})")
            case "NotIn":
                parts.append(f"{key} notin ({values})")
            case "Exists":
                parts.append(key)
            case "DoesNotExist":
                parts.append(f"!{key}")
    return ",".join(parts)


def scale_of(scale: Scale, document: Document) -> Document:
    """The object, seen as a Scale."""
    metadata = document["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Document = {"replicas": _count(dig(document, *scale.observed))}
    if selector := scale.selector(document):
        status["selector"] = selector
    count = _count(dig(document, *scale.wanted))
    return {
        "kind": KIND,
        "apiVersion": API_VERSION,
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        # A number that is nought is left out, as Kubernetes writes it.
        "spec": {"replicas": count} if count else {},
        "status": status,
    }


def scaled(scale: Scale, document: Document, wish: Document) -> Document:
    """The object with the number that a Scale wishes for, changed in place."""
    at = document
    for part in scale.wanted[:-1]:
        at = at.setdefault(part, {})
    at[scale.wanted[-1]] = wanted(wish)
    return document


def problems(scale: Scale, document: Document) -> list[Cause]:
    """What is wrong with the numbers of an object, whoever wrote them."""
    found: list[Cause] = []
    for path in (scale.wanted, scale.observed):
        value, where = dig(document, *path), f".{'.'.join(path)}"
        if isinstance(value, int) and value < 0:
            found.append(cause("Invalid", where, "should be a non-negative integer", shown=str(value)))
        elif isinstance(value, int) and value > _MOST:
            words = f"should be less than or equal to {_MOST}"
            found.append(cause("Invalid", where, words, shown=str(value)))
    return found


def wanted(wish: Document) -> int:
    """The number that a Scale wishes for; none is nought."""
    return int(dig(wish, "spec", "replicas") or 0)


def misshapen(wish: Document) -> str:
    """What is of the wrong type in a Scale that somebody sent; empty if nothing is."""
    for name in ("spec", "metadata"):
        if not isinstance(wish.get(name) or {}, dict):
            return f"{name} must be an object"
    count = dig(wish, "spec", "replicas") or 0
    if not isinstance(count, int) or isinstance(count, bool) or abs(count) > _MOST:
        return "spec.replicas must be a 32-bit integer"
    return ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
