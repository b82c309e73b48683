"""Ironic's API, call by call.

Owns the HTTP: one session, TLS or a Unix socket, basic authentication, the microversion, and turning answers into structs or
typed errors. Knows nothing of hosts. The version is asked for once and again when Ironic says that it no longer speaks it. A
node's lock that is held for a moment (Ironic's own power sync does that) is waited for inside the call, and so is what Ironic,
or a proxy before it, asks for with Retry-After; a longer wait is the caller's.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec

from ingot.provisioner.ironic.errors import IronicError, Locked, Overloaded, Unavailable, refusal
from ingot.provisioner.ironic.inventory import InspectionData
from ingot.provisioner.ironic.metrics import REQUESTS
from ingot.provisioner.ironic.model import (
    FIELD_SINCE,
    LIST_FIELDS,
    BiosSetting,
    BiosSettings,
    BmcSubscription,
    BmcSubscriptions,
    DriverList,
    FirmwareComponent,
    FirmwareComponents,
    FullNode,
    HistoryEntry,
    HistoryList,
    Json,
    Node,
    NodeList,
    PatchOperation,
    Port,
    PortList,
    Root,
    Validation,
    VirtualMedium,
    add,
)
from ingot.provisioner.ironic.settings import IronicAccess, SettingsError
from ingot.trust import Secret, redact

VERSION_HEADER: Final = "X-OpenStack-Ironic-API-Version"
OLDEST: Final = 89
# What each of these brings: deployment abort, node health, disable_power_off, the virtual media list.
KNOWN: Final = (110, 109, 95, 93, 89)
ABORTS_DEPLOYMENTS: Final = 110
LISTS_VIRTUAL_MEDIA: Final = 93
PAGE: Final = 1000
# Ironic tells of a change while it still holds the lock, for some milliseconds; a power sync holds it for up to a second.
LOCK_PAUSES: Final = (0.03, 0.07, 0.15, 0.3, 0.5, 1.0)

LONGEST_PATIENCE: Final = 5.0
"""Seconds that are waited inside a call where Ironic asks for it; the caller waits for more."""

# Ironic asks a dead BMC several times before it gives up, and we want to hear what it says then.
BMC_TIMEOUT: Final = 180.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    body: object = None
    query: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 30.0


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    retry_after: str = ""


def choose_version(newest: str) -> int:
    """The minor version to speak with an Ironic that goes up to `newest` ("1.115")."""
    major, _, minor = newest.partition(".")
    if major != "1" or not minor.isdigit() or int(minor) < OLDEST:
        raise Unavailable(
            f"Ironic speaks version {newest or 'unknown'} of its API; Ingot needs 1.{OLDEST} or newer: upgrade Ironic"
        )
    return next(version for version in KNOWN if version <= int(minor))


class IronicClient:
    """One connection pool to one Ironic. Use as an async context manager, or call `close`."""

    def __init__(self, access: IronicAccess) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None
        self._authorization = Secret("")
        self._version: int | None = None
        self._negotiating = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    # Nodes

    async def node(self, ident: str) -> FullNode:
        return await self._read(f"/nodes/{_segment(ident)}", FullNode)

    async def pages_of_nodes(self) -> AsyncIterator[list[Node]]:
        """All nodes, a page at a time, with the fields that the cache keeps."""
        version = await self.version()
        fields = ",".join(name for name in LIST_FIELDS if FIELD_SINCE.get(name, 0) <= version)
        marker = ""
        while True:
            query = {"fields": fields, "limit": str(PAGE)} | ({"marker": marker} if marker else {})
            nodes = (await self._read("/nodes", NodeList, query)).nodes
            yield nodes
            # Ironic may be configured to give less than was asked for, so only an empty page is surely the last.
            if not nodes:
                return
            marker = nodes[-1].uuid

    async def create_node(self, record: Mapping[str, Json]) -> FullNode:
        return self._decode(await self._call("POST", "/nodes", record), FullNode)

    async def patch_node(self, uuid: str, patch: Sequence[PatchOperation]) -> FullNode:
        return self._decode(await self._call("PATCH", f"/nodes/{_segment(uuid)}", patch), FullNode)

    async def delete_node(self, uuid: str) -> None:
        await self._call("DELETE", f"/nodes/{_segment(uuid)}")

    async def set_provision_state(self, uuid: str, target: str, **arguments: Json) -> None:
        """The arguments go with the verb: configdrive, deploy_steps, clean_steps. None is left out."""
        given = {name: value for name, value in arguments.items() if value is not None}
        await self._call("PUT", f"/nodes/{_segment(uuid)}/states/provision", {"target": target, **given})

    async def set_power_state(self, uuid: str, target: str, *, timeout: int | None = None) -> None:
        body: dict[str, Json] = {"target": target}
        if timeout is not None:
            body["timeout"] = timeout
        await self._call("PUT", f"/nodes/{_segment(uuid)}/states/power", body)

    async def set_raid_config(self, uuid: str, config: Mapping[str, Json]) -> None:
        """The RAID volumes that the next cleaning with that step is to make; nothing happens now."""
        await self._call("PUT", f"/nodes/{_segment(uuid)}/states/raid", config)

    async def set_maintenance(self, uuid: str, reason: str) -> None:
        await self._call("PUT", f"/nodes/{_segment(uuid)}/maintenance", {"reason": reason})

    async def clear_maintenance(self, uuid: str) -> None:
        await self._call("DELETE", f"/nodes/{_segment(uuid)}/maintenance")

    # What belongs to a node

    async def inventory(self, uuid: str) -> InspectionData:
        return await self._read(f"/nodes/{_segment(uuid)}/inventory", InspectionData)

    async def bios_settings(self, ident: str) -> list[BiosSetting]:
        """As Ironic last read them from the BMC, with what each can be."""
        path = f"/nodes/{_segment(ident)}/bios"
        return (await self._read(path, BiosSettings, {"detail": "true"})).bios

    async def firmware(self, ident: str) -> list[FirmwareComponent]:
        return (await self._read(f"/nodes/{_segment(ident)}/firmware", FirmwareComponents)).firmware

    async def history(self, uuid: str, *, limit: int = 10) -> list[HistoryEntry]:
        """The newest entries, newest first."""
        query = {"detail": "true", "sort_key": "id", "sort_dir": "desc", "limit": str(limit)}
        return (await self._read(f"/nodes/{_segment(uuid)}/history", HistoryList, query)).history

    async def validate(self, uuid: str) -> dict[str, Validation]:
        return await self._read(f"/nodes/{_segment(uuid)}/validate", dict[str, Validation])

    async def ask_boot_device(self, uuid: str) -> None:
        """Makes Ironic ask the BMC a question that changes nothing: proof that the credentials work."""
        await self._call("GET", f"/nodes/{_segment(uuid)}/management/boot_device", timeout=BMC_TIMEOUT)

    async def ports(self, *, node_uuid: str = "", address: str = "") -> list[Port]:
        query = {"fields": "uuid,address,node_uuid,pxe_enabled"}
        query |= {"node": node_uuid} if node_uuid else {"address": address}
        return (await self._read("/ports", PortList, query)).ports

    async def create_port(self, node_uuid: str, address: str, *, pxe_enabled: bool) -> None:
        await self._call(
            "POST", "/ports", {"node_uuid": node_uuid, "address": address, "pxe_enabled": pxe_enabled}
        )

    async def boot_from_port(self, uuid: str) -> None:
        """Marks the port as one that the machine boots from."""
        await self._call("PATCH", f"/ports/{_segment(uuid)}", [add("/pxe_enabled", True)])

    # What only the BMC knows: Ironic asks it while we wait

    async def virtual_media(self, uuid: str) -> list[VirtualMedium]:
        body = await self._call("GET", f"/nodes/{_segment(uuid)}/vmedia", timeout=BMC_TIMEOUT)
        return self._decode(body, list[VirtualMedium])

    async def attach_cd(self, uuid: str, url: str) -> None:
        """Begins to put the image into the virtual CD drive.

        The BMC can fetch it itself, and is to; Ironic 39 takes that order and copies the image all the same.
        """
        order = {"device_type": "cdrom", "image_url": url, "image_download_source": "http"}
        await self._call("POST", f"/nodes/{_segment(uuid)}/vmedia", order)

    async def detach_cd(self, uuid: str) -> None:
        """Begins to empty the virtual CD drive."""
        await self._call("DELETE", f"/nodes/{_segment(uuid)}/vmedia", query={"device_types": "cdrom"})

    async def subscriptions(self, uuid: str) -> list[str]:
        """What the BMC calls the subscriptions to its events."""
        return self._decode(await self._vendor("GET", uuid, "get_all_subscriptions"), BmcSubscriptions).ids

    async def subscription(self, uuid: str, ident: str) -> BmcSubscription:
        return self._decode(
            await self._vendor("GET", uuid, "get_subscription", {"id": ident}), BmcSubscription
        )

    async def create_subscription(self, uuid: str, order: Mapping[str, object]) -> BmcSubscription:
        return self._decode(await self._vendor("POST", uuid, "create_subscription", order), BmcSubscription)

    async def delete_subscription(self, uuid: str, ident: str) -> None:
        await self._vendor("DELETE", uuid, "delete_subscription", {"id": ident})

    async def _vendor(
        self, verb: str, uuid: str, method: str, body: Mapping[str, object] | None = None
    ) -> bytes:
        path = f"/nodes/{_segment(uuid)}/vendor_passthru"
        return await self._call(verb, path, body, {"method": method}, timeout=BMC_TIMEOUT)

    # Ironic itself

    async def drivers(self) -> list[str]:
        return [driver.name for driver in (await self._read("/drivers", DriverList)).drivers]

    async def version(self) -> int:
        """The minor version that is spoken; asked for on first use."""
        async with self._negotiating:
            if self._version is None:
                answer = await self._send(_Request("GET", ""), version=None)
                if answer.status != 200:
                    raise refusal("GET /v1", answer.status, answer.body)
                self._version = choose_version(self._decode(answer.body, Root).version.version)
            return self._version

    # Requests

    async def _read(self, path: str, kind: type[T], query: Mapping[str, str] | None = None) -> T:
        return self._decode(await self._call("GET", path, None, query), kind)

    async def _call(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> bytes:
        """One request, waiting a moment for a lock that somebody holds for a moment, or as long as Ironic asks for."""
        request = _Request(method, path, body, query or {}, timeout or self._access.timeout)
        for pause in LOCK_PAUSES:
            try:
                return await self._once(request)
            except Locked:
                await asyncio.sleep(pause)
            except Overloaded as overloaded:
                if overloaded.retry_after > LONGEST_PATIENCE:
                    raise
                await asyncio.sleep(overloaded.retry_after)
        return await self._once(request)

    async def _once(self, request: _Request) -> bytes:
        answer = await self._send(request, version=await self.version())
        if answer.status == 401 and self._read_credentials_again():
            answer = await self._send(request, version=await self.version())
        if answer.status == 406:
            # Ironic was replaced by one that speaks other versions.
            self._version = None
            answer = await self._send(request, version=await self.version())
        if answer.status >= 400:
            what = f"{request.method} {request.path}"
            raise refusal(what, answer.status, answer.body, retry_after=answer.retry_after)
        return answer.body

    async def _send(self, request: _Request, *, version: int | None) -> _Answer:
        REQUESTS.labels(request.method).inc()
        headers = {"Accept": "application/json"}
        if version is not None:
            headers[VERSION_HEADER] = f"1.{version}"
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        session = self._open()
        if self._authorization:
            headers["Authorization"] = self._authorization.reveal()
        try:
            async with session.request(
                request.method,
                f"{self._access.endpoint}{request.path}",
                params=request.query,
                data=None if request.body is None else msgspec.json.encode(request.body),
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=request.timeout),
            ) as response:
                return _Answer(
                    response.status, await response.read(), response.headers.get("Retry-After", "")
                )
        except TimeoutError:
            raise Unavailable(
                f"Ironic at {self._access.place} did not answer {request.method} {request.path} "
                f"within {request.timeout:g} s"
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable(
                f"Ironic at {self._access.place} cannot be reached: {redact(str(error))}"
            ) from None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._read_credentials_again()
            self._session = aiohttp.ClientSession(
                connector=self._connector(), cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    def _connector(self) -> aiohttp.BaseConnector:
        if self._access.socket is not None:
            return aiohttp.UnixConnector(str(self._access.socket), limit=32)
        try:
            return aiohttp.TCPConnector(ssl=self._access.tls(), limit=32)
        except SettingsError as error:
            raise Unavailable(str(error)) from None

    def _read_credentials_again(self) -> bool:
        """Whether the files now hold other credentials than those in use."""
        try:
            found = self._access.credentials()
        except SettingsError as error:
            raise Unavailable(str(error)) from None
        before, self._authorization = self._authorization, Secret("")
        if found is not None:
            pair = f"{found[0]}:{found[1].reveal()}".encode()
            self._authorization = Secret(f"Basic {base64.b64encode(pair).decode()}")
        return self._authorization != before

    def _decode(self, body: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError as error:
            raise IronicError(f"Ironic sent what its API does not promise: {error}") from None


def _segment(ident: str) -> str:
    """One segment of a URL path, whatever is in the name."""
    return quote(ident, safe="~")
