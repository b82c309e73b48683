"""Questions about oneself: who am I, and what may I do. Answered from `auth`, never stored."""

from __future__ import annotations

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.face.auth import Identity, allowed
from ingot.embedded.server.face.discovery import Review
from ingot.embedded.server.kinds.kind import READ_VERBS


def answer(review: Review, who: Identity, question: Document) -> Document:
    made: Document = {
        "kind": review.kind,
        "apiVersion": f"{review.group}/{review.version}",
        "metadata": {"creationTimestamp": None},
    }
    match review.kind:
        case "SelfSubjectReview":
            made["status"] = {"userInfo": {"username": who.name, "groups": list(who.groups)}}
        case "SelfSubjectAccessReview":
            made["spec"] = question.get("spec") or {}
            made["status"] = _access(who, question)
        case _:
            made["spec"] = question.get("spec") or {}
            made["status"] = _rules(who)
    return made


def _access(who: Identity, question: Document) -> Document:
    wanted = dig(question, "spec", "resourceAttributes")
    if isinstance(wanted, dict):
        group = str(wanted.get("group") or "")
        resource = str(wanted.get("resource") or "")
        may = allowed(who, str(wanted.get("verb") or ""), f"{resource}.{group}" if group else resource)
    else:
        may = (
            who.may_write
            or str(dig(question, "spec", "nonResourceAttributes", "verb") or "").lower() == "get"
        )
    return {"allowed": may} if may else {"allowed": False, "reason": f"{who.name} may only look"}


def _rules(who: Identity) -> Document:
    if who.may_write:
        resources = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        paths = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
    else:
        resources = [{"verbs": list(READ_VERBS), "apiGroups": ["*"], "resources": ["* (but no secrets)"]}]
        paths = [{"verbs": ["get"], "nonResourceURLs": ["*"]}]
    return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}
