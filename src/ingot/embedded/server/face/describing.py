"""What there is: the root, discovery and OpenAPI documents, as answers that a client can keep.

Owns which document a path means, and the digests that tell a client that what it kept still holds. What the documents
say is the business of `discovery` and `openapi`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from ingot.embedded.server.documents import encode
from ingot.embedded.server.errors import not_acceptable
from ingot.embedded.server.face import answers, discovery
from ingot.embedded.server.face.auth import OPEN_PATHS
from ingot.embedded.server.face.openapi import OpenApi
from ingot.embedded.server.face.rendering import READABLE, media_types
from ingot.embedded.server.kinds.registry import Registry

# A document under its own digest never changes; a year is as good as for ever.
_KEPT: Final = "public, immutable, max-age=31536000"


class Describing:
    def __init__(self, registry: Registry) -> None:
        self._groups = discovery.groups(registry)
        self._openapi = OpenApi(registry)

    def answer(self, request: web.BaseRequest, parts: Sequence[str]) -> web.Response | None:
        """The document at this path; None where there is none."""
        match parts:
            case [""]:
                return answers.of_json({"paths": self._paths()})
            case ["api" | "apis" as root]:
                return self._discovery(request, core=root == "api")
            case ["api", "v1"]:
                return answers.of_json(discovery.resource_list("v1", self._groups[""]["v1"]))
            case ["apis", group] if group in self._groups:
                return answers.of_json(discovery.group(group, self._groups[group]))
            case ["apis", group, version] if version in self._groups.get(group, {}):
                resources = discovery.resource_list(f"{group}/{version}", self._groups[group][version])
                return answers.of_json(resources)
            case ["openapi", "v3"]:
                return answers.of_json(self._openapi.index())
            case ["openapi", "v3", *place]:
                return self._schemas(request, "/".join(place))
            case _:
                return None

    def _discovery(self, request: web.BaseRequest, *, core: bool) -> web.Response:
        found = {group: versions for group, versions in self._groups.items() if (group == "") is core}
        accept = request.headers.get("Accept", "")
        if content_type := discovery.wants_aggregated(accept):
            body = encode(discovery.aggregated(found, content_type))
            headers = {"Content-Type": content_type, "Vary": "Accept"}
            return _unless_kept(request, body, hashlib.sha256(body).hexdigest(), headers)
        if not any(
            wanted.name in READABLE and "as" not in wanted.parameters for wanted in media_types(accept)
        ):
            raise not_acceptable(
                "only the following media types are accepted: application/json, application/yaml, "
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            )
        if core:
            return answers.of_json(discovery.core_versions(request.host.encode("ascii", "replace").decode()))
        return answers.of_json(discovery.group_list(found))

    def _schemas(self, request: web.BaseRequest, place: str) -> web.Response | None:
        found = self._openapi.document(place)
        if found is None:
            return None
        body, digest = found
        asked = request.query.get("hash")
        if asked is not None and asked != digest:
            # What was asked for is gone. Whoever follows gets, and keeps, what there is now.
            return web.Response(status=301, headers={"Location": f"/openapi/v3/{place}?hash={digest}"})
        kept = {"Cache-Control": _KEPT} if asked else {}
        return _unless_kept(request, body, digest, {"Content-Type": answers.JSON, "Vary": "Accept", **kept})

    def _paths(self) -> list[str]:
        places = [
            f"/apis/{group}/{version}" if group else f"/api/{version}"
            for group, versions in self._groups.items()
            for version in versions
        ]
        return ["/api", "/apis", *places, *sorted(OPEN_PATHS), "/openapi/v3"]


def _unless_kept(request: web.BaseRequest, body: bytes, digest: str, headers: dict[str, str]) -> web.Response:
    """The document, or that what the client kept is still the same."""
    tag = f'"{digest.upper()}"'
    if tag in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers={"ETag": tag})
    return web.Response(body=body, headers={**headers, "ETag": tag})
