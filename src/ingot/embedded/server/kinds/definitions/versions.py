"""What a version of a definition must be like: its schema, columns, scale, and the fields objects are selected by."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds import jsonpath
from ingot.embedded.server.kinds.cel import definitions as cel_rules
from ingot.embedded.server.kinds.definitions import structural
from ingot.embedded.server.kinds.definitions import words as schema_words
from ingot.embedded.server.kinds.definitions.phrases import no_label, shown
from ingot.embedded.server.kinds.schema import Shape

Version = Mapping[str, Any]

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_SELECTABLE: Final = 8


def problems(versions: Sequence[Version], before: Sequence[Version]) -> list[Cause]:
    found: list[Cause] = []
    for index, version in enumerate(versions):
        found += no_label(f"spec.versions[{index}].name", version.get("name", ""))
        found += _version(version, _Places(versions, index), _same_before(version, before))
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


def _same_before(version: Version, before: Sequence[Version]) -> bool:
    return any(
        all(was.get(part) == version.get(part) for part in ("name", "schema", "subresources"))
        for was in before
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
    return [cause("Invalid", f"{where}.deprecationWarning", problem, shown=shown(words))]


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
    said = {word for word, value in schema.items() if value not in (False, "", [], {})}
    if "status" in (version.get("subresources") or {}) and said - _WITH_STATUS:
        words = f"only {sorted(_WITH_STATUS)} fields are allowed at the root of the schema if the status subresource is enabled"
        found.append(cause("Invalid", where, words))
    if schema.get("nullable"):
        found.append(cause("Forbidden", f"{where}.nullable", "nullable cannot be true at the root"))
    unstructured, unclear = structural.problems(schema, where), schema_words.problems(schema, where)
    if not unstructured:
        unstructured = list(_defaults(schema, where, root=True))
    return (
        found + unstructured + unclear or _compiled(schema, where) or list(cel_rules.problems(schema, where))
    )


def _defaults(schema: Mapping[str, Any], where: str, *, root: bool = False) -> Iterator[Cause]:
    """Defaults must be what the schema allows. Inside metadata there are none, or the rules for metadata hold."""
    if "default" in schema and (shape := _shape_of({"type": "object", "properties": {"default": schema}})):
        probe = {"default": copy.deepcopy(schema["default"])}
        if shape.conform(probe, defaults=False):
            words = "must not have unknown fields"
            yield cause("Invalid", f"{where}.default", words, shown=shown(schema["default"]))
        for found in shape.problems(probe):
            yield Cause(f"{where}.{found.field}", found.reason, found.message)
        if root and isinstance(schema["default"], dict):
            yield from (
                cause("Required", f"{where}.default.{name}", "")
                for name in ("apiVersion", "kind")
                if not schema["default"].get(name)
            )
    meta = ("metadata", "kind", "apiVersion") if root or schema.get("x-kubernetes-embedded-resource") else ()
    for name, child in schema.get("properties", {}).items():
        if name not in meta:
            yield from _defaults(child, f"{where}.properties[{name}]")
    if isinstance(items := schema.get("items"), Mapping):
        yield from _defaults(items, f"{where}.items")


def _shape_of(schema: Mapping[str, Any]) -> Shape | None:
    """None where a word in it is wrong, which is said elsewhere."""
    try:
        return Shape(schema)
    except ValueError:
        return None


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
            found.append(cause("Invalid", at, f"should be a json path under {places}", shown=shown(path)))
    return found


def _column(column: Document, where: str) -> list[Cause]:
    found: list[Cause] = []
    if not column.get("name"):
        found.append(cause("Required", f"{where}.name", ""))
    type_, words = column.get("type") or "", f"must be one of {','.join(_COLUMN_TYPES)}"
    if not type_:
        found.append(cause("Required", f"{where}.type", words))
    elif type_ not in _COLUMN_TYPES:
        found.append(cause("Invalid", f"{where}.type", words, shown=shown(type_)))
    if (form := column.get("format")) and form not in _COLUMN_FORMATS:
        words = f"must be one of {','.join(_COLUMN_FORMATS)}"
        found.append(cause("Invalid", f"{where}.format", words, shown=shown(form)))
    if not (path := column.get("jsonPath") or ""):
        return [*found, cause("Required", f"{where}.JSONPath", "")]
    return found + _simple_path(path, f"{where}.JSONPath")


def _simple_path(path: str, where: str) -> list[Cause]:
    if not path.startswith("."):
        return [cause("Invalid", where, "must be a simple json path starting with .", shown=shown(path))]
    try:
        jsonpath.compiled(path)
    except jsonpath.PathError as error:
        return [cause("Invalid", where, str(error), shown=shown(path))]
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
            words = "is an invalid path: does not refer to a valid field"
        elif path.split(".")[1] == "metadata":
            words = "must not point to fields in metadata"
        elif part.get("type") not in ("string", "boolean", "integer"):
            words = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
        elif path in seen:
            found.append(cause("Duplicate", at, "", shown=shown(path)))
            continue
        else:
            seen.add(path)
            continue
        found.append(cause("Invalid", at, words, shown=shown(path)))
    if len(seen) > _MOST_SELECTABLE:
        words = f"Too many: {len(seen)}: must have at most {_MOST_SELECTABLE} items"
        found.append(Cause(where, "FieldValueTooMany", words))
    return found
