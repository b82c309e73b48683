"""Conditions of a webhook, in CEL: over the object, the one before, and the request.

All have to hold. One that is false settles it, whatever becomes of the others; one that cannot be evaluated counts as a failure
of the webhook.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ingot.embedded.server.documents import Document
from ingot.embedded.server.errors import forbidden
from ingot.embedded.server.kinds.cel.conditions import condition
from ingot.embedded.server.kinds.cel.expressions import EvaluationFailed, InvalidExpression
from ingot.embedded.server.writes.webhooks.attempt import Attempt
from ingot.embedded.server.writes.webhooks.hooks import Hook

log = logging.getLogger(__name__)


async def hold(hook: Hook, attempt: Attempt, request: Document) -> bool:
    """Whether the webhook wants to be asked. Raises 403 where that cannot be told and the webhook must be heard."""
    # Objects can be large, and everything in them is handed over.
    problems = await asyncio.to_thread(_problems, hook, request)
    if problems is None:
        return False
    if not problems:
        return True
    if not hook.must_answer:
        log.warning("webhook %s is left out: %s; its failure policy is Ignore", hook.name, problems[0])
        return False
    kind = attempt.kind
    details = {"name": attempt.key.name, "kind": kind.plural, **({"group": kind.group} if kind.group else {})}
    raise forbidden(f'{kind.resource} "{attempt.key.name}" is forbidden: {problems[0]}', details=details)


def _problems(hook: Hook, request: Document) -> list[str] | None:
    """What kept conditions from being evaluated; None when one of them is false."""
    data = {"object": request["object"], "oldObject": request["oldObject"], "request": _about(request)}
    found = []
    for _, text in hook.conditions:
        try:
            if condition(text).evaluate(data) is False:
                return None
        except (EvaluationFailed, InvalidExpression) as error:
            found.append(f"expression '{text}' resulted in error: {error}")
    return found


def _about(request: Document) -> dict[str, Any]:
    """The request without the objects, which are variables of their own. A part that is not there is empty."""
    left_out = ("object", "oldObject")
    told = {name: value for name, value in request.items() if name not in left_out}
    return {"name": "", "namespace": "", "subResource": "", "requestSubResource": "", **told}
