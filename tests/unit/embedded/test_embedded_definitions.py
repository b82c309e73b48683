"""Definitions at run time, as only this server does it: those of the release, restarts, and what is on disk."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from running_server import WIDGETS, Caller, a_widget, served, widget_crd

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGET = f"{CRDS}/widgets.example.com"


async def until(api: Caller, path: str, type_: str, status: str = "True") -> Any:
    """The definition, when it has this condition."""
    async with asyncio.timeout(60):
        while True:
            _, found = await api.call("GET", path)
            conditions = {c["type"]: c for c in found.get("status", {}).get("conditions", ())}
            if conditions.get(type_, {}).get("status") == status:
                return found
            await asyncio.sleep(0.02)


async def test_the_kinds_of_the_release_are_there_as_definitions_and_a_restart_changes_nothing(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, crds=None) as api:
        found = await until(api, f"{CRDS}/baremetalhosts.metal3.io", "Established")
        assert found["status"]["storedVersions"] == ["v1alpha1"]
        first = found["metadata"]["resourceVersion"]
    async with served(tmp_path, crds=None) as api:
        _, again = await api.call("GET", f"{CRDS}/baremetalhosts.metal3.io")
        assert again["metadata"]["resourceVersion"] == first


async def test_a_definition_of_the_release_cannot_be_deleted(tmp_path: Path) -> None:
    async with served(tmp_path, crds=[widget_crd()]) as api:
        code, answer = await api.call("DELETE", WIDGET)
        assert (code, answer["reason"]) == (403, "Forbidden")
        assert "part of this Ingot release" in answer["message"]
        assert (await api.call("GET", WIDGETS))[0] == 200


async def test_another_definition_of_the_same_name_is_answered_with_a_warning_and_the_releases_own_is_served(
    tmp_path: Path,
) -> None:
    own = widget_crd(properties={"size": {"type": "integer"}})
    theirs = widget_crd(properties={"weight": {"type": "integer"}})
    async with served(tmp_path, crds=[own]) as api:
        assert (await api.call("POST", CRDS, theirs))[0] == 409
        headers = {"Content-Type": "application/merge-patch+json"}
        patch = {"metadata": {"labels": {"applied": "yes"}}, "spec": theirs["spec"]}
        async with api.session.patch(api.url + WIDGET, json=patch, headers=headers) as response:
            assert response.status == 200
            assert "its own definition is served" in response.headers["Warning"]
            found = await response.json()
        assert found["metadata"]["labels"] == {"applied": "yes"}
        assert found["metadata"]["generation"] == 1
        body = a_widget("w", {"size": 3, "weight": 4})
        assert (await api.call("POST", WIDGETS, body))[1]["spec"] == {"size": 3}


async def test_another_definition_of_the_same_name_is_applied_by_the_server_without_conflict(
    tmp_path: Path,
) -> None:
    theirs = widget_crd(properties={"weight": {"type": "integer"}})
    async with served(tmp_path, crds=[widget_crd()]) as api:
        headers = {"Content-Type": "application/apply-patch+yaml"}
        path = f"{api.url}{WIDGET}?fieldManager=kubectl"
        for _ in range(2):
            async with api.session.patch(path, json=theirs, headers=headers) as response:
                assert response.status == 200, await response.text()
                assert "its own definition is served" in response.headers["Warning"]


async def test_a_definition_whose_watchers_listen_ends_their_watch_when_it_changes(tmp_path: Path) -> None:
    changed = widget_crd(properties={"size": {"type": "integer"}})
    async with served(tmp_path, crds=[]) as api:
        assert (await api.call("POST", CRDS, widget_crd()))[0] == 201
        await until(api, WIDGET, "Established")
        async with api.session.get(f"{api.url}{WIDGETS}?watch=true") as watch:
            # What says nothing about objects disturbs nobody.
            assert (await api.call("PATCH", WIDGET, {"metadata": {"labels": {"a": "b"}}}))[0] == 200
            assert (await api.call("POST", WIDGETS, a_widget("w")))[0] == 201
            assert b'"ADDED"' in await watch.content.readline()
            assert (await api.call("PATCH", WIDGET, {"spec": changed["spec"]}))[0] == 200
            async with asyncio.timeout(60):
                assert await watch.content.readline() == b""


async def test_at_the_start_the_releases_definition_wins_over_an_older_one_and_objects_get_its_defaults(
    tmp_path: Path,
) -> None:
    older = widget_crd(properties={"size": {"type": "integer"}, "old": {"type": "string"}})
    newer = widget_crd(properties={"size": {"type": "integer"}, "new": {"type": "string", "default": "d"}})
    async with served(tmp_path, crds=[older]) as api:
        body = a_widget("w", {"size": 3, "old": "o"})
        assert (await api.call("POST", WIDGETS, body))[0] == 201
    async with served(tmp_path, crds=[newer]) as api:
        assert (await api.call("GET", f"{WIDGETS}/w"))[1]["spec"] == {"size": 3, "new": "d"}
        _, found = await api.call("GET", WIDGET)
        assert found["metadata"]["generation"] == 2


async def test_a_definition_that_a_release_drops_stays_with_its_objects_and_can_then_be_deleted(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, crds=[widget_crd()]) as api:
        assert (await api.call("POST", WIDGETS, a_widget("w")))[0] == 201
    async with served(tmp_path, crds=[]) as api:
        assert (await api.call("GET", f"{WIDGETS}/w"))[0] == 200
        assert (await api.call("DELETE", WIDGET))[0] == 200
        await api.gone(WIDGET)
        assert (await api.call("GET", WIDGETS))[0] == 404


async def test_a_definition_that_is_being_deleted_when_a_release_brings_it_ends_and_begins_anew(
    tmp_path: Path,
) -> None:
    held = a_widget("w", finalizers=["example.com/held"])
    async with served(tmp_path, crds=[]) as api:
        assert (await api.call("POST", CRDS, widget_crd()))[0] == 201
        assert (await api.call("POST", WIDGETS, held))[0] == 201
        assert (await api.call("DELETE", WIDGET))[0] == 200
    async with served(tmp_path, crds=[widget_crd()]) as api:
        old = (await until(api, WIDGET, "Terminating"))["metadata"]["uid"]
        assert (await api.call("PATCH", f"{WIDGETS}/w", {"metadata": {"finalizers": None}}))[0] == 200
        async with asyncio.timeout(60):
            while (await api.call("GET", WIDGET))[1].get("metadata", {}).get("uid", old) == old:  # noqa: ASYNC110 (behind HTTP)
                await asyncio.sleep(0.02)
        await until(api, WIDGET, "Established")
        assert (await api.call("POST", WIDGETS, a_widget("x")))[0] == 201


async def test_what_clients_defined_is_served_again_after_a_restart(tmp_path: Path) -> None:
    async with served(tmp_path, crds=[]) as api:
        assert (await api.call("POST", CRDS, widget_crd()))[0] == 201
        assert (await api.call("POST", WIDGETS, a_widget("w")))[0] == 201
        _, listed = await api.call("GET", WIDGETS)
    async with served(tmp_path, crds=[]) as api:
        _, again = await api.call("GET", WIDGETS)
        assert again["items"] == listed["items"]
        # The history is there too: who watched before goes on.
        version = str(int(listed["items"][0]["metadata"]["resourceVersion"]) - 1)
        code, events = await api.call(
            "GET", WIDGETS, watch="true", resourceVersion=version, timeoutSeconds="1"
        )
        assert (code, events["type"], events["object"]["metadata"]["name"]) == (200, "ADDED", "w")


async def test_names_are_shared_by_a_group_and_not_by_the_groups_below_it(tmp_path: Path) -> None:
    below = widget_crd()
    below["metadata"]["name"] = "widgets.below.example.com"
    below["spec"]["group"] = "below.example.com"
    async with served(tmp_path, crds=[below]) as api:
        assert (await api.call("POST", CRDS, widget_crd()))[0] == 201
        await until(api, WIDGET, "Established")


async def test_many_objects_go_with_their_definition(tmp_path: Path) -> None:
    async with served(tmp_path, crds=[]) as api:
        assert (await api.call("POST", CRDS, widget_crd()))[0] == 201
        bodies = (a_widget(f"w{n}") for n in range(250))
        made = await asyncio.gather(*(api.call("POST", WIDGETS, body) for body in bodies))
        assert {code for code, _ in made} == {201}
        assert (await api.call("DELETE", WIDGET))[0] == 200
        await api.gone(WIDGET)
        assert (await api.call("POST", CRDS, widget_crd()))[0] == 201
        assert (await api.call("GET", WIDGETS))[1]["items"] == []


async def test_a_definition_that_somebody_lets_go_before_its_objects_finds_them_again(tmp_path: Path) -> None:
    held = a_widget("w", finalizers=["example.com/held"])
    async with served(tmp_path, crds=[]) as api:
        assert (await api.call("POST", CRDS, widget_crd()))[0] == 201
        assert (await api.call("POST", WIDGETS, held))[0] == 201
        assert (await api.call("DELETE", WIDGET))[0] == 200
        assert (await api.call("PATCH", WIDGET, {"metadata": {"finalizers": None}}))[0] == 200
        await api.gone(WIDGET)
        assert (await api.call("GET", WIDGETS))[0] == 404
        assert (await api.call("POST", CRDS, widget_crd()))[0] == 201
        assert (await api.call("GET", f"{WIDGETS}/w"))[0] == 200
    async with served(tmp_path, crds=[]) as api:
        assert (await api.call("GET", f"{WIDGETS}/w"))[0] == 200


async def test_a_deletion_that_a_restart_interrupts_goes_on_after_it(tmp_path: Path) -> None:
    async with served(tmp_path, crds=[]) as api:
        assert (await api.call("POST", CRDS, widget_crd()))[0] == 201
        held = a_widget("w", finalizers=["example.com/held"])
        assert (await api.call("POST", WIDGETS, held))[0] == 201
        assert (await api.call("DELETE", WIDGET))[0] == 200
    async with served(tmp_path, crds=[]) as api:
        found = await until(api, WIDGET, "Terminating")
        assert found["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        code, answer = await api.call("POST", WIDGETS, a_widget("x"))
        assert (code, answer["reason"]) == (403, "Forbidden")
        async with asyncio.timeout(60):
            while "deletionTimestamp" not in (await api.call("GET", f"{WIDGETS}/w"))[1]["metadata"]:  # noqa: ASYNC110 (behind HTTP)
                await asyncio.sleep(0.02)
        assert (await api.call("PATCH", f"{WIDGETS}/w", {"metadata": {"finalizers": None}}))[0] == 200
        await api.gone(WIDGET)
        assert (await api.call("GET", WIDGETS))[0] == 404


@pytest.mark.parametrize("lost", ['"storage":true', '"kind":"Widget",'])
async def test_a_definition_on_disk_that_cannot_be_served_keeps_the_server_and_the_others_up(
    tmp_path: Path, lost: str, caplog: pytest.LogCaptureFixture
) -> None:
    other = json.loads(json.dumps(widget_crd()).replace("idget", "adget"))
    async with served(tmp_path, crds=[]) as api:
        for definition in (widget_crd(), other):
            assert (await api.call("POST", CRDS, definition))[0] == 201
        await until(api, WIDGET, "Established")
    with contextlib.closing(sqlite3.connect(tmp_path / "api" / "api.db")) as database:
        # Nobody can store this; a file that was mended by hand can hold it.
        without = '"storage":false' if "storage" in lost else ""
        database.execute(
            "UPDATE object SET body = CAST(replace(body, ?, ?) AS BLOB) WHERE name = 'widgets.example.com'",
            (lost, without),
        )
        database.commit()
    async with served(tmp_path, crds=[]) as api:
        assert (await api.call("GET", WIDGETS.replace("idget", "adget")))[0] == 200
        assert "widgets.example.com cannot be served" in caplog.text
        assert (await api.call("GET", WIDGET))[0] == 200
