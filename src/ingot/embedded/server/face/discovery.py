"""Discovery: what this API serves, told in the two forms that clients ask for.

The aggregated form answers everything in two requests and is what kubectl prefers; the plain form is for everybody
else. Both follow the registry: a kind that comes or goes is there or gone with the next answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ingot.embedded.server.documents import Document
from ingot.embedded.server.face.rendering import media_types
from ingot.embedded.server.kinds import scale
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.registry import Registry

# Near enough to every kubectl in use that none of them warns.
VERSION: Final[Document] = {
    "major": "1",
    "minor": "33",
    "gitVersion": "v1.33.0+ingot",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "python",
    "platform": "any",
}

_SUBRESOURCE_VERBS: Final = ["get", "patch", "update"]
_SCALE_GROUP, _SCALE_VERSION = scale.API_VERSION.split("/")
_SCALE_KIND: Final = {"group": _SCALE_GROUP, "version": _SCALE_VERSION, "kind": scale.KIND}


@dataclass(frozen=True, slots=True)
class Review:
    """A question that is posted and answered, and never stored."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = False


REVIEWS: Final = (
    Review("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews"),
    Review("authentication.k8s.io", "v1", "TokenReview", "tokenreviews"),
    Review(
        "authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", namespaced=True
    ),
    Review("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews"),
    Review("authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews"),
    Review("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews"),
)

Versions = Mapping[str, Sequence[Kind | Review]]
Groups = Mapping[str, Versions]


class _Served(Groups):
    """Group → version → what is in it, as the registry has it now."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._revision = -1
        self._found: Groups = {}

    def __getitem__(self, group: str) -> Versions:
        return self._now()[group]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def _now(self) -> Groups:
        if self._revision != self._registry.revision:
            self._revision = self._registry.revision
            self._found = _grouped(self._registry)
        return self._found


def groups(registry: Registry) -> Groups:
    return _Served(registry)


def _grouped(registry: Registry) -> Groups:
    found: dict[str, dict[str, list[Kind | Review]]] = {
        group: {version: list(kinds) for version, kinds in versions.items()}
        for group, versions in registry.groups().items()
    }
    for review in REVIEWS:
        found.setdefault(review.group, {}).setdefault(review.version, []).append(review)
    return found


def wants_aggregated(accept: str) -> str:
    """The content type of the aggregated form a client prefers; empty when it wants the plain one."""
    for wanted in media_types(accept):
        if wanted.parameters.get("as") == "APIGroupDiscoveryList":
            version = wanted.parameters.get("v", "")
            if version in ("v2", "v2beta1"):
                return f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        elif wanted.name in ("application/json", "*/*"):
            return ""
    return ""


def aggregated(found: Groups, content_type: str) -> Document:
    version = "v2beta1" if "v2beta1" in content_type else "v2"
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [
                {
                    "version": version,
                    "resources": [_aggregated_resource(resource) for resource in resources],
                    "freshness": "Current",
                }
                for version, resources in versions.items()
            ],
        }
        for group, versions in found.items()
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _aggregated_resource(resource: Kind | Review) -> Document:
    gvk = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    if isinstance(resource, Review):
        return {
            "resource": resource.plural,
            "responseKind": gvk,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "singularResource": resource.kind.lower(),
            "verbs": ["create"],
        }
    made: Document = {
        "resource": resource.plural,
        "responseKind": gvk,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        made["shortNames"] = list(resource.short_names)
    if resource.categories:
        made["categories"] = list(resource.categories)
    subresources = [
        {
            "subresource": name,
            "responseKind": {**gvk, **_kind_of(resource, name)},
            "verbs": _verbs_of(resource, name),
        }
        for name in resource.subresources
    ]
    if subresources:
        made["subresources"] = subresources
    return made


def core_versions(server_address: str) -> Document:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
    }


def group_list(found: Groups) -> Document:
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(group, versions) for group, versions in found.items() if group],
    }


def group(name: str, versions: Iterable[str]) -> Document:
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def _group(name: str, versions: Iterable[str]) -> Document:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(group_version: str, resources: Iterable[Kind | Review]) -> Document:
    made: list[Document] = []
    for resource in resources:
        if isinstance(resource, Review):
            made.append(
                {
                    "name": resource.plural,
                    "singularName": resource.kind.lower(),
                    "namespaced": resource.namespaced,
                    "kind": resource.kind,
                    "verbs": ["create"],
                }
            )
            continue
        made.append(_plain_resource(resource))
        made += [_plain_subresource(resource, name) for name in resource.subresources]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": made}


def _plain_subresource(kind: Kind, name: str) -> Document:
    return {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        **_kind_of(kind, name),
        "verbs": _verbs_of(kind, name),
    }


def _kind_of(kind: Kind, subresource: str) -> Document:
    """What is read or posted at a part of an object, where that is of another kind than the object."""
    if subresource == "scale":
        return _SCALE_KIND
    if (action := kind.actions.get(subresource)) is None:
        return {}
    group, version, name = action.takes
    same = (group, version) == (kind.group, kind.version)
    return {"kind": name} if same else {"group": group, "version": version, "kind": name}


def _verbs_of(kind: Kind, subresource: str) -> list[str]:
    return ["create"] if subresource in kind.actions else _SUBRESOURCE_VERBS


def _plain_resource(kind: Kind) -> Document:
    made: Document = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        made["shortNames"] = list(kind.short_names)
    if kind.categories:
        made["categories"] = list(kind.categories)
    return made
