"""The roles that are shipped: the operator's allow what its code does and nothing else, and others do not reach too far."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from rbac_needs import Need, Reader, named

from ingot.api.core import NAMESPACES, NODES
from ingot.api.crd import DEFINITIONS
from ingot.api.firmwareschema import FIRMWARE_SCHEMAS
from ingot.api.hostclaim import FINALIZER
from ingot.api.meta import Object, Resource
from ingot.api.preprovisioningimage import PREPROVISIONING_IMAGES
from ingot.cli.operator import LEASES
from ingot.embedded.server import serve
from ingot.kube import Client
from ingot.machines.running import KINDS

FOLDER: Final = Path(__file__).parents[3] / "deploy/rbac"
READING: Final = frozenset({"get", "list", "watch"})

ROLES: Final[dict[str, Reader]] = {
    "ingot-hosts": Reader(("hosts", "kube/events.py")),
    "ingot-images": Reader(("images", "kube/events.py")),
    "ingot-machines": Reader(
        ("machines", "cli/parts/machine_crew.py", "kube/events.py"),
        told={"cli/parts/machine_crew.py kind": KINDS},
    ),
    "ingot-webhook": Reader(
        ("kube/admission", "cli/parts/judging.py"),
        # The one kind that a rule looks at and that is not in a cache.
        told={"cli/parts/judging.py resource": (FIRMWARE_SCHEMAS,)},
    ),
    "ingot-leader": Reader(("kube/election",)),
}
"""Which code each role is for."""
BESIDE: Final = {"ingot-machines": ("ingot-machines-cluster", "ingot-defaults")}
"""What a role does not hold because it is bound elsewhere: in the whole cluster, and where its defaults are."""
FINALIZERS: Final = "hostclaims.metal3.io/finalizers"
ASKED_BY_POLICY: Final = {Need("update", FINALIZERS)}
"""No call of ours: the policy in `deploy/admission` asks whether somebody may do this."""


def documents(*names: str) -> list[dict[str, Any]]:
    paths = [FOLDER / name for name in names] or sorted(FOLDER.rglob("*.yaml"))
    return [document for path in paths for document in yaml.safe_load_all(path.read_text())]


def roles() -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in documents() if one["kind"] in ("ClusterRole", "Role")}


def granted(*names: str) -> set[Need]:
    return {
        Need(verb, ".".join(filter(None, (resource.partition("/")[0], group))) + _subresource(resource))
        for name in names
        for rule in roles()[name]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def _subresource(resource: str) -> str:
    return "".join(resource.partition("/")[1:])


@pytest.mark.parametrize("name", sorted(ROLES))
def test_a_role_of_the_operator_allows_what_its_code_does_and_nothing_else(name: str) -> None:
    may = granted(name, *BESIDE.get(name, ())) - ASKED_BY_POLICY
    needs = ROLES[name].needs()
    assert needs - may == set(), "the code does what the role does not allow"
    assert may - needs == set(), "the role allows what no code does"


def test_what_belongs_to_the_whole_cluster_is_a_role_of_its_own() -> None:
    """So that all the rest can be bound in the one namespace that an operator looks after."""
    ROLES["ingot-machines"].needs()
    of_cluster = {named(kind) for kind in ROLES["ingot-machines"].kinds if not kind.namespaced}
    assert of_cluster >= {named(NAMESPACES), named(NODES)}
    assert {need.what for need in granted("ingot-machines-cluster")} == of_cluster
    for name in ("ingot-hosts", "ingot-images", "ingot-machines"):
        assert not {need.what for need in granted(name)} & of_cluster, name
    for name in ("ingot-hosts", "ingot-images"):
        ROLES[name].needs()
        assert all(kind.namespaced for kind in ROLES[name].kinds), name


def test_the_finalizer_of_claims_is_kept_by_a_policy_that_asks_for_a_right_the_operator_alone_has() -> None:
    (policy, binding) = yaml.safe_load_all((FOLDER.parent / "admission/claims.yaml").read_text())
    said = " ".join(one["expression"] for one in policy["spec"]["matchConditions"])
    assert said.count(f"'{FINALIZER}'") == 2
    assert policy["spec"]["failurePolicy"] == "Fail"
    (asks,) = policy["spec"]["validations"]
    for word in ("group('metal3.io')", "resource('hostclaims')", "subresource('finalizers')", "'update'"):
        assert word in asks["expression"]
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    may = {name for name in roles() if Need("update", FINALIZERS) in granted(name)}
    assert may == {"ingot-machines"}


def test_what_a_cluster_asks_of_those_who_give_owners_is_a_role_of_its_own() -> None:
    """No call of ours, so not read from the code; the tests on a cluster that asks for it need all of it."""
    may = granted("ingot-owners")
    assert {need.what for need in may if need.verb == "update"} == {
        "baremetalhosts.metal3.io/finalizers",
        "machinesets.machine.openshift.io/finalizers",
    }
    assert {need.verb for need in may} == {"update", "delete"}


def test_no_role_allows_everything_of_something_or_to_get_more_rights() -> None:
    for name, role in roles().items():
        for rule in role["rules"]:
            words = {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert "*" not in words, name
            assert not words & {"escalate", "bind", "impersonate"}, name
            assert "nonResourceURLs" not in rule, name


def test_what_has_a_known_name_is_allowed_by_that_name() -> None:
    """Of ConfigMaps, Leases and webhooks the operator writes its own, and reads no others."""
    for name in ROLES:
        for rule in roles()[name]["rules"]:
            if {"configmaps", "leases", "validatingwebhookconfigurations"} & set(rule["resources"]):
                # Something that is made has no name yet when it is asked about.
                assert rule.get("resourceNames") or rule["verbs"] == ["create"], f"{name}: {rule}"


def test_whatever_the_operator_is_told_to_work_at_it_may_lead() -> None:
    named_leases = {
        name for rule in roles()["ingot-leader"]["rules"] for name in rule.get("resourceNames", ())
    }
    assert named_leases == set(LEASES.values())


def test_a_tenant_claims_reads_what_came_of_it_and_keeps_secrets() -> None:
    may = granted("ingot-tenant")
    assert {need.what for need in may if need.verb not in READING} == {"hostclaims.metal3.io", "secrets"}
    assert {need.what for need in may if need.verb in READING} == {
        "events",
        "events.events.k8s.io",
        "hardwaredata.metal3.io",
        "hostclaims.metal3.io",
        "hostclaims.metal3.io/status",
        "secrets",
    }


def test_an_auditor_reads_every_kind_but_secrets_and_the_urls_of_ramdisks() -> None:
    may = granted("ingot-auditor")
    assert {need.verb for need in may} == READING
    ours = {named(definition.resource) for definition in DEFINITIONS}
    assert {need.what for need in may} & ours == ours - {named(PREPROVISIONING_IMAGES)}
    assert {need.what for need in may} - ours == {
        "events",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
        "namespaces",
        "nodes",
    }


def test_who_is_bound_to_what_is_there() -> None:
    there = {(one["kind"], one["metadata"]["name"]) for one in documents()}
    for binding in (one for one in documents() if one["kind"].endswith("Binding")):
        name = binding["metadata"]["name"]
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in there, name
        for subject in binding["subjects"]:
            assert subject["kind"] == "Group" or (subject["kind"], subject["name"]) in there, name


def test_no_tenant_is_bound_everywhere() -> None:
    for binding in (one for one in documents() if one["kind"] == "ClusterRoleBinding"):
        assert binding["roleRef"]["name"] not in ("ingot-tenant", "ingot-auditor"), binding["metadata"][
            "name"
        ]


async def test_an_api_takes_every_manifest(tmp_path: Path) -> None:
    async with serve(tmp_path) as api, Client.from_kubeconfig(api.kubeconfig) as client:
        await client.create(NAMESPACES, {"metadata": {"name": "racks"}})
        for document in documents():
            group, _, version = document["apiVersion"].rpartition("/")
            kind = Resource(
                group=group,
                version=version,
                kind=document["kind"],
                plural=_plural(document["kind"]),
                type=Object,
                namespaced="namespace" in document["metadata"],
            )
            made = await client.create(kind, document)
            assert made.metadata.uid


def _plural(kind: str) -> str:
    return kind.lower().removesuffix("y") + ("ies" if kind.endswith("y") else "s")
