"""Whether the server lives and how it is, as probes and monitoring ask for it."""

from __future__ import annotations

import re

import pytest
from kubernetes_api import Api


@pytest.mark.parametrize("endpoint", ["healthz", "livez", "readyz"])
async def test_a_probe_is_told_ok_and_with_verbose_each_check(api: Api, endpoint: str) -> None:
    short = await api.get(f"/{endpoint}")
    assert (short.code, short.body) == (200, "ok")
    assert short.headers["Content-Type"].startswith("text/plain")
    full = await api.get(f"/{endpoint}", verbose="")
    lines = full.body.splitlines()
    assert "[+]ping ok" in lines
    assert lines[-1] == f"{endpoint} check passed"


async def test_a_check_can_be_asked_for_by_its_name(api: Api) -> None:
    for path in ("/livez/ping", "/readyz/ping", "/healthz/ping", "/readyz/etcd"):
        answer = await api.get(path)
        assert (answer.code, answer.body) == (200, "ok"), path
    assert (await api.get("/livez/no-such-check")).code == 404


async def test_a_check_can_be_left_out_and_one_that_is_not_there_is_a_warning(api: Api) -> None:
    lines = (await api.get("/readyz", verbose="", exclude="etcd")).body.splitlines()
    assert "[+]etcd excluded: ok" in lines
    lines = (await api.get("/readyz", verbose="", exclude="nothing")).body.splitlines()
    assert 'warn: some health checks cannot be excluded: no matches for "nothing"' in lines


async def test_single_checks_and_metrics_are_for_those_who_are_known(api: Api) -> None:
    for path in ("/livez/ping", "/metrics"):
        assert (await api.get(path, headers={"Authorization": ""})).code == 401, path


async def test_metrics_count_requests_by_verb_resource_and_code(api: Api) -> None:
    await api.new_host("h1")
    await api.get(api.host("h1"))
    await api.get(api.host("h2"))
    watch = await api.watch(api.hosts)
    await watch.next()
    answer = await api.get("/metrics")
    assert answer.code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    for name, labels in (
        ("apiserver_request_total", {"verb": "GET", "code": "200", "group": "metal3.io"}),
        ("apiserver_request_total", {"verb": "GET", "code": "404", "group": "metal3.io"}),
        ("apiserver_request_total", {"verb": "POST", "code": "201", "group": "metal3.io"}),
        ("apiserver_request_duration_seconds_count", {"verb": "GET", "resource": "baremetalhosts"}),
        ("apiserver_longrunning_requests", {"verb": "WATCH", "resource": "baremetalhosts"}),
    ):
        assert value(answer.body, name, labels | {"resource": "baremetalhosts"}) >= 1, (name, labels)


def value(text: str, name: str, labels: dict[str, str]) -> float:
    """The sum of what has this name and these labels."""
    found = 0.0
    for line in text.splitlines():
        if line.startswith(f"{name}{{"):
            given = dict(re.findall(r'(\w+)="([^"]*)"', line))
            if labels.items() <= given.items():
                found += float(line.rpartition(" ")[2])
    return found
