"""What Ironic hands on to a BMC: virtual media and subscriptions to its events. A part of `fake_ironic`.

Media is changed in the background, under the node's lock: the test says with `finish` or `fail` how that ends. Subscriptions are
made while one waits, and a BMC can be told to have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web

Fault = Callable[[int, str], web.Response]


class FakeMedia:
    def __init__(
        self, change: Callable[..., None], find: Callable[[str], dict[str, Any]], fault: Fault
    ) -> None:
        self._change = change
        self._find = find
        self._fault = fault
        self.drives: dict[str, str] = {}
        """What the BMC shows in the CD drive: Ironic's own name for the image, or nothing."""
        self.attached: list[str] = []
        self.under_way: dict[str, str] = {}
        self.subscriptions: dict[str, dict[str, Any]] = {}
        self.headers: list[dict[str, str]] = []
        self.next_id = 1
        self.error = ""
        """What the BMC answers to everything about subscriptions."""
        self.errors_left: int | None = None
        """How often it answers so; None: for ever."""

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/v1/nodes/{node}/vmedia", self._media)
        router.add_post("/v1/nodes/{node}/vmedia", self._attach)
        router.add_delete("/v1/nodes/{node}/vmedia", self._detach)
        router.add_route("*", "/v1/nodes/{node}/vendor_passthru", self._vendor)

    def finish(self, name: str) -> None:
        uuid = self._find(name)["uuid"]
        self.drives[uuid] = self.under_way.pop(uuid)
        # A lock is let go without a word.
        self._find(name)["reservation"] = None

    def fail(self, name: str, why: str) -> None:
        uuid = self._find(name)["uuid"]
        self.under_way.pop(uuid)
        self._change(
            name, reservation=None, last_error=f"Could not attach device cdrom to node {uuid}: {why}"
        )

    async def _media(self, request: web.Request) -> web.Response:
        image = self.drives.get(self._of(request)["uuid"], "")
        stick = {"media_types": ["USBStick"], "inserted": True, "image": "http://x/key.img"}
        disc = {"media_types": ["CD", "DVD"], "inserted": bool(image), "image": image}
        return web.json_response([stick, disc])

    async def _attach(self, request: web.Request) -> web.Response:
        body = await request.json()
        assert (body["device_type"], body["image_download_source"]) == ("cdrom", "http")
        self.attached.append(body["image_url"])
        return self._begin(request, f"https://127.0.0.1/redfish/cdrom-{self._of(request)['uuid']}.iso")

    async def _detach(self, request: web.Request) -> web.Response:
        assert request.query["device_types"] == "cdrom"
        return self._begin(request, "")

    def _begin(self, request: web.Request, image: str) -> web.Response:
        node = self._of(request)
        self.under_way[node["uuid"]] = image
        self._change(node["uuid"], reservation="127.0.0.1", last_error=None)
        return web.Response(status=204)

    async def _vendor(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else {}
        method = request.query["method"]
        if self.error and self.errors_left != 0:
            self.errors_left = self.errors_left - 1 if self.errors_left is not None else None
            text = f"Redfish exception occurred. Error: Failed. Subscription payload: {body}. Error: {self.error}"
            return self._fault(404 if method == "delete_subscription" else 500, text)
        match request.method, method:
            case "GET", "get_all_subscriptions":
                members = [
                    {"@odata.id": f"/redfish/v1/EventService/Subscriptions/{one}"}
                    for one in self.subscriptions
                ]
                return web.json_response({"Name": "Subscriptions", "Members": members})
            case "GET", "get_subscription" if "Destination" not in self.subscriptions[body["id"]]:
                text = (
                    "Error: The attribute Destination is missing from the resource /redfish/v1/EventService/x"
                )
                return self._fault(500, f"Redfish exception occurred. Error: {text}")
            case "GET", "get_subscription":
                return web.json_response(self.subscriptions[body["id"]])
            case "POST", "create_subscription":
                made = {key: body[key] for key in ("Destination", "Context")} | {"Id": str(self.next_id)}
                self.next_id += 1
                self.subscriptions[made["Id"]] = made
                self.headers.append(
                    {k: v for header in body.get("HttpHeaders", []) for k, v in header.items()}
                )
                return web.json_response(made)
            case "DELETE", "delete_subscription":
                del self.subscriptions[body["id"]]
                return web.Response(status=200)
        return self._fault(400, f"The driver redfish does not support the method {method}")

    def _of(self, request: web.Request) -> dict[str, Any]:
        return self._find(request.match_info["node"])
