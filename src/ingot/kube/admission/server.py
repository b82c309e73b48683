"""The HTTPS server that the API asks.

Owns the listener and what is said to a caller that does not keep to the protocol. It changes nothing and knows no secret, so a
caller learns only what the rules say of an object he already has; where even that is too much, a CA for client certificates keeps
everybody out but the API. A rule that breaks is an error of ours, answered with 500: whether the object is then stored is for the
registration's failure policy to say.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from aiohttp import web

from ingot.kube.admission.review import Judge, Malformed, answer, read
from ingot.kube.listening import HttpsServer
from ingot.trust import ServingTls, redact

log = logging.getLogger(__name__)

PATH: Final = "/validate"
LARGEST_BODY: Final = 8 * 1024 * 1024
"""The API stores no object over 1.5 MB or so; a question holds up to two."""
_LONG: Final = 64 * 1024
"""Decoding more than this takes its time, and takes it elsewhere."""


class AdmissionServer(HttpsServer):
    """Answers questions until it is closed. Use it with `async with`."""

    def __init__(self, judge: Judge, *, host: str, port: int, tls: ServingTls) -> None:
        self._judge = judge
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_post(PATH, self._asked)
        super().__init__(app, host=host, port=port, tls=tls)

    async def _asked(self, request: web.Request) -> web.Response:
        if request.content_type != "application/json":
            return _refused(415, f"send application/json, not {request.content_type}")
        body = await request.read()
        try:
            uid, question = await asyncio.to_thread(read, body) if len(body) > _LONG else read(body)
        except Malformed as error:
            return _refused(400, str(error))
        try:
            verdict = await self._judge(question)
        except Exception as error:  # the edge of a request: a bug in a rule must be told, and stay here
            log.exception("%s %s %s cannot be judged", question.operation, question.kind, question.key)
            return _refused(
                500, redact(f"{question.kind} {question.key} cannot be judged: {type(error).__name__}")
            )
        if verdict.problems:
            log.info("%s %s %s is refused", question.operation, question.kind, question.key)
        return web.Response(body=answer(uid, question, verdict), content_type="application/json")


def _refused(code: int, sentence: str) -> web.Response:
    return web.Response(status=code, text=f"{sentence}\n")
