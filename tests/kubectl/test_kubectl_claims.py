"""Hosts that are claimed by a tenant, as he sees it with kubectl."""

from __future__ import annotations

import json
from typing import Any

from demo_hall import IMAGE, SCRIPT, DemoHall, credentials, host, resource, secret


def test_a_tenant_claims_a_host_and_sees_nothing_of_its_bmc(hall: DemoHall):
    hall.operator(SCRIPT, "--controllers=hosts").leads()
    # Claims come from other namespaces than hosts, so whoever gives hosts away looks at all of them.
    options = ("--controllers=machines", "--namespace=", f"--lease-namespace={hall.namespace}")
    giver = hall.operator(SCRIPT, *options)
    giver.leads()
    tenant = f"{hall.namespace}-tenant"
    hall.kubectl("create", "namespace", tenant)
    hall.apply(credentials("h1"), host("h1"))
    hall.wait("condition=AvailableForProvisioning", "bmh/h1")
    mine = ("-n", tenant)
    wish = resource(
        "HostClaim",
        "mine",
        poweredOn=True,
        image=IMAGE,
        userData={"name": "first-boot"},
        hostSelector={"inNamespace": hall.namespace},
    )
    wishes = [secret("first-boot", userData="#cloud-config\n{}"), wish]
    for one in wishes:
        hall.kubectl(*mine, "apply", "-f", "-", given=json.dumps(one))

    # Without a policy nobody gets anything.
    hall.until(lambda: condition_of(hall, tenant, "Associated").get("status") == "False")
    assert not hall.claimed()
    hall.apply(resource("HostDeployPolicy", "tenants", hostClaimNamespaces={"names": [tenant]}))
    hall.kubectl(*mine, "wait", "--for=condition=Ready", "--timeout=120s", "hostclaim/mine")
    assert hall.claimed() == {"h1": "mine"}
    hall.wait("condition=Provisioned", "bmh/h1")
    told = hall.kubectl(*mine, "get", "hostclaims,hardwaredata,secrets,events", "-o", "yaml")
    assert "redfish" not in told
    assert "h1-bmc" not in told
    hardware = hall.get(*mine, "hardwaredata/mine")[0]
    assert hardware["spec"]["hardware"]["cpu"]["arch"] == "x86_64"

    # Let go: the host is empty, and what was copied for it is gone.
    of_host = hall.get("bmh/h1")[0]["spec"]["userData"]["name"]
    assert "userData" in hall.get(f"secret/{of_host}")[0]["data"]
    hall.kubectl(*mine, "delete", "hostclaim", "mine", "--timeout=120s")
    hall.until(lambda: not hall.claimed())
    hall.wait("condition=AvailableForProvisioning", "bmh/h1")
    assert hall.books("h1")["undeploy"] == 1
    hall.until(lambda: f"secret/{of_host}" not in hall.kubectl("get", "secrets", "-o", "name").split())
    giver.stop()
    hall.kubectl("delete", "namespace", tenant, "--wait=false")


def condition_of(hall: DemoHall, tenant: str, name: str) -> dict[str, Any]:
    conditions = hall.get("-n", tenant, "hostclaim/mine")[0].get("status", {}).get("conditions", [])
    return next((found for found in conditions if found["type"] == name), {})
