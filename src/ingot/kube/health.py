"""How the process is, for kubelets, supervisors and Prometheus: /livez, /healthz, /readyz, /metrics.

Owns an HTTPS server and the form of its answers, which is that of Kubernetes' own components. Alive is who answers at
all: a check that fails there has the process killed, which mends nothing that is missing elsewhere. Ready is who passes every
check. Health is open to everybody, because who probes has no credentials; the reasons of a failure, and the metrics, are for
those who have the token.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web
from prometheus_client import REGISTRY
from prometheus_client.exposition import choose_encoder

from ingot.kube.listening import HttpsServer
from ingot.trust import Secret, ServingTls

Check = Callable[[], str]
"""Why something is not ready; "" when it is. It must not block."""

_PING: Final[Mapping[str, Check]] = {"ping": lambda: ""}


class HealthServer(HttpsServer):
    """Answers until it is closed. Use it with `async with`."""

    def __init__(
        self, checks: Mapping[str, Check], *, host: str, port: int, tls: ServingTls, token: Secret
    ) -> None:
        self._ready = {**_PING, **checks}
        self._expected = f"Bearer {token.reveal()}".encode()
        app = web.Application(client_max_size=1024)
        app.router.add_get("/livez", self._live)
        app.router.add_get("/healthz", self._live)
        app.router.add_get("/readyz", self._readiness)
        app.router.add_get("/readyz/{check}", self._one_check)
        app.router.add_get("/metrics", self._metrics)
        super().__init__(app, host=host, port=port, tls=tls)

    async def _live(self, request: web.Request) -> web.Response:
        return self._report(request, _PING)

    async def _readiness(self, request: web.Request) -> web.Response:
        return self._report(request, self._ready)

    async def _one_check(self, request: web.Request) -> web.Response:
        name = request.match_info["check"]
        if name not in self._ready:
            return web.Response(
                status=404, text=f"there is no check of that name; there are: {', '.join(self._ready)}\n"
            )
        return self._report(request, {name: self._ready[name]})

    def _report(self, request: web.Request, checks: Mapping[str, Check]) -> web.Response:
        left_out = request.query.getall("exclude", [])
        found = {name: "" if name in left_out else check() for name, check in checks.items()}
        failed = any(found.values())
        if not failed and "verbose" not in request.query:
            return web.Response(text="ok")
        trusted = self._knows_token(request)
        lines = [
            f"[+]{name} excluded: ok" if name in left_out else _line(name, why, trusted=trusted)
            for name, why in found.items()
        ]
        what = request.path.strip("/").partition("/")[0]
        lines.append(f"{what} check {'failed' if failed else 'passed'}")
        return web.Response(status=500 if failed else 200, text="\n".join(lines) + "\n")

    async def _metrics(self, request: web.Request) -> web.Response:
        if not self._knows_token(request):
            return web.Response(
                status=401,
                text="the metrics token is missing or wrong\n",
                headers={"WWW-Authenticate": "Bearer"},
            )
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        body = await asyncio.to_thread(encode, REGISTRY)
        return web.Response(body=body, headers={"Content-Type": content_type})

    def _knows_token(self, request: web.Request) -> bool:
        given = request.headers.get("Authorization", "").encode(errors="replace")
        return hmac.compare_digest(given, self._expected)


def _line(name: str, why: str, *, trusted: bool) -> str:
    if not why:
        return f"[+]{name} ok"
    return f"[-]{name} failed: {why if trusted else 'reason withheld'}"
