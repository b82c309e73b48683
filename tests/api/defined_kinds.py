"""Kinds that a test defines for itself: definitions of a group of its own, gone when the test is over."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from kubernetes_api import Answer, Api, eventually

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def a_version(name: str = "v1", *, storage: bool = True, served: bool = True, **more: Any) -> dict[str, Any]:
    """A version of a kind. `spec` and `status` are the properties of these two parts."""
    properties = {
        part: {"type": "object", "properties": more.pop(part)} for part in ("spec", "status") if part in more
    }
    schema = {"type": "object", "properties": properties}
    return {
        "name": name,
        "served": served,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        **more,
    }


def a_definition(
    group: str, *versions: dict[str, Any], plural: str = "widgets", scope: str = "Namespaced", **names: Any
) -> dict[str, Any]:
    kind = plural.removesuffix("s").capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind, **names},
            "versions": list(versions) or [a_version(spec={"size": {"type": "integer"}})],
        },
    }


def condition(definition: Any, type_: str) -> dict[str, Any]:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return next((found for found in conditions if found["type"] == type_), {})


@dataclass
class Group:
    """A group of kinds that is this test's own."""

    api: Api
    name: str

    @property
    def word(self) -> str:
        """A word that nobody else uses."""
        return self.name.partition(".")[0]

    def definition(self, plural: str = "widgets") -> str:
        return f"{CRDS}/{plural}.{self.name}"

    def place(self, version: str = "v1", plural: str = "widgets") -> str:
        return f"/apis/{self.name}/{version}/namespaces/{self.api.namespace}/{plural}"

    def a_widget(self, name: str, *, version: str = "v1", **parts: Any) -> dict[str, Any]:
        return {
            "apiVersion": f"{self.name}/{version}",
            "kind": "Widget",
            "metadata": {"name": name, **parts.pop("metadata", {})},
            **parts,
        }

    async def define(self, *versions: dict[str, Any], **more: Any) -> Answer:
        """Define a kind and wait until objects of it can be written."""
        definition = a_definition(self.name, *versions, **more)
        made = await self.api.post(CRDS, definition)
        assert made.code == 201, made.body
        await self.established(definition["spec"]["names"]["plural"])
        return made

    async def established(self, plural: str = "widgets") -> None:
        async def there() -> bool:
            found = await self.api.get(self.definition(plural))
            if condition(found.body, "Established").get("status") != "True":
                return False
            served = [v["name"] for v in found.body["spec"]["versions"] if v["served"]]
            return all([await self._answers(f"/apis/{self.name}/{version}", plural) for version in served])

        await eventually(there)

    async def _answers(self, place: str, plural: str) -> bool:
        """Whether a version is discovered, and its objects are: a server may need a moment for either."""
        listed = await self.api.get(place)
        if listed.code != 200 or plural not in [found["name"] for found in listed.body["resources"]]:
            return False
        return (await self.api.get(f"{place}/{plural}")).code == 200

    async def gone(self, plural: str = "widgets") -> None:
        async def away() -> bool:
            return (await self.api.get(self.definition(plural))).code == 404

        await eventually(away)


@contextlib.asynccontextmanager
async def a_group(api: Api) -> AsyncIterator[Group]:
    name = f"g{uuid.uuid4().hex[:8]}.example.com"
    try:
        yield Group(api, name)
    finally:
        listed = await api.get(CRDS)
        for item in listed.body["items"]:
            if item["spec"]["group"] == name:
                await api.delete(f"{CRDS}/{item['metadata']['name']}")
