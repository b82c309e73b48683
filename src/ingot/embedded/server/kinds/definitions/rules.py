"""What a CustomResourceDefinition must be like to be taken, in the words of Kubernetes.

`schema` says what types its fields have; `problems` says what else is wrong: names, versions, and what cannot change
once the kind is served. What did not change is not looked at again, so that rules which get stricter hold nobody up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.definitions import versions
from ingot.embedded.server.kinds.definitions import words as schema_words
from ingot.embedded.server.kinds.definitions.naming import ESTABLISHED, is_true
from ingot.embedded.server.kinds.definitions.phrases import no_label, not_one_of, shown
from ingot.embedded.server.kinds.names import label_1035_problem, subdomain_problem

_APPROVED: Final = "api-approved.kubernetes.io"
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


def problems(new: Document, old: Document | None) -> list[Cause]:
    if old is not None and new.get("spec") == old.get("spec"):
        return []
    spec = new.get("spec") or {}
    found = _name(new, spec, old) + _approval(new, spec, old) + _spec(spec)
    found += _names(spec.get("names") or {}, "spec.names")
    found += versions.problems(spec.get("versions") or [], _listed(old))
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
    if schema_words.misshapen(schema):
        return
    for part in schema_words.every(schema):
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
    return [cause("Invalid", "metadata.name", 'must be spec.names.plural+"."+spec.group', shown=shown(name))]


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
            shown=shown(given),
        )
    ]


def _spec(spec: Document) -> list[Cause]:
    found: list[Cause] = []
    group = spec.get("group", "")
    if not group:
        found.append(cause("Required", "spec.group", ""))
    elif problem := subdomain_problem(group):
        found.append(cause("Invalid", "spec.group", problem, shown=shown(group)))
    elif "." not in group:
        words = "should be a domain with at least one dot"
        found.append(cause("Invalid", "spec.group", words, shown=shown(group)))
    found += not_one_of("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced"))
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
        found += no_label(f"{where}.{name}", names[name]) if names.get(name) else []
    for name in ("kind", "listKind"):
        value = names.get(name) or ""
        if value and (problem := label_1035_problem(value.lower())):
            words = f"may have mixed case, but should otherwise match: {problem}"
            found.append(cause("Invalid", f"{where}.{name}", words, shown=shown(value)))
    for name in ("shortNames", "categories"):
        for index, value in enumerate(names.get(name) or ()):
            found += no_label(f"{where}.{name}[{index}]", value)
    if names.get("kind") and names["kind"] == names.get("listKind"):
        words = "kind and listKind may not be the same"
        found.append(cause("Invalid", f"{where}.listKind", words, shown=shown(names["listKind"])))
    return found


def _immutable(spec: Document, old: Document) -> list[Cause]:
    fixed: list[tuple[str, ...]] = [("group",), ("names", "plural")]
    if is_true(old, ESTABLISHED):
        fixed += [("scope",), ("names", "kind")]
    return [
        cause("Invalid", f"spec.{'.'.join(path)}", "field is immutable", shown=shown(dig(spec, *path)))
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
            shown=shown(name),
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
    found = not_one_of(f"{where}.strategy", strategy, ("None", "Webhook"))
    if conversion.get("webhook") is not None:
        words = "should not be set when strategy is not set to Webhook"
        found.append(cause("Forbidden", f"{where}.webhookClientConfig", words))
    return found
