"""Roles and who has them. They are kept, so that manifests for a cluster work here too; they change nothing.

Who may do what in this API is decided by its two tokens alone (`face.auth`). Every write of a role says so in a
warning, which kubectl shows.
"""

from __future__ import annotations

from typing import Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.builtins import rules
from ingot.embedded.server.kinds.builtins.making import built_in
from ingot.embedded.server.kinds.columns import AGE, NAME, Column
from ingot.embedded.server.kinds.names import path_segment_problem

GROUP: Final = "rbac.authorization.k8s.io"
NOT_ENFORCED: Final = (
    "roles are kept but not enforced by this API: its admin token may do everything, its read-only token may "
    "look at everything but Secrets"
)


def _warn(new: Document, old: Document | None) -> list[str]:
    return [NOT_ENFORCED]


def _check_role(new: Document, old: Document | None) -> list[Cause]:
    found: list[Cause] = []
    namespaced = "namespace" in new["metadata"]
    for index, rule in enumerate(new.get("rules", ())):
        where = f"rules[{index}]"
        if not rule.get("verbs"):
            found.append(cause("Required", f"{where}.verbs", "verbs must contain at least one value"))
        if rule.get("nonResourceURLs"):
            if namespaced:
                words = "namespaced rules cannot apply to non-resource URLs"
                found.append(
                    cause(
                        "Invalid",
                        f"{where}.nonResourceURLs",
                        words,
                        shown=rules.shown(rule["nonResourceURLs"]),
                    )
                )
            elif rule.get("apiGroups") or rule.get("resources"):
                words = "rules cannot apply to both regular resources and non-resource URLs"
                found.append(
                    cause(
                        "Invalid",
                        f"{where}.nonResourceURLs",
                        words,
                        shown=rules.shown(rule["nonResourceURLs"]),
                    )
                )
            continue
        if not rule.get("apiGroups"):
            found.append(
                cause("Required", f"{where}.apiGroups", "resource rules must supply at least one api group")
            )
        if not rule.get("resources"):
            found.append(
                cause("Required", f"{where}.resources", "resource rules must supply at least one resource")
            )
    return found


def _prepare_binding(new: Document, old: Document | None) -> None:
    for subject in new.get("subjects", ()):
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", GROUP)


def _check_binding(new: Document, old: Document | None) -> list[Cause]:
    role = new.get("roleRef") or {}
    found: list[Cause] = []
    allowed = ("Role", "ClusterRole") if "namespace" in new["metadata"] else ("ClusterRole",)
    if role.get("kind") not in allowed:
        listed = ", ".join(f'"{name}"' for name in allowed)
        shown = rules.shown(role.get("kind", ""))
        found.append(cause("NotSupported", "roleRef.kind", f"supported values: {listed}", shown=shown))
    found += _group(role, "roleRef", GROUP)
    for index, subject in enumerate(new.get("subjects", ())):
        found += _subject(subject, f"subjects[{index}]", namespaced="namespace" in new["metadata"])
    if old is not None and role != old.get("roleRef"):
        found.append(cause("Invalid", "roleRef", "cannot change roleRef", shown=rules.shown(role)))
    return found


def _subject(subject: Document, at: str, *, namespaced: bool) -> list[Cause]:
    match subject.get("kind"):
        case "ServiceAccount":
            if not namespaced and not subject.get("namespace"):
                return [cause("Required", f"{at}.namespace", "")]
            return _group(subject, at, "")
        case "User" | "Group":
            return _group(subject, at, GROUP)
        case other:
            words = 'supported values: "ServiceAccount", "User", "Group"'
            return [cause("NotSupported", f"{at}.kind", words, shown=rules.shown(other or ""))]


def _group(reference: Document, at: str, wanted: str) -> list[Cause]:
    found = reference.get("apiGroup", "")
    if found == wanted:
        return []
    words = f"supported values: {rules.shown(wanted)}"
    return [cause("NotSupported", f"{at}.apiGroup", words, shown=rules.shown(found))]


def _role(binding: Document) -> str:
    return f"{dig(binding, 'roleRef', 'kind')}/{dig(binding, 'roleRef', 'name')}"


def _subjects(title: str, kind: str) -> Column:
    def read(binding: Document) -> str:
        return ", ".join(
            f"{subject.get('namespace', '')}/{subject['name']}"
            if kind == "ServiceAccount"
            else subject["name"]
            for subject in binding.get("subjects", ())
            if subject.get("kind") == kind
        )

    return Column(title, read, priority=1, description=f"The {kind}s that have the role.")


_ROLE_COLUMNS: Final = (
    NAME,
    Column(
        "Created At",
        lambda d: dig(d, "metadata", "creationTimestamp"),
        type="date",
        description="When it was created.",
    ),
)
_BINDING_COLUMNS: Final = (
    NAME,
    Column("Role", _role, description="The role that is given."),
    AGE,
    _subjects("Users", "User"),
    _subjects("Groups", "Group"),
    _subjects("ServiceAccounts", "ServiceAccount"),
)

ROLES: Final = built_in(
    GROUP,
    "Role",
    "roles",
    columns=_ROLE_COLUMNS,
    name_problem=path_segment_problem,
    check=_check_role,
    warn=_warn,
)
CLUSTER_ROLES: Final = built_in(
    GROUP,
    "ClusterRole",
    "clusterroles",
    namespaced=False,
    columns=_ROLE_COLUMNS,
    name_problem=path_segment_problem,
    check=_check_role,
    warn=_warn,
)
ROLE_BINDINGS: Final = built_in(
    GROUP,
    "RoleBinding",
    "rolebindings",
    columns=_BINDING_COLUMNS,
    name_problem=path_segment_problem,
    prepare=_prepare_binding,
    check=_check_binding,
    warn=_warn,
)
CLUSTER_ROLE_BINDINGS: Final = built_in(
    GROUP,
    "ClusterRoleBinding",
    "clusterrolebindings",
    namespaced=False,
    columns=_BINDING_COLUMNS,
    name_problem=path_segment_problem,
    prepare=_prepare_binding,
    check=_check_binding,
    warn=_warn,
)
