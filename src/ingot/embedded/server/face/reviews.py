"""Questions that are posted and answered, and never stored: who am I, what may I, what may somebody, whose token is this.

The answers come from `auth`: they tell what this server would do, whatever roles are stored. As on a cluster, a subject
is judged by its groups, and only the admin may ask about others.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from ingot.embedded.server.documents import Document, dig, encode, timestamp
from ingot.embedded.server.errors import Cause, Refused, Unreadable, bad_request, cause
from ingot.embedded.server.face.auth import (
    READ_ONLY,
    REVIEWS_OF_ONESELF,
    Gate,
    Identity,
    allowed,
    require,
    subject,
)
from ingot.embedded.server.face.discovery import REVIEWS, Review
from ingot.embedded.server.kinds.builtins import message_of
from ingot.embedded.server.kinds.builtins.tables import schema_of, take_in
from ingot.embedded.server.kinds.builtins.tables.intake import Undecodable
from ingot.embedded.server.kinds.kind import READ_VERBS, Kind
from ingot.embedded.server.kinds.schema import Shape
from ingot.embedded.server.writes.writing import Manner


def at(parts: list[str]) -> tuple[Review, str] | None:
    """The review that is asked for at this path, and the namespace it is about."""
    match parts:
        case ["apis", group, version, "namespaces", namespace, plural]:
            wanted, inside = (group, version, plural), namespace
        case ["apis", group, version, plural]:
            wanted, inside = (group, version, plural), ""
        case _:
            return None
    for review in REVIEWS:
        if (review.group, review.version, review.plural) == wanted and review.namespaced is bool(inside):
            return review, inside
    return None


def permit(review: Review, namespace: str, who: Identity) -> None:
    require(who, "create", f"{review.plural}.{review.group}", namespace=namespace, name="")


def take_in_question(review: Review, question: Document, manner: Manner) -> None:
    """Bring the question into shape, in place. Raises 400 where it cannot be one."""
    for name, wanted in (("apiVersion", f"{review.group}/{review.version}"), ("kind", review.kind)):
        if question.get(name) not in (None, "", wanted):
            found, version = question.get("kind"), question.get("apiVersion")
            raise bad_request(f'{found} in version "{version}" cannot be handled as a {review.kind}')
    message = message_of(review.group, review.kind)
    assert message is not None
    try:
        take_in(question, message)
    except Undecodable as error:
        raise Unreadable(review.kind, review.version, str(error)) from None
    unknown = [f'unknown field "{path}"' for path in _shape(review).conform(question)]
    doubts = [] if manner.field_validation == "Ignore" else [*manner.doubts, *unknown]
    if doubts and manner.field_validation == "Strict":
        raise Unreadable(review.kind, review.version, f"strict decoding error: {', '.join(doubts)}")
    manner.warnings += doubts


@cache
def _shape(review: Review) -> Shape:
    found = message_of(review.group, review.kind)
    assert found is not None
    return Shape(schema_of(found))


def answer(
    review: Review, namespace: str, question: Document, *, who: Identity, gate: Gate, kinds: Iterable[Kind]
) -> Document:
    spec = question.get("spec") or {}
    made: Document = {
        "kind": review.kind,
        "apiVersion": f"{review.group}/{review.version}",
        "metadata": {"namespace": namespace} if namespace else {},
    }
    match review.kind:
        case "SelfSubjectReview":
            made["metadata"] = {"creationTimestamp": timestamp()}
            made["status"] = {"userInfo": _user(who)}
        case "TokenReview":
            made |= {"spec": spec, "status": _token(spec, gate)}
        case "SelfSubjectRulesReview":
            if not spec.get("namespace"):
                raise bad_request("no namespace on request")
            made |= {"spec": {}, "status": _rules(who, kinds)}
        case "SelfSubjectAccessReview":
            _check(review, spec, namespace)
            made |= {"spec": spec, "status": _access(who, spec)}
        case _:
            _check(review, spec, namespace)
            made |= {
                "spec": spec,
                "status": _access(subject(spec.get("user", ""), spec.get("groups", ())), spec),
            }
    return made


def _check(review: Review, spec: Document, namespace: str) -> None:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        words = "cannot be specified in combination with resourceAttributes"
        problem = cause("Invalid", "spec.nonResourceAttributes", words, shown=encode(path).decode())
    elif resource is None and path is None:
        words = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        problem = cause("Invalid", "spec.resourceAttributes", words, shown="null")
    elif review.kind != "SelfSubjectAccessReview" and not spec.get("user") and not spec.get("groups"):
        words = "at least one of user or group must be specified"
        problem = cause("Invalid", "spec.user", words, shown='""')
    elif namespace and dig(resource, "namespace") != namespace:
        shown = encode(dig(resource, "namespace") or "").decode()
        words = "must match metadata.namespace"
        problem = cause("Invalid", "spec.resourceAttributes.namespace", words, shown=shown)
    else:
        return
    raise _invalid(review, problem)


def _invalid(review: Review, problem: Cause) -> Refused:
    message = f'{review.kind}.{review.group} "" is invalid: {problem.field}: {problem.message}'
    return Refused(422, "Invalid", message, details={"group": review.group}, causes=[problem])


def _access(who: Identity, spec: Document) -> Document:
    wanted = spec.get("resourceAttributes")
    if wanted is not None:
        group, resource = wanted.get("group", ""), wanted.get("resource", "")
        may = allowed(who, wanted.get("verb", ""), f"{resource}.{group}" if group else resource)
    else:
        verb = str(dig(spec, "nonResourceAttributes", "verb") or "").lower()
        may = who.may_write or (who.may_read and verb == "get")
    if may:
        return {"allowed": True}
    return (
        {"allowed": False, "reason": "may look at everything but Secrets"}
        if who.may_read
        else {"allowed": False}
    )


def _user(who: Identity) -> Document:
    return {"username": who.name, "uid": who.uid, "groups": list(who.groups)}


def _token(spec: Document, gate: Gate) -> Document:
    if not spec.get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    try:
        who = gate.identify(f"Bearer {spec['token']}")
    except Refused:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": _user(who)}


def _rules(who: Identity, kinds: Iterable[Kind]) -> Document:
    paths: list[dict[str, Any]]
    if who.may_write:
        resources = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        paths = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
    else:
        resources = _readable(kinds)
        paths = [{"verbs": ["get"], "nonResourceURLs": ["*"]}]
    return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}


def _readable(kinds: Iterable[Kind]) -> list[dict[str, Any]]:
    """Rules only add, so everything but Secrets is spelt out: each resource of their group, and other groups whole."""
    core: set[str] = set()
    groups: set[str] = set()
    for kind in kinds:
        if kind.group:
            groups.add(kind.group)
        elif allowed(READ_ONLY, "get", kind.resource):
            core |= {kind.plural, *((f"{kind.plural}/status",) if kind.has_status else ())}
    own = [
        {"verbs": ["create"], "apiGroups": [review.group], "resources": [review.plural]}
        for review in REVIEWS
        if review.plural in REVIEWS_OF_ONESELF
    ]
    verbs = list(READ_VERBS)
    return [
        {"verbs": verbs, "apiGroups": [""], "resources": sorted(core)},
        {"verbs": verbs, "apiGroups": sorted(groups), "resources": ["*"]},
        *own,
    ]
