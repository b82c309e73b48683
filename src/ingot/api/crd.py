"""Custom resource definitions, made from the structs: what is served is what is decoded.

A kind states its fields in a struct (`ingot.api.schema` reads them) and what a struct cannot say in a `Definition` beside it.
Here both become the object that a Kubernetes API takes.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ingot.api import (
    baremetalhost,
    baremetalswitch,
    bmceventsubscription,
    dataimage,
    firmwareschema,
    hardwaredata,
    hostclaim,
    hostdeploypolicy,
    hostfirmwarecomponents,
    hostfirmwaresettings,
    hostnetworkattachment,
    hostupdatepolicy,
    ironic,
    ironicdatabase,
    preprovisioningimage,
)
from ingot.api.definition import Column, Definition
from ingot.api.machine import machine, machineset
from ingot.api.meta import Resource
from ingot.api.schema import Schema, structural

DEFINITIONS: Final[tuple[Definition, ...]] = (
    baremetalhost.DEFINITION,
    hardwaredata.DEFINITION,
    preprovisioningimage.DEFINITION,
    hostfirmwaresettings.DEFINITION,
    firmwareschema.DEFINITION,
    hostfirmwarecomponents.DEFINITION,
    hostupdatepolicy.DEFINITION,
    dataimage.DEFINITION,
    bmceventsubscription.DEFINITION,
    hostclaim.DEFINITION,
    hostdeploypolicy.DEFINITION,
    baremetalswitch.DEFINITION,
    hostnetworkattachment.DEFINITION,
    machine.DEFINITION,
    machineset.DEFINITION,
    ironic.DEFINITION,
    ironicdatabase.DEFINITION,
)
"""Every custom kind, in the order in which they are installed."""

_OBJECT_FIELDS: Final[dict[str, Schema]] = {
    "apiVersion": {
        "type": "string",
        "description": "Group and version of the schema that this object is written in.",
    },
    "kind": {"type": "string", "description": "What kind of object this is."},
    "metadata": {"type": "object"},
}


def all_crds() -> list[dict[str, Any]]:
    """A CustomResourceDefinition for every custom kind."""
    return [_definition(definition) for definition in DEFINITIONS]


def crd(resource: Resource[Any]) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind."""
    for definition in DEFINITIONS:
        if definition.resource == resource:
            return _definition(definition)
    raise KeyError(
        f"{resource.kind} ({resource.api_version}) is not a custom kind; add it to ingot.api.crd.DEFINITIONS"
    )


def _definition(definition: Definition) -> dict[str, Any]:
    resource = definition.resource
    names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
    }
    if definition.short_names:
        names["shortNames"] = list(definition.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "names": names,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [_version(definition)],
        },
    }


def _version(definition: Definition) -> dict[str, Any]:
    version: dict[str, Any] = {
        "name": definition.resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _object_schema(definition)},
    }
    if definition.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in definition.columns]
    if subresources := _subresources(definition):
        version["subresources"] = subresources
    return version


def _subresources(definition: Definition) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if scale := definition.scale:
        found["scale"] = {
            "specReplicasPath": scale.wanted,
            "statusReplicasPath": scale.present,
            "labelSelectorPath": scale.selector,
        }
    if definition.has_status:
        found["status"] = {}
    return found


def _column(column: Column) -> dict[str, Any]:
    shown: dict[str, Any] = {"jsonPath": column.json_path, "name": column.name, "type": column.type}
    if column.priority:
        shown["priority"] = column.priority
    if column.description:
        shown["description"] = column.description
    return shown


def _object_schema(definition: Definition) -> Schema:
    own = {
        field.encode_name: structural(field.type)
        for field in msgspec.structs.fields(definition.resource.type)
        if field.encode_name not in _OBJECT_FIELDS
    }
    return {
        "type": "object",
        "description": definition.description,
        "properties": {name: dict(schema) for name, schema in _OBJECT_FIELDS.items()} | own,
    }
