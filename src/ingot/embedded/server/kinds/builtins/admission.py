"""Webhook configurations: services of others that are asked about changes before they are made."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from ingot.embedded.server.documents import Document
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.builtins import rules
from ingot.embedded.server.kinds.builtins.making import built_in
from ingot.embedded.server.kinds.cel import conditions
from ingot.embedded.server.kinds.columns import AGE, NAME, Column
from ingot.embedded.server.kinds.names import subdomain_problem

GROUP: Final = "admissionregistration.k8s.io"
# The forms of the question this API can ask.
_REVIEWS: Final = ("v1",)


def _check(new: Document, old: Document | None) -> list[Cause]:
    webhooks = new.get("webhooks", [])
    found = rules.duplicates(webhooks, "name", "webhooks")
    for index, webhook in enumerate(webhooks):
        found += _webhook(webhook, f"webhooks[{index}]")
    return found


def _webhook(webhook: Document, at: str) -> list[Cause]:
    name = webhook.get("name", "")
    found: list[Cause] = []
    if (problem := subdomain_problem(name)) or name.count(".") < 2:
        words = problem or "should be a domain with at least three segments separated by dots"
        found.append(cause("Invalid", f"{at}.name", words, shown=rules.shown(name)))
    if not webhook.get("admissionReviewVersions"):
        words = f"must specify one of {', '.join(_REVIEWS)}"
        found.append(cause("Required", f"{at}.admissionReviewVersions", words))
    elif not set(webhook["admissionReviewVersions"]) & set(_REVIEWS):
        words = f"must include at least one of {', '.join(_REVIEWS)}"
        shown = rules.shown(webhook["admissionReviewVersions"])
        found.append(cause("Invalid", f"{at}.admissionReviewVersions", words, shown=shown))
    seconds = webhook.get("timeoutSeconds", 10)
    if not 1 <= seconds <= 30:
        words = "the timeout value must be between 1 and 30 seconds"
        found.append(cause("Invalid", f"{at}.timeoutSeconds", words, shown=str(seconds)))
    client = webhook.get("clientConfig") or {}
    if ("url" in client) == ("service" in client):
        words = "exactly one of url or service is required"
        found.append(cause("Required", f"{at}.clientConfig", words))
    elif "url" in client:
        found += _url(client["url"], f"{at}.clientConfig.url")
    for index, rule in enumerate(webhook.get("rules", ())):
        found += _rule(rule, f"{at}.rules[{index}]")
    for index, condition in enumerate(webhook.get("matchConditions", ())):
        if problem := conditions.problem(condition["expression"]):
            where = f"{at}.matchConditions[{index}].expression"
            found.append(cause("Invalid", where, problem, shown=rules.shown(condition["expression"])))
    for part in ("namespaceSelector", "objectSelector"):
        found += rules.label_selector(webhook.get(part) or {}, f"{at}.{part}")
    return found


def _url(url: str, at: str) -> list[Cause]:
    form = "; desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
        host, user = parts.hostname, parts.username
    except ValueError as error:
        return [cause("Required", at, f"url must be a valid URL: {error}{form}")]
    if parts.scheme != "https":
        words = f"'https' is the only allowed URL scheme{form}"
        return [cause("Invalid", at, words, shown=rules.shown(parts.scheme))]
    if not host:
        return [cause("Invalid", at, f"host must be specified{form}", shown='""')]
    if user is not None:
        # It may be a password, so it is not repeated.
        return [cause("Invalid", at, "user information is not permitted in URL")]
    for name, value in (("fragments", parts.fragment), ("query parameters", parts.query)):
        if value:
            return [cause("Invalid", at, f"{name} are not permitted in URL", shown=rules.shown(value))]
    return []


def _rule(rule: Document, at: str) -> list[Cause]:
    found: list[Cause] = []
    for name in ("operations", "apiGroups", "apiVersions", "resources"):
        values = rule.get(name, [])
        if not values:
            found.append(cause("Required", f"{at}.{name}", ""))
        elif "*" in values and len(values) > 1 and name != "resources":
            words = "if '*' is present, must not specify other values"
            found.append(cause("Invalid", f"{at}.{name}", words, shown=rules.shown(values)))
    return found


_COLUMNS: Final = (
    NAME,
    Column(
        "Webhooks", lambda d: len(d.get("webhooks") or ()), type="integer", description="How many services."
    ),
    AGE,
)

VALIDATING_WEBHOOKS: Final = built_in(
    GROUP,
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    categories=("api-extensions",),
    namespaced=False,
    generation=True,
    columns=_COLUMNS,
    check=_check,
)
MUTATING_WEBHOOKS: Final = built_in(
    GROUP,
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    categories=("api-extensions",),
    namespaced=False,
    generation=True,
    columns=_COLUMNS,
    check=_check,
)
