"""The rules of our kinds in the embedded API, and what only it does: definitions, stricter schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from running_server import WIDGETS, a_widget, served, widget_crd

HOSTS = "/apis/metal3.io/v1alpha1/namespaces/default/baremetalhosts"


def a(kind: str, name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


async def test_a_rule_of_ours_refuses_with_field_and_sentence(tmp_path: Path) -> None:
    async with served(tmp_path, crds=None) as api:
        bmc = {"address": "bogus://x", "credentialsName": "s"}
        body = a("BareMetalHost", "h1", {"online": True, "bmc": bmc})
        code, answer = await api.call("POST", HOSTS, body)
        assert (code, answer["reason"]) == (422, "Invalid")
        assert answer["details"]["causes"][0]["field"] == "spec.bmc.address"
        assert (
            'BareMetalHost.metal3.io "h1" is invalid: spec.bmc.address: Invalid value: "bogus://x"'
            in answer["message"]
        )
        assert (await api.call("GET", f"{HOSTS}/h1"))[0] == 404


ATTACHMENTS = "/apis/metal3.io/v1alpha1/namespaces/default/hostnetworkattachments"


async def test_an_attachment_in_use_neither_changes_nor_goes_until_its_host_lets_go(tmp_path: Path) -> None:
    async with served(tmp_path, crds=None) as api:
        attachment = a("HostNetworkAttachment", "x1", {"mode": "access", "nativeVLAN": 7})
        assert (await api.call("POST", ATTACHMENTS, attachment))[0] == 201
        interface = {"name": "eth0", "hostNetworkAttachment": {"name": "x1"}}
        host = a("BareMetalHost", "h1", {"online": False, "networkInterfaces": [interface]})
        assert (await api.call("POST", HOSTS, host))[0] == 201

        code, answer = await api.call("PATCH", f"{ATTACHMENTS}/x1", {"spec": {"nativeVLAN": 8}})
        assert (code, answer["details"]["causes"][0]["field"]) == (422, "spec")
        code, answer = await api.call("DELETE", f"{ATTACHMENTS}/x1")
        assert (code, answer["reason"]) == (422, "Invalid")
        assert "used by default/h1[eth0], and cannot be deleted" in answer["message"]
        assert (await api.call("GET", f"{ATTACHMENTS}/x1"))[1]["spec"]["nativeVLAN"] == 7

        assert (await api.call("PATCH", f"{HOSTS}/h1", {"spec": {"networkInterfaces": None}}))[0] == 200
        assert (await api.call("PATCH", f"{ATTACHMENTS}/x1", {"spec": {"nativeVLAN": 8}}))[0] == 200
        assert (await api.call("DELETE", f"{ATTACHMENTS}/x1"))[0] == 200


async def test_a_namespace_goes_although_things_in_it_use_each_other(tmp_path: Path) -> None:
    async with served(tmp_path, crds=None) as api:
        assert (await api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "lab"}}))[0] == 201
        interface = {"name": "eth0", "hostNetworkAttachment": {"name": "x1"}}
        spec = {"online": False, "networkInterfaces": [interface]}
        host = a("BareMetalHost", "h1", spec, finalizers=["example.com/x"])
        attachment = a("HostNetworkAttachment", "x1", {"mode": "access", "nativeVLAN": 7})
        hosts, attachments = (path.replace("default", "lab") for path in (HOSTS, ATTACHMENTS))
        assert (await api.call("POST", attachments, attachment))[0] == 201
        assert (await api.call("POST", hosts, host))[0] == 201
        assert (await api.call("DELETE", "/api/v1/namespaces/lab"))[0] == 200
        assert (await api.call("GET", f"{attachments}/x1"))[0] == 200
        assert (await api.call("PATCH", f"{hosts}/h1", {"metadata": {"finalizers": None}}))[0] == 200
        await api.gone("/api/v1/namespaces/lab")


async def test_a_firmware_setting_is_compared_with_the_schema_of_the_host(tmp_path: Path) -> None:
    base = "/apis/metal3.io/v1alpha1/namespaces/default"
    async with served(tmp_path, crds=None) as api:
        cores = {"attribute_type": "Integer", "upper_bound": 8}
        schema = a("FirmwareSchema", "schema-1", {"schema": {"Cores": cores}})
        settings = a("HostFirmwareSettings", "h1", {"settings": {"Cores": 99}})
        assert (await api.call("POST", f"{base}/firmwareschemas", schema))[0] == 201
        # Nobody knows yet which firmware the host has.
        assert (await api.call("POST", f"{base}/hostfirmwaresettings", settings))[0] == 201
        found = {"schema": {"name": "schema-1", "namespace": "default"}, "settings": {"Cores": "4"}}
        path = f"{base}/hostfirmwaresettings/h1"
        assert (await api.call("PATCH", f"{path}/status", {"status": found}))[0] == 200
        code, answer = await api.call("PATCH", path, {"spec": {"settings": {"Cores": 9}}})
        assert (code, answer["details"]["causes"][0]["field"]) == (422, "spec.settings[Cores]")
        assert (await api.call("PATCH", path, {"spec": {"settings": {"Cores": 8}}}))[0] == 200


async def test_finalizers_come_off_although_the_schema_got_stricter(tmp_path: Path) -> None:
    loose = widget_crd(properties={"size": {"type": "integer"}})
    strict = widget_crd(properties={"size": {"type": "integer", "maximum": 10}})
    async with served(tmp_path, crds=[loose]) as api:
        body = a_widget("w", {"size": 20}, finalizers=["x.y/z"])
        assert (await api.call("POST", WIDGETS, body))[0] == 201
    async with served(tmp_path, crds=[strict]) as api:
        assert (await api.call("PATCH", f"{WIDGETS}/w", {"spec": {"size": 30}}))[0] == 422
        assert (await api.call("PATCH", f"{WIDGETS}/w/status", {"status": {"seen": True}}))[0] == 200
        assert (await api.call("DELETE", f"{WIDGETS}/w"))[0] == 200
        assert (await api.call("PATCH", f"{WIDGETS}/w", {"metadata": {"finalizers": []}}))[0] == 200
        assert (await api.call("GET", f"{WIDGETS}/w"))[0] == 404


async def test_a_hostile_field_name_cannot_break_out_of_a_warning_header(tmp_path: Path) -> None:
    async with served(tmp_path, crds=[widget_crd(properties={})]) as api:
        body = json.dumps(a_widget("w", {'a\r\nSet-Cookie: x=1"ü': 1})).encode()
        async with api.session.post(
            api.url + WIDGETS, data=body, headers={"Content-Type": "application/json"}
        ) as response:
            assert response.status == 201
            assert "Set-Cookie" not in response.headers
            assert "unknown field" in response.headers["Warning"]
