"""What a CustomResourceDefinition must be like to be taken, in the words of Kubernetes.

`definition_schema` says what types its fields have; `problems` says what else is wrong: names, versions, columns,
schemas (`structural`), and what cannot change once the kind is served. What did not change is not looked at again, so
that rules which get stricter hold nobody up.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ingot.embedded.server.documents import Document, dig, encode
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds import jsonpath, structural
from ingot.embedded.server.kinds.names import label_1035_problem, subdomain_problem
from ingot.embedded.server.kinds.naming import ESTABLISHED, is_true
from ingot.embedded.server.kinds.schema import Shape

_APPROVED: Final = "api-approved.kubernetes.io"
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_SELECTABLE: Final = 8
# Formats that values are checked for, or that are known to say nothing.
_FORMATS: Final = frozenset(
    {
        "bsonobjectid",
        "uri",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "cidr",
        "mac",
        "uuid",
        "uuid3",
        "uuid4",
        "uuid5",
        "isbn",
        "isbn10",
        "isbn13",
        "creditcard",
        "ssn",
        "hexcolor",
        "rgbcolor",
        "byte",
        "password",
        "date",
        "duration",
        "datetime",
        "k8sshortname",
        "k8slongname",
        "int32",
        "int64",
        "float",
        "double",
    }
)

Version = Mapping[str, Any]


def problems(new: Document, old: Document | None) -> list[Cause]:
    if old is not None and new.get("spec") == old.get("spec"):
        return []
    spec = new.get("spec") or {}
    found = _name(new, spec, old) + _approval(new, spec, old) + _spec(spec)
    found += _names(spec.get("names") or {}, "spec.names")
    found += _versions(spec.get("versions") or [], old)
    found += _conversion(spec.get("conversion") or {})
    if old is not None:
        found += _immutable(spec, old) + _stored(new)
    return found


def warnings(new: Document, old: Document | None) -> list[str]:
    """Formats that mean nothing here: the field is taken, whatever it holds."""

    def unknown(definition: Document | None) -> list[str]:
        return [
            name
            for version in _listed(definition)
            if isinstance(schema := dig(version, "schema", "openAPIV3Schema"), Mapping)
            for name in _formats(schema)
        ]

    before = set(unknown(old))
    return [f'unrecognized format "{name}"' for name in unknown(new) if name not in before]


def _listed(definition: Document | None) -> Sequence[Any]:
    versions = dig(definition, "spec", "versions")
    return versions if isinstance(versions, list) else ()


def _formats(schema: Mapping[str, Any]) -> Iterator[str]:
    if structural.misshapen(schema):
        return
    for part in structural.every(schema):
        name = part.get("format")
        if isinstance(name, str) and name and name.replace("-", "") not in _FORMATS:
            yield name


# The definition as a whole


def _name(new: Document, spec: Document, old: Document | None) -> list[Cause]:
    name, wanted = (
        dig(new, "metadata", "name"),
        f"{dig(spec, 'names', 'plural') or ''}.{spec.get('group', '')}",
    )
    if old is not None or name == wanted:
        return []
    return [cause("Invalid", "metadata.name", 'must be spec.names.plural+"."+spec.group', shown=_shown(name))]


def _approval(new: Document, spec: Document, old: Document | None) -> list[Cause]:
    group = spec.get("group", "")
    if not any(group == owner or group.endswith(f".{owner}") for owner in ("k8s.io", "kubernetes.io")):
        return []
    given = dig(new, "metadata", "annotations", _APPROVED) or ""
    if given.startswith(("unapproved", "http://", "https://")):
        return []
    if old is not None and given == (dig(old, "metadata", "annotations", _APPROVED) or ""):
        return []
    where, words = (
        f"metadata.annotations[{_APPROVED}]",
        f'protected groups must have approval annotation "{_APPROVED}"',
    )
    if not given:
        see = "see https://github.com/kubernetes/enhancements/pull/1111"
        return [cause("Required", where, f"{words}, {see}")]
    return [
        cause(
            "Invalid",
            where,
            f'{words} with a URL or a reason starting with "unapproved"',
            shown=_shown(given),
        )
    ]


def _spec(spec: Document) -> list[Cause]:
    found: list[Cause] = []
    group = spec.get("group", "")
    if not group:
        found.append(cause("Required", "spec.group", ""))
    elif problem := subdomain_problem(group):
        found.append(cause("Invalid", "spec.group", problem, shown=_shown(group)))
    elif "." not in group:
        words = "should be a domain with at least one dot"
        found.append(cause("Invalid", "spec.group", words, shown=_shown(group)))
    found += _one_of("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced"))
    if spec.get("preserveUnknownFields"):
        words = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        found.append(cause("Invalid", "spec.preserveUnknownFields", words, shown="true"))
    return found


def _names(names: Document, where: str) -> list[Cause]:
    found = [
        cause("Required", f"{where}.{name}", "")
        for name in ("plural", "singular", "kind", "listKind")
        if not names.get(name)
    ]
    for name in ("plural", "singular"):
        found += _label(f"{where}.{name}", names.get(name) or "")
    for name in ("kind", "listKind"):
        value = names.get(name) or ""
        if value and (problem := label_1035_problem(value.lower())):
            words = f"may have mixed case, but should otherwise match: {problem}"
            found.append(cause("Invalid", f"{where}.{name}", words, shown=_shown(value)))
    for name in ("shortNames", "categories"):
        for index, value in enumerate(names.get(name) or ()):
            found += _label(f"{where}.{name}[{index}]", value, empty=True)
    if names.get("kind") and names["kind"] == names.get("listKind"):
        words = "kind and listKind may not be the same"
        found.append(cause("Invalid", f"{where}.listKind", words, shown=_shown(names["listKind"])))
    return found


def _immutable(spec: Document, old: Document) -> list[Cause]:
    fixed: list[tuple[str, ...]] = [("group",), ("names", "plural")]
    if is_true(old, ESTABLISHED):
        fixed += [("scope",), ("names", "kind")]
    return [
        cause("Invalid", f"spec.{'.'.join(path)}", "field is immutable", shown=_shown(dig(spec, *path)))
        for path in fixed
        if dig(spec, *path) != dig(old, "spec", *path)
    ]


def _stored(new: Document) -> list[Cause]:
    names = [version.get("name") for version in _listed(new)]
    return [
        cause(
            "Invalid",
            f"status.storedVersions[{index}]",
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until "
            f"a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions",
            shown=_shown(name),
        )
        for index, name in enumerate(dig(new, "status", "storedVersions") or ())
        if name not in names
    ]


def _conversion(conversion: Document) -> list[Cause]:
    where, strategy = "spec.conversion", conversion.get("strategy", "")
    if strategy == "Webhook":
        words = (
            "this API calls no conversion webhooks; serve one version, or versions that the strategy None can convert "
            "(it changes nothing but apiVersion)"
        )
        return [cause("Forbidden", f"{where}.strategy", words)]
    found = _one_of(f"{where}.strategy", strategy, ("None", "Webhook"))
    if conversion.get("webhook") is not None:
        words = "should not be set when strategy is not set to Webhook"
        found.append(cause("Forbidden", f"{where}.webhookClientConfig", words))
    return found


# Its versions


def _versions(versions: Sequence[Version], old: Document | None) -> list[Cause]:
    found: list[Cause] = []
    for index, version in enumerate(versions):
        found += _label(f"spec.versions[{index}].name", version.get("name", ""), empty=True)
        found += _version(version, _Places(versions, index), _same_before(version, old))
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        found.append(cause("Invalid", "spec.versions", "must contain unique version names"))
    if sum(1 for version in versions if version.get("storage")) != 1:
        words = "must have exactly one version marked as storage version"
        found.append(cause("Invalid", "spec.versions", words))
    return list(dict.fromkeys(found))


class _Places:
    """How Kubernetes calls the parts of a version: what all versions have alike belongs to the whole definition."""

    def __init__(self, versions: Sequence[Version], index: int) -> None:
        self._versions = versions
        self.own = f"spec.versions[{index}]"

    def of(self, part: str, whole: str) -> str:
        first = self._versions[0].get(part)
        alike = all(version.get(part) == first for version in self._versions)
        return f"spec.{whole}" if alike else f"{self.own}.{part}"


def _same_before(version: Version, old: Document | None) -> bool:
    return any(
        before.get("name") == version.get("name")
        and before.get("schema") == version.get("schema")
        and before.get("subresources") == version.get("subresources")
        for before in _listed(old)
    )


def _version(version: Version, places: _Places, schema_as_before: bool) -> list[Cause]:
    found = _deprecated(version, places.own)
    schema = dig(version, "schema", "openAPIV3Schema")
    if schema is None:
        found.append(cause("Required", f"{places.own}.schema.openAPIV3Schema", "schemas are required"))
    elif not schema_as_before:
        found += _schema(version, schema, f"{places.of('schema', 'validation')}.openAPIV3Schema")
    found += _scale(version, places.of("subresources", "subresources"))
    at = places.of("additionalPrinterColumns", "additionalPrinterColumns")
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        found += _column(column, f"{at}[{index}]")
    return found + _selectable(version, schema or {}, places.of("selectableFields", "selectableFields"))


def _deprecated(version: Version, where: str) -> list[Cause]:
    words = version.get("deprecationWarning")
    if words is None:
        return []
    if not version.get("deprecated"):
        problem = "can only be set for deprecated versions"
    elif len(words) > 256:
        problem = "must be <= 256 characters long"
    elif not words:
        problem = "must not be an empty string"
    elif not words.isprintable():
        problem = "must only contain printable UTF-8 characters"
    else:
        return []
    return [cause("Invalid", f"{where}.deprecationWarning", problem, shown=_shown(words))]


_WITH_STATUS: Final = frozenset(
    {
        "description",
        "type",
        "format",
        "title",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "required",
        "items",
        "properties",
        "externalDocs",
        "example",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    }
)


def _schema(version: Version, schema: Mapping[str, Any], where: str) -> list[Cause]:
    found: list[Cause] = []
    if "status" in (version.get("subresources") or {}) and set(schema) - _WITH_STATUS:
        words = f"only {sorted(_WITH_STATUS)} fields are allowed at the root of the schema if the status subresource is enabled"
        found.append(cause("Invalid", where, words))
    if schema.get("nullable"):
        found.append(cause("Forbidden", f"{where}.nullable", "nullable cannot be true at the root"))
    found += structural.problems(schema, where)
    if not found:
        found = list(_defaults(schema, where, root=True))
    if not found:
        found = _compiled(schema, where)
    return found


def _defaults(schema: Mapping[str, Any], where: str, *, root: bool = False) -> Iterator[Cause]:
    """Defaults must be what the schema allows. Inside metadata there are none, or the rules for metadata hold."""
    if "default" in schema:
        shape = Shape({"type": "object", "properties": {"default": schema}})
        probe = {"default": copy.deepcopy(schema["default"])}
        if shape.conform(probe, defaults=False):
            words = "must not have unknown fields"
            yield cause("Invalid", f"{where}.default", words, shown=_shown(schema["default"]))
        for found in shape.problems(probe):
            yield Cause(f"{where}.{found.field}", found.reason, found.message)
    meta = ("metadata", "kind", "apiVersion") if root or schema.get("x-kubernetes-embedded-resource") else ()
    for name, child in schema.get("properties", {}).items():
        if name not in meta:
            yield from _defaults(child, f"{where}.properties[{name}]")
    if isinstance(items := schema.get("items"), Mapping):
        yield from _defaults(items, f"{where}.items")


def _compiled(schema: Mapping[str, Any], where: str) -> list[Cause]:
    try:
        Shape(schema)
    except ValueError as error:
        return [cause("Invalid", where, f"error building validator: {error}", shown='""')]
    return []


def _scale(version: Version, where: str) -> list[Cause]:
    scale = dig(version, "subresources", "scale")
    if scale is None:
        return []
    found: list[Cause] = []
    for name, roots in (
        ("specReplicasPath", (".spec.",)),
        ("statusReplicasPath", (".status.",)),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):
        path, at = scale.get(name) or "", f"{where}.scale.{name}"
        if not path:
            found += [cause("Required", at, "")] if name != "labelSelectorPath" else []
        elif problem := _simple_path(path, at):
            found += problem
        elif not path.startswith(roots):
            places = "either .spec or .status" if len(roots) > 1 else roots[0][:-1]
            found.append(cause("Invalid", at, f"should be a json path under {places}", shown=_shown(path)))
    return found


def _column(column: Document, where: str) -> list[Cause]:
    found: list[Cause] = []
    if not column.get("name"):
        found.append(cause("Required", f"{where}.name", ""))
    type_, words = column.get("type") or "", f"must be one of {','.join(_COLUMN_TYPES)}"
    if not type_:
        found.append(cause("Required", f"{where}.type", words))
    elif type_ not in _COLUMN_TYPES:
        found.append(cause("Invalid", f"{where}.type", words, shown=_shown(type_)))
    if (form := column.get("format")) and form not in _COLUMN_FORMATS:
        words = f"must be one of {','.join(_COLUMN_FORMATS)}"
        found.append(cause("Invalid", f"{where}.format", words, shown=_shown(form)))
    if not (path := column.get("jsonPath") or ""):
        return [*found, cause("Required", f"{where}.JSONPath", "")]
    return found + _simple_path(path, f"{where}.JSONPath")


def _simple_path(path: str, where: str) -> list[Cause]:
    if not path.startswith("."):
        return [cause("Invalid", where, "must be a simple json path starting with .", shown=_shown(path))]
    try:
        jsonpath.compiled(path)
    except jsonpath.PathError as error:
        return [cause("Invalid", where, str(error), shown=_shown(path))]
    return []


def _selectable(version: Version, schema: Mapping[str, Any], where: str) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for index, field in enumerate(version.get("selectableFields") or ()):
        path, at = field.get("jsonPath") or "", f"{where}[{index}].jsonPath"
        if not path:
            found.append(cause("Required", at, ""))
            continue
        part: Any = schema
        for step in path.removeprefix(".").split("."):
            part = dig(part, "properties", step)
        if part is None or not path.startswith("."):
            words = "is an invalid path: it names no field of the schema"
        elif path.split(".")[1] == "metadata":
            words = "must not point to fields in metadata"
        elif part.get("type") not in ("string", "boolean", "integer"):
            words = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
        elif path in seen:
            found.append(cause("Duplicate", at, "", shown=_shown(path)))
            continue
        else:
            seen.add(path)
            continue
        found.append(cause("Invalid", at, words, shown=_shown(path)))
    if len(seen) > _MOST_SELECTABLE:
        words = f"Too many: {len(seen)}: must have at most {_MOST_SELECTABLE} items"
        found.append(Cause(where, "FieldValueTooMany", words))
    return found


def _label(where: str, value: str, *, empty: bool = False) -> list[Cause]:
    if not value and not empty:
        return []
    problem = label_1035_problem(value)
    return [cause("Invalid", where, problem, shown=_shown(value))] if problem else []


def _one_of(where: str, value: str, allowed: Sequence[str]) -> list[Cause]:
    if not value:
        return [cause("Required", where, "")]
    if value in allowed:
        return []
    listed = ", ".join(f'"{word}"' for word in allowed)
    return [cause("NotSupported", where, f"supported values: {listed}", shown=_shown(value))]


def _shown(value: object) -> str:
    return encode(value).decode()
