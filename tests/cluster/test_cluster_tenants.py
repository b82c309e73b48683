"""Tenants with identities of their own on a real kube-apiserver: what they need works, and what they must not see is refused.

The operator runs under the role that is shipped for it, and so do they.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from control_plane import NotBuilt, programs
from tenant_site import (
    PASSWORD,
    RACKS,
    SYSTEM,
    Refused,
    Site,
    claim,
    host,
    machine_set,
    policy,
    secret,
    site,
)

USER_DATA: Final = "#cloud-config\nhostname: of-team-a\n"


@dataclass
class Town:
    """The site as the tests find it: a Machine and two tenants have a host each, and one tenant may have none."""

    site: Site
    team_a: Path
    team_b: Path
    team_c: Path
    auditor: Path
    copied: str
    """The Secret beside the host that holds the user data of team-a."""


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    try:
        programs()
    except NotBuilt as missing:
        pytest.skip(str(missing))
    with site(tmp_path_factory.mktemp("site")) as here:
        tenants = {name: here.tenant(name) for name in ("team-a", "team-b", "team-c")}
        with here.operator("--controllers=hosts,machines", f"--defaults-namespace={SYSTEM}"):
            here.apply(*(part for name in ("h1", "h2", "h3") for part in host(name)))
            here.apply(policy("tenants", "team-a", "team-b"), machine_set("workers"))
            here.wait("jsonpath={.status.replicas}=1", "machineset/workers", "-n", RACKS)
            here.wait("jsonpath={.status.phase}=Provisioned", "machine", "--all", "-n", RACKS)
            for name, who in tenants.items():
                here.apply(
                    secret(name, "first-boot", userData=USER_DATA.replace("team-a", name)),
                    claim(name, "web", userData={"name": "first-boot"}),
                    as_who=who,
                )
            for name in ("team-a", "team-b"):
                here.wait("condition=Ready", "hostclaim/web", "-n", name, as_who=tenants[name])
            yield Town(
                here,
                tenants["team-a"],
                tenants["team-b"],
                tenants["team-c"],
                here.auditor(),
                copied=_host_of(here, "team-a")["spec"]["userData"]["name"],
            )


def _host_of(here: Site, tenant: str) -> dict[str, dict[str, dict[str, str]]]:
    (found,) = (
        one
        for one in here.get("bmh", "-n", RACKS)["items"]
        if one["spec"].get("consumerRef", {}).get("namespace") == tenant
    )
    return found


def test_the_operator_works_under_the_roles_that_are_shipped(town: Town) -> None:
    hosts = town.site.get("bmh", "-n", RACKS)["items"]
    states = {one["metadata"]["name"]: one["status"]["provisioning"]["state"] for one in hosts}
    assert states == dict.fromkeys(("h1", "h2", "h3"), "provisioned")
    consumers = sorted(
        (one["spec"]["consumerRef"]["kind"], one["spec"]["consumerRef"]["namespace"]) for one in hosts
    )
    assert consumers == [("HostClaim", "team-a"), ("HostClaim", "team-b"), ("Machine", RACKS)]
    assert town.site.refusals() == []
    # Its own are there, and it told what it did.
    assert town.site.get("lease/baremetal-operator", "-n", SYSTEM)["spec"]["holderIdentity"]
    assert town.site.get("validatingwebhookconfiguration/ingot")["webhooks"]
    assert town.site.get("events", "-n", RACKS)["items"]


def test_a_tenant_sees_the_claim_the_hardware_and_nothing_of_the_bmc(town: Town) -> None:
    mine = ("-n", "team-a")
    found = town.site.get("hostclaim/web", *mine, as_who=town.team_a)
    assert found["status"]["poweredOn"] is True
    assert found["status"]["hardwareData"] == {"name": "web", "namespace": "team-a"}
    hardware = town.site.get("hardwaredata/web", *mine, as_who=town.team_a)
    assert hardware["spec"]["hardware"]["cpu"]["arch"] == "x86_64"
    assert town.site.get("events", *mine, as_who=town.team_a)["items"]
    told = town.site.kubectl("get", "hostclaims,hardwaredata,events", *mine, "-o", "yaml", as_who=town.team_a)
    for word in ("redfish", "192.0.2.7", "-bmc", PASSWORD, town.copied):
        assert word not in told


OURS: Final = "/apis/metal3.io/v1alpha1"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
FORBIDDEN: Final = 403


@pytest.mark.parametrize(
    "asked",
    [
        # The hosts, and what is beside them: BMCs, copied user data, what happened there.
        f"GET {OURS}/namespaces/racks/baremetalhosts",
        f"GET {OURS}/namespaces/racks/baremetalhosts/h1",
        f"GET {OURS}/namespaces/racks/baremetalhosts/h1/status",
        f"GET {OURS}/namespaces/racks/baremetalhosts?watch=true",
        f"GET {OURS}/baremetalhosts",
        "GET /api/v1/namespaces/racks/secrets",
        "GET /api/v1/namespaces/racks/secrets/h1-bmc",
        "GET /api/v1/namespaces/racks/secrets/{copied}",
        "GET /api/v1/namespaces/racks/events",
        "GET /apis/events.k8s.io/v1/namespaces/racks/events",
        "GET /api/v1/namespaces/racks/configmaps",
        f"GET {OURS}/namespaces/racks/hardwaredata",
        f"GET {OURS}/namespaces/racks/hardwaredata/h1",
        f"GET {OURS}/namespaces/racks/hostfirmwaresettings/h1",
        f"GET {OURS}/namespaces/racks/preprovisioningimages",
        f"GET {OURS}/namespaces/racks/hostdeploypolicies",
        "GET /apis/machine.openshift.io/v1beta1/namespaces/racks/machines",
        f"PATCH {OURS}/namespaces/racks/baremetalhosts/h1",
        f"DELETE {OURS}/namespaces/racks/baremetalhosts/h1",
        f"POST {OURS}/namespaces/racks/hostclaims",
        f"POST {OURS}/namespaces/racks/hostdeploypolicies",
        # Other tenants.
        f"GET {OURS}/hostclaims",
        f"GET {OURS}/hardwaredata",
        "GET /api/v1/secrets",
        "GET /api/v1/events",
        f"GET {OURS}/namespaces/team-b/hostclaims",
        f"GET {OURS}/namespaces/team-b/hostclaims/web",
        f"GET {OURS}/namespaces/team-b/hardwaredata/web",
        "GET /api/v1/namespaces/team-b/secrets/first-boot",
        "GET /api/v1/namespaces/team-b/events",
        f"PATCH {OURS}/namespaces/team-b/hostclaims/web",
        f"DELETE {OURS}/namespaces/team-b/hostclaims/web",
        # The cluster, and who runs it.
        "GET /api/v1/nodes",
        "GET /api/v1/namespaces",
        "GET /api/v1/namespaces/ingot-system/configmaps",
        "GET /apis/coordination.k8s.io/v1/namespaces/ingot-system/leases",
        f"GET {RBAC}/clusterroles",
        # More than is due in his own namespace.
        f"GET {OURS}/namespaces/team-a/baremetalhosts",
        f"POST {OURS}/namespaces/team-a/baremetalhosts",
        f"POST {OURS}/namespaces/team-a/hostdeploypolicies",
        f"POST {OURS}/namespaces/team-a/hardwaredata",
        f"PATCH {OURS}/namespaces/team-a/hardwaredata/web",
        f"DELETE {OURS}/namespaces/team-a/hardwaredata/web",
        f"PATCH {OURS}/namespaces/team-a/hostclaims/web/status",
        f"POST {RBAC}/namespaces/team-a/rolebindings",
        # Being somebody else.
        "POST /api/v1/namespaces/team-b/serviceaccounts/tenant/token",
        "POST /api/v1/namespaces/ingot-system/serviceaccounts/ingot-operator/token",
    ],
)
def test_a_tenant_is_refused(town: Town, asked: str) -> None:
    method, path = asked.format(copied=town.copied).split(" ")
    body = None if method in ("GET", "DELETE") else {}
    assert town.site.answer(town.team_a, method, path, body) == FORBIDDEN


def test_a_tenant_cannot_speak_for_another(town: Town) -> None:
    path = f"{OURS}/namespaces/team-a/hostclaims"
    assert town.site.answer(town.team_a, "GET", path) == 200
    other = {"Impersonate-User": "system:serviceaccount:team-b:tenant"}
    assert town.site.answer(town.team_a, "GET", path, **other) == FORBIDDEN
    with pytest.raises(Refused, match=r"Forbidden.*baremetalhosts.*racks"):
        town.site.kubectl("get", "bmh", "-n", RACKS, as_who=town.team_a)


@pytest.mark.parametrize("left", [[], None, ["example.com/mine"]], ids=["none", "null", "another"])
def test_a_tenant_cannot_take_the_finalizer_off_a_claim(town: Town, left: list[str] | None) -> None:
    """The claim would be gone at once, and its host would run on outside any quota."""
    path = f"{OURS}/namespaces/team-a/hostclaims/web"
    assert town.site.answer(town.team_a, "PATCH", path, {"metadata": {"finalizers": left}}) == FORBIDDEN
    # Everything else of it is his.
    kept = town.site.get("hostclaim/web", "-n", "team-a", as_who=town.team_a)["metadata"]["finalizers"]
    assert kept == ["metal3.io/hostclaim"]
    more = {"metadata": {"finalizers": [*kept, "example.com/mine"], "annotations": {"note": "mine"}}}
    assert town.site.answer(town.team_a, "PATCH", path, more) == 200
    assert town.site.answer(town.team_a, "PATCH", path, {"metadata": {"finalizers": kept}}) == 200


def test_who_is_in_no_policy_gets_no_host_and_is_told_so(town: Town) -> None:
    mine = ("-n", "team-c")
    town.site.wait("condition=Associated=false", "hostclaim/web", *mine, as_who=town.team_c)
    found = town.site.get("hostclaim/web", *mine, as_who=town.team_c)
    (why,) = (one["message"] for one in found["status"]["conditions"] if one["type"] == "Associated")
    assert "HostDeployPolicy" in why
    assert "bareMetalHost" not in found["status"]
    for word in ("h1", "h2", "h3", "redfish", "-bmc"):
        assert word not in town.site.kubectl(
            "get", "hostclaims,events", *mine, "-o", "yaml", as_who=town.team_c
        )


def test_an_auditor_reads_hosts_and_claims_and_no_secret_and_changes_nothing(town: Town) -> None:
    who = town.auditor
    assert len(town.site.get("bmh", "-A", as_who=who)["items"]) == 3
    assert len(town.site.get("hostclaims", "-A", as_who=who)["items"]) == 3
    for kinds in ("machines,machinesets,hostdeploypolicies,hardwaredata,events,nodes,namespaces,leases",):
        town.site.kubectl("get", kinds, "-A", as_who=who)
    for typed in (
        ("get", "secrets", "-A"),
        ("get", "secret/h1-bmc", "-n", RACKS),
        ("get", "preprovisioningimages", "-A"),
        ("delete", "bmh/h1", "-n", RACKS),
        ("annotate", "bmh/h1", "-n", RACKS, "seen=yes"),
        ("delete", "hostclaim/web", "-n", "team-a"),
    ):
        with pytest.raises(Refused, match="orbidden"):
            town.site.kubectl(*typed, as_who=who)


def test_a_tenant_lets_go_and_nothing_of_his_is_left_beside_the_host(town: Town) -> None:
    """Comes late: the host goes to whoever claims next."""
    here, had = town.site, _host_of(town.site, "team-b")
    name, copied = had["metadata"]["name"], had["spec"]["userData"]["name"]
    here.kubectl("delete", "hostclaim/web", "-n", "team-b", "--timeout=120s", as_who=town.team_b)
    here.wait("condition=AvailableForProvisioning", f"bmh/{name}", "-n", RACKS)
    assert "consumerRef" not in here.get(f"bmh/{name}", "-n", RACKS)["spec"]
    here.until(
        lambda: f"secret/{copied}" not in here.kubectl("get", "secrets", "-n", RACKS, "-o", "name").split()
    )
    here.until(lambda: here.get("hardwaredata", "-n", "team-b", as_who=town.team_b)["items"] == [])
    assert here.refusals() == []


def test_a_host_whose_claim_an_administrator_tears_away_is_emptied_and_released(town: Town) -> None:
    """Comes last. Whoever may do everything may do this, and the tenant's system does not run on."""
    here, had = town.site, _host_of(town.site, "team-a")
    name, mine = had["metadata"]["name"], ("-n", "team-a")
    path = f"{OURS}/namespaces/team-a/hostclaims/web"
    here.kubectl("annotate", f"bmh/{name}", "-n", RACKS, "baremetalhost.metal3.io/paused=")
    here.kubectl("delete", "hostclaim/web", *mine, "--wait=false", as_who=town.team_a)
    # It waits for its host, and the tenant has to.
    assert here.answer(town.team_a, "PATCH", path, {"metadata": {"finalizers": []}}) == FORBIDDEN
    here.kubectl("patch", "hostclaim/web", *mine, "--type=merge", '-p={"metadata":{"finalizers":[]}}')
    here.kubectl("annotate", f"bmh/{name}", "-n", RACKS, "baremetalhost.metal3.io/paused-")
    here.until(lambda: "consumerRef" not in here.get(f"bmh/{name}", "-n", RACKS)["spec"])
    freed = here.get(f"bmh/{name}", "-n", RACKS)
    assert "image" not in freed["spec"]
    assert freed["status"]["provisioning"]["state"] in ("preparing", "available")
    assert f"secret/{town.copied}" not in here.kubectl("get", "secrets", "-n", RACKS, "-o", "name").split()
    told = [one["reason"] for one in here.get("events", "-n", RACKS)["items"]]
    assert "ConsumerGone" in told
    assert here.refusals() == []
