"""An Ironic to test against: a real HTTPS server with a small honest state machine, which can be told to misbehave.

It refuses what Ironic refuses, with Ironic's status codes and texts. Nothing happens by itself: a request puts a node into its
transient state, and the test says with `finish` or `fail` how that ends. What it pushes goes through `plugin`, if there is one.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web
from fake_media import FakeMedia

from ingot.trust import Certificate

# (state, verb) → (state it goes to at once, where success leads, where failure leads)
TRANSITIONS: dict[tuple[str, str], tuple[str, str, str]] = {
    ("enroll", "manage"): ("verifying", "manageable", "enroll"),
    ("manageable", "provide"): ("cleaning", "available", "clean failed"),
    ("manageable", "clean"): ("cleaning", "manageable", "clean failed"),
    ("active", "service"): ("servicing", "active", "service failed"),
    ("service failed", "service"): ("servicing", "active", "service failed"),
    ("manageable", "inspect"): ("inspecting", "manageable", "inspect failed"),
    ("inspect failed", "inspect"): ("inspecting", "manageable", "inspect failed"),
    ("manageable", "adopt"): ("adopting", "active", "adopt failed"),
    ("adopt failed", "adopt"): ("adopting", "active", "adopt failed"),
    ("available", "active"): ("deploying", "active", "deploy failed"),
    ("deploy failed", "active"): ("deploying", "active", "deploy failed"),
    **{
        (state, "deleted"): ("deleting", "available", "error")
        for state in ("active", "deploy failed", "error", "wait call-back", "rescue", "service failed")
    },
}
DEPLOY_STEPS = (
    "deploy",
    "write_image",
    "prepare_instance_boot",
    "tear_down_agent",
    "switch_to_tenant_network",
    "boot_instance",
)
AT_ONCE: dict[tuple[str, str], str] = {
    **{
        (state, "manage"): "manageable"
        for state in ("available", "clean failed", "inspect failed", "adopt failed")
    },
    ("inspect wait", "abort"): "inspect failed",
    ("clean wait", "abort"): "clean failed",
    ("wait call-back", "abort"): "deploy failed",
    **{(state, "abort"): "active" for state in ("service wait", "service failed")},
}
AT_REST = ("enroll", "inspect wait", "manageable", "available")
FROZEN = {
    "deploying",
    "wait call-back",
    "cleaning",
    "clean wait",
    "deleting",
    "adopting",
    "inspecting",
    "servicing",
    "service wait",
}


LOCKED = "Node X is locked by host 127.0.0.1, please retry after the current operation is completed."


async def _at_once() -> None: ...


class FakeIronic:
    def __init__(self, certificate: Certificate, username: str = "ingot", password: str = "right") -> None:
        self.username, self.password = username, password
        self.nodes: dict[str, dict[str, Any]] = {}
        self.ports: dict[str, dict[str, Any]] = {}
        self.history: dict[str, list[dict[str, Any]]] = {}
        self.inventories: dict[str, dict[str, Any]] = {}
        self.configdrives: dict[str, Any] = {}
        self.deploy_steps: dict[str, Any] = {}
        self.media = FakeMedia(self.change, self.node, fault)
        self.bios: dict[str, list[dict[str, Any]]] = {}
        self.firmware: dict[str, list[dict[str, Any]]] = {}
        self.raid_configs: list[dict[str, Any]] = []
        self.clean_steps: list[list[dict[str, Any]]] = []
        self.service_steps: list[list[dict[str, Any]]] = []
        self.requests: list[str] = []
        self.power_targets: list[str] = []
        self.bmc_passwords: dict[str, str] = {}
        self.drivers = ["redfish", "idrac", "ipmi"]
        self.newest = "1.115"
        self.page_limit = 1000
        self.locks_left = 0
        self.errors_left = 0
        self.overloaded: list[str] = []
        self.tls = certificate.server_context()
        self.lost_verb = ""
        self.no_worker_for = ""
        self.no_firmware = False
        self.verbs: list[str] = []
        self.trials_lost = 0
        self.trials_locked = 0
        self.no_soft_power = False
        self.invalid_reason = ""
        self.on_change: Callable[[dict[str, Any], bool], None] = lambda node, deleted: None
        self.before_list_answer: Callable[[], Awaitable[None]] = _at_once
        self._runner: web.AppRunner | None = None
        self.port = 0

    # The server

    async def start(self, port: int = 0) -> None:
        runner = await self._made_ready()
        await web.TCPSite(
            runner,
            "127.0.0.1",
            port,
            ssl_context=self.tls,
            reuse_address=True,
        ).start()
        self.port = runner.addresses[0][1]

    async def start_on(self, socket: Path) -> None:
        """On a Unix socket, as behind a front server: without TLS."""
        await web.UnixSite(await self._made_ready(), socket).start()

    async def _made_ready(self) -> web.AppRunner:
        app = web.Application(middlewares=[self._gate])
        routes = app.router
        routes.add_get("/v1", self._root)
        routes.add_get("/v1/drivers", self._drivers)
        routes.add_get("/v1/nodes", self._list)
        routes.add_post("/v1/nodes", self._create)
        routes.add_get("/v1/nodes/{node}", self._get)
        routes.add_patch("/v1/nodes/{node}", self._patch)
        routes.add_delete("/v1/nodes/{node}", self._delete)
        routes.add_put("/v1/nodes/{node}/states/provision", self._provision)
        routes.add_put("/v1/nodes/{node}/states/power", self._power)
        routes.add_put("/v1/nodes/{node}/maintenance", self._maintain)
        routes.add_delete("/v1/nodes/{node}/maintenance", self._unmaintain)
        routes.add_get("/v1/nodes/{node}/inventory", self._inventory)
        routes.add_get("/v1/nodes/{node}/history", self._history)
        routes.add_get("/v1/nodes/{node}/bios", self._bios)
        routes.add_get("/v1/nodes/{node}/firmware", self._firmware)
        routes.add_put("/v1/nodes/{node}/states/raid", self._raid)
        routes.add_get("/v1/nodes/{node}/validate", self._validate)
        routes.add_get("/v1/nodes/{node}/management/boot_device", self._boot_device)
        self.media.add_routes(routes)
        routes.add_get("/v1/ports", self._ports)
        routes.add_post("/v1/ports", self._create_port)
        routes.add_patch("/v1/ports/{port}", self._patch_port)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        return self._runner

    async def stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/v1"

    # What a test does to it

    def node(self, name: str) -> dict[str, Any]:
        return next(node for node in self.nodes.values() if name in (node["name"], node["uuid"]))

    def add_node(self, name: str | None, state: str = "manageable", **fields: Any) -> dict[str, Any]:
        node = blank_node(name) | {"provision_state": state} | fields
        self.nodes[node["uuid"]] = node
        return node

    def change(self, name: str, **fields: Any) -> None:
        """What a conductor does to a node."""
        node = self.node(name)
        node.update(fields)
        if "provision_state" in fields:
            node["provision_updated_at"] = datetime.now(UTC).isoformat()
        self.on_change(node, False)

    def finish(self, name: str) -> None:
        node = self.node(name)
        _, end, _ = next(t for t in TRANSITIONS.values() if t[0] == node["provision_state"])
        if node["provision_state"].startswith("inspect"):
            node["inspection_finished_at"] = datetime.now(UTC).isoformat()
        self.change(
            name,
            # Cleaning ends where it was meant to.
            provision_state=node["target_provision_state"] or end,
            target_provision_state=None,
            power_state=node["power_state"] or "power off",
        )

    def fail(self, name: str, why: str, *, remember: bool = True, **fields: Any) -> None:
        node = self.node(name)
        _, _, end = next(t for t in TRANSITIONS.values() if t[0] == node["provision_state"])
        entry = {
            "severity": "ERROR",
            "event_type": "provisioning",
            "event": why,
            "created_at": "2026-01-01T00:00:00",
        }
        self.history.setdefault(node["uuid"], []).insert(0, entry)
        self.change(
            name,
            provision_state=end,
            target_provision_state=None,
            last_error=why if remember else None,
            **fields,
        )

    def at_step(self, name: str, step: str) -> None:
        """A deployment has come to this step."""
        index = DEPLOY_STEPS.index(step)
        steps = [
            {"step": one, "interface": "deploy", "priority": 100 - 20 * at}
            for at, one in enumerate(DEPLOY_STEPS)
        ]
        info = {"deploy_steps": steps, "deploy_step_index": index}
        self.change(name, deploy_step=steps[index], driver_internal_info=info)

    def restart(self) -> None:
        """kill -9 and a new start: the conductor fails what it was doing, and says so."""
        for node in list(self.nodes.values()):
            if node["target_power_state"] is not None:
                # Written past the objects of Ironic: there is neither an event nor an entry in the history.
                error = "Pending power operation was aborted due to conductor restart"
                node.update(target_power_state=None, last_error=error)
            state = node["provision_state"]
            if state in {begun for begun, _, _ in TRANSITIONS.values()}:
                why = f"The {state} state can't be resumed by conductor 127.0.0.1. Moving to fail state."
                self.fail(node["uuid"], why)

    def was_inspected(self, uuid: str, inventory: dict[str, Any]) -> None:
        """Some time ago."""
        self.inventories[uuid] = {"inventory": inventory}
        self.node(uuid)["inspection_finished_at"] = datetime.now(UTC).isoformat()

    def inspected(self, name: str, inventory: dict[str, Any]) -> None:
        self.inventories[self.node(name)["uuid"]] = {"inventory": inventory, "plugin_data": {}}
        self.finish(name)

    def lose_database(self) -> None:
        for table in (self.nodes, self.ports, self.history, self.inventories):
            table.clear()

    def asked(self, text: str) -> int:
        """How many requests contained this text."""
        return sum(text in request for request in self.requests)

    # Answers

    @web.middleware
    async def _gate(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path}")
        given = request.headers.get("Authorization", "")
        expected = "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        if request.path != "/v1" and given != expected:
            return fault(401, "Authorization required")
        if self.errors_left:
            self.errors_left -= 1
            return fault(500, "Unable to establish connection to https://127.0.0.1:8089")
        if self.overloaded and request.path != "/v1":
            answer = fault(503, "The service is unavailable")
            answer.headers["Retry-After"] = self.overloaded.pop(0)
            return answer
        version = request.headers.get("X-OpenStack-Ironic-API-Version")
        if request.path != "/v1" and (version is None or int(version[2:]) > int(self.newest[2:])):
            return fault(406, f"Version {version} was requested but is unsupported.")
        if request.method != "GET" and self.locks_left:
            self.locks_left -= 1
            return fault(409, LOCKED)
        if "node" in request.match_info:
            ident = request.match_info["node"]
            if not any(ident in (node["uuid"], node["name"]) for node in self.nodes.values()):
                return fault(404, f"Node {ident} could not be found.")
        response: web.StreamResponse = await handler(request)
        return response

    async def _root(self, request: web.Request) -> web.Response:
        return web.json_response(
            {"id": "v1", "version": {"id": "v1", "min_version": "1.1", "version": self.newest}}
        )

    async def _drivers(self, request: web.Request) -> web.Response:
        return web.json_response(
            {"drivers": [{"name": name, "hosts": ["127.0.0.1"]} for name in self.drivers]}
        )

    async def _list(self, request: web.Request) -> web.Response:
        fields = request.query["fields"].split(",")
        if set(fields) & {"updated_at", "created_at", "conductor"}:
            return fault(500, "'Node' object has no attribute")
        uuids = sorted(self.nodes)
        start = uuids.index(request.query["marker"]) + 1 if "marker" in request.query else 0
        page = uuids[start : start + min(self.page_limit, int(request.query["limit"]))]
        answer = {"nodes": [{field: self.nodes[one][field] for field in fields} for one in page]}
        body = json.dumps(answer)
        await self.before_list_answer()
        return web.Response(text=body, content_type="application/json")

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        if any(node["name"] == body["name"] for node in self.nodes.values()):
            return fault(409, f"A node with name {body['name']} already exists.")
        if body["driver"] not in self.drivers:
            text = f'No conductor service registered which supports driver {body["driver"]} for conductor group "".'
            return fault(400, f"No valid host was found. Reason: {text}")
        if body.get("network_data") and "links" not in body["network_data"]:
            text = f"{body['network_data']} is not valid under any of the given schemas"
            return fault(400, f"Schema error for node: {text}")
        node = blank_node(body["name"]) | body
        self.nodes[node["uuid"]] = node
        self.on_change(node, False)
        return web.json_response(shown(node), status=201)

    async def _get(self, request: web.Request) -> web.Response:
        return web.json_response(shown(self._of(request)))

    async def _patch(self, request: web.Request) -> web.Response:
        node = self._of(request)
        if node["provision_state"] in FROZEN:
            return fault(
                409, f"Node {node['uuid']} can not be updated while a state transition is in progress."
            )
        patch = await request.json()
        if node["instance_uuid"] and any(
            operation["op"] != "remove" and operation["path"] == "/instance_uuid" for operation in patch
        ):
            # Not even where the same patch removes the other one.
            return fault(409, f"Node {node['uuid']} is associated with instance {node['instance_uuid']}.")
        for operation in patch:
            *path, last = operation["path"].strip("/").split("/")
            if last.endswith("_interface") and node["provision_state"] not in AT_REST:
                return fault(
                    409,
                    f"Node {node['uuid']} can not have {last} updated unless it is in one of allowed states.",
                )
            if last == "network_data" and operation["op"] == "add" and "links" not in operation["value"]:
                text = f"Additional properties are not allowed ({operation['value']} were unexpected)"
                return fault(400, f"Invalid network_data: {text}")
            target = node
            for part in path:
                target = target[part]
            if operation["op"] == "remove":
                if target.get(last) is None:
                    return fault(
                        400, f"Couldn't apply patch '{operation}'. Reason: can't remove a non-existent object"
                    )
                if target is node:
                    # An interface goes back to what the driver prefers.
                    node[last] = (
                        "redfish" if last == "raid_interface" and node["driver"] == "redfish" else None
                    )
                else:
                    del target[last]
            else:
                target[last] = operation["value"]
        self.on_change(node, False)
        return web.json_response(shown(node))

    async def _delete(self, request: web.Request) -> web.Response:
        node = self._of(request)
        if not node["maintenance"]:
            if node["instance_uuid"]:
                return fault(409, f"Node {node['uuid']} is associated with instance {node['instance_uuid']}.")
            if node["provision_state"] not in ("enroll", "manageable", "available", "adopt failed"):
                return fault(409, f'Can not delete node "{node["uuid"]}" while it is in provision state')
        del self.nodes[node["uuid"]]
        self.ports = {mac: port for mac, port in self.ports.items() if port["node_uuid"] != node["uuid"]}
        self.on_change(node, True)
        return web.Response(status=204)

    async def _provision(self, request: web.Request) -> web.Response:
        node, body = self._of(request), await request.json()
        state, verb = node["provision_state"], body["target"]
        if verb == self.lost_verb:
            self.lost_verb = ""
            return fault(503, "The conductor does not answer")
        if verb == self.no_worker_for:
            self.no_worker_for = ""
            # The node is moved on and, when nobody can be found to do it, back again.
            self.change(node["uuid"], provision_state=state, last_error="No free conductor workers available")
            return fault(503, "Requested action cannot be performed due to lack of free conductor workers.")
        self.verbs.append(verb)
        if (now := AT_ONCE.get((state, verb))) is not None:
            self.change(node["uuid"], provision_state=now)
        elif (state, verb) in TRANSITIONS:
            if node["maintenance"] and verb in ("provide", "active", "inspect", "clean", "service"):
                return fault(
                    400, f"The {verb} operation can't be performed on node because it's in maintenance mode."
                )
            begun, end, _ = TRANSITIONS[state, verb]
            if verb in ("clean", "service"):
                getattr(self, f"{verb}_steps").append(body[f"{verb}_steps"])
            if verb == "inspect":
                node["inspection_finished_at"] = None
            if verb in ("active", "deleted"):
                # The list of steps goes; the step that was noted last stays behind.
                node["driver_internal_info"] = {}
            if "configdrive" in body:
                self.configdrives[node["uuid"]] = body["configdrive"]
            if "deploy_steps" in body:
                self.deploy_steps[node["uuid"]] = body["deploy_steps"]
            self.change(node["uuid"], provision_state=begun, target_provision_state=end, last_error=None)
        else:
            text = f'The requested action "{verb}" can not be performed on node "{node["uuid"]}" while it is in state "{state}".'
            return fault(400, text)
        return web.Response(status=202)

    async def _power(self, request: web.Request) -> web.Response:
        node, body = self._of(request), await request.json()
        if self.no_soft_power and body["target"].startswith("soft"):
            return fault(400, f"The driver redfish does not support the power state, {body['target']}")
        self.power_targets.append(body["target"])
        target = "power off" if body["target"].endswith("off") else "power on"
        self.change(node["uuid"], target_power_state=target, last_error=None)
        return web.Response(status=202)

    async def _maintain(self, request: web.Request) -> web.Response:
        self.change(self._of(request)["uuid"], maintenance=True)
        return web.Response(status=202)

    async def _unmaintain(self, request: web.Request) -> web.Response:
        self.change(self._of(request)["uuid"], maintenance=False, fault=None)
        return web.Response(status=202)

    async def _inventory(self, request: web.Request) -> web.Response:
        found = self.inventories.get(self._of(request)["uuid"])
        return (
            web.json_response(found)
            if found
            else fault(404, "Node inventory record for node 1 could not be found.")
        )

    async def _bios(self, request: web.Request) -> web.Response:
        if self.no_firmware:
            return fault(404, "The driver does not support bios")
        assert request.query["detail"] == "true"
        return web.json_response({"bios": self.bios.get(self._of(request)["uuid"], [])})

    async def _firmware(self, request: web.Request) -> web.Response:
        if self.no_firmware:
            return fault(404, "The driver does not support firmware")
        return web.json_response({"firmware": self.firmware.get(self._of(request)["uuid"], [])})

    async def _raid(self, request: web.Request) -> web.Response:
        self.raid_configs.append(await request.json())
        return web.Response(status=204)

    async def _history(self, request: web.Request) -> web.Response:
        return web.json_response({"history": self.history.get(self._of(request)["uuid"], [])})

    async def _validate(self, request: web.Request) -> web.Response:
        deploy = {"result": not self.invalid_reason, "reason": self.invalid_reason or None}
        return web.json_response({"boot": {"result": True}, "deploy": deploy})

    async def _boot_device(self, request: web.Request) -> web.Response:
        if self.trials_lost:
            self.trials_lost -= 1
            return fault(503, "The conductor does not answer")
        if self.trials_locked:
            self.trials_locked -= 1
            return fault(409, LOCKED)
        node = self._of(request)
        protocol = "ipmi" if node["driver"] == "ipmi" else "redfish"
        address, password = (node["driver_info"][f"{protocol}_{key}"] for key in ("address", "password"))
        if password != self.bmc_passwords.get(address, password):
            text = f"Redfish exception occurred. Error: HTTP GET {address}/x returned code 401. Base: no"
            return fault(500, "IPMI call failed: chassis bootparam get 5." if protocol == "ipmi" else text)
        return web.json_response({"boot_device": "hdd", "persistent": False})

    async def _ports(self, request: web.Request) -> web.Response:
        key, value = next((k, request.query[k]) for k in ("node", "address") if k in request.query)
        found = [port for port in self.ports.values() if port["node_uuid" if key == "node" else key] == value]
        return web.json_response({"ports": found})

    async def _create_port(self, request: web.Request) -> web.Response:
        body = await request.json()
        if body["address"] in self.ports:
            return fault(409, f"A port with MAC address {body['address']} already exists.")
        self.ports[body["address"]] = body | {"uuid": str(uuid.uuid4())}
        return web.json_response(self.ports[body["address"]], status=201)

    async def _patch_port(self, request: web.Request) -> web.Response:
        port = next(one for one in self.ports.values() if one["uuid"] == request.match_info["port"])
        if self.nodes[port["node_uuid"]]["provision_state"] not in ("enroll", "manageable"):
            return fault(409, f"Port {port['uuid']} can not have any connectivity attributes updated.")
        for operation in await request.json():
            port[operation["path"].strip("/")] = operation["value"]
        return web.json_response(port)

    def _of(self, request: web.Request) -> dict[str, Any]:
        return self.node(request.match_info["node"])


def blank_node(name: str | None) -> dict[str, Any]:
    return {
        "uuid": str(uuid.uuid4()),
        "name": name,
        "driver": "redfish",
        "provision_state": "enroll",
        "target_provision_state": None,
        "power_state": None,
        "target_power_state": None,
        "maintenance": False,
        "fault": None,
        "last_error": None,
        "health": None,
        "instance_uuid": None,
        "provision_updated_at": None,
        "inspection_finished_at": None,
        "clean_step": {},
        "deploy_step": {},
        "service_step": {},
        "driver_info": {},
        "driver_internal_info": {},
        "instance_info": {},
        "properties": {},
        "extra": {},
        "network_data": {},
        "reservation": None,
        "automated_clean": None,
        "disable_power_off": False,
        "deploy_interface": "direct",
        "inspect_interface": "agent",
        "raid_interface": "redfish",
    }


def shown(node: dict[str, Any]) -> dict[str, Any]:
    """As the API shows it: passwords are masked."""
    info = {key: "******" if "password" in key else value for key, value in node["driver_info"].items()}
    instance = dict(node["instance_info"])
    if "image_pull_secret" in instance:
        instance["image_pull_secret"] = "******"
    return node | {"driver_info": info, "instance_info": instance, "links": []}


def fault(status: int, text: str) -> web.Response:
    inner = json.dumps({"faultcode": "Client", "faultstring": text, "debuginfo": None})
    return web.json_response({"error_message": inner}, status=status)


def long_ago(minutes: int) -> str:
    return (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()
