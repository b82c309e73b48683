"""CustomResourceDefinition: the kinds that are not built in.

Definitions are objects like others, with three habits: their names and conversion have defaults, the versions that
objects were ever kept in are noted in the status, and they go only after the objects they define. Those that are part
of the release are marked, and stay as the release has them: a client that applies another definition of the same name
(the install manifests of Metal3 bring theirs) is told so and succeeds.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import bad_request, forbidden
from ingot.embedded.server.kinds.columns import NAME, Column
from ingot.embedded.server.kinds.definitions import naming, rules, words
from ingot.embedded.server.kinds.definitions.schema import SCHEMA
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.schema import Shape

# Set on the definitions of the release, by the server.
RELEASED: Final = "ingot.metal3.io/part-of-release"


def _is_released(definition: Document | None) -> bool:
    return bool(dig(definition, "metadata", "annotations", RELEASED))


def _prepare(new: Document, old: Document | None) -> None:
    annotations = dig(new, "metadata", "annotations")
    if old is not None and _is_released(old):
        new["spec"] = old["spec"]
        new["metadata"]["annotations"] = {**(annotations or {}), RELEASED: "true"}
        return
    if annotations:
        annotations.pop(RELEASED, None)
    _check_types(new)
    spec = new.get("spec") or {}
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    names = spec.get("names") or {}
    if kind := names.get("kind"):
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    _note_storage(new)


def _check_types(new: Document) -> None:
    """What Kubernetes cannot read as a definition, it does not take for one. A null counts as absent."""
    _drop_nulls(new.get("spec"))
    found = [f"{problem.field}: {problem.message}" for problem in _SHAPE.problems(new)]
    for index, version in enumerate(() if found else dig(new, "spec", "versions") or ()):
        schema = dig(version, "schema", "openAPIV3Schema")
        if schema is not None and (problem := words.misshapen(schema)):
            found.append(f"spec.versions[{index}].schema.openAPIV3Schema: {problem}")
    if found:
        raise bad_request(
            f'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: {found[0]}'
        )


def _drop_nulls(part: object) -> None:
    for child in part if isinstance(part, list) else ():
        _drop_nulls(child)
    if isinstance(part, dict):
        for name in [name for name, value in part.items() if value is None]:
            del part[name]
        for name, child in part.items():
            # Schemas are cleaned by their own module, which knows where a null is a value.
            if name != "openAPIV3Schema":
                _drop_nulls(child)


def _note_storage(new: Document) -> None:
    """Remember in which versions objects may be kept on disk."""
    status = dict(new.get("status") or {})
    now = [version.get("name") for version in dig(new, "spec", "versions") or () if version.get("storage")]
    status["storedVersions"] = list(dict.fromkeys((*(status.get("storedVersions") or ()), *now[:1])))
    new["status"] = status


def _warn(new: Document, old: Document | None) -> list[str]:
    if old is not None and _is_released(old):
        if new.get("spec") == old["spec"]:
            return []
        return [
            f"{old['metadata']['name']} is part of this Ingot release: its own definition is served, yours was not taken"
        ]
    return rules.warnings(new, old)


def _leave(definition: Document) -> None:
    name = definition["metadata"]["name"]
    if _is_released(definition):
        raise forbidden(
            f'customresourcedefinitions.apiextensions.k8s.io "{name}" is forbidden: it is part of this Ingot release and is '
            "served as long as the release runs; delete its objects instead"
        )
    finalizers = definition["metadata"].setdefault("finalizers", [])
    if naming.FINALIZER not in finalizers:
        finalizers.append(naming.FINALIZER)
    status = definition.setdefault("status", {})
    status["conditions"] = naming.with_condition(
        status.get("conditions") or [],
        naming.TERMINATING,
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    )


_SHAPE: Final = Shape(SCHEMA)


class _DefinitionShape(Shape):
    """Schemas inside definitions nest without end, which no schema of ours can say; their own module knows them."""

    def conform(self, document: Document, *, defaults: bool = True) -> list[str]:
        cut = super().conform(document, defaults=defaults)
        versions = dig(document, "spec", "versions")
        for index, version in enumerate(versions if isinstance(versions, list) else ()):
            if isinstance(schema := dig(version, "schema", "openAPIV3Schema"), dict):
                where = f"spec.versions[{index}].schema.openAPIV3Schema"
                cut += [f"{where}.{path}" for path in words.cut_unknown(schema)]
        return cut


class _DefinitionKind(Kind):
    @cached_property
    def shape(self) -> Shape:
        return _DefinitionShape(self.schema)


DEFINITIONS: Final = _DefinitionKind(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    singular="customresourcedefinition",
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    namespaced=False,
    built_in=True,
    counts_generations=True,
    has_status=True,
    schema=SCHEMA,
    columns=(
        NAME,
        Column(
            "Created At",
            lambda d: dig(d, "metadata", "creationTimestamp"),
            type="date",
            description="When the kind was first served.",
        ),
    ),
    prepare=_prepare,
    check=rules.problems,
    warn=_warn,
    leave=_leave,
)
