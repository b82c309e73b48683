"""Representations: tables, metadata only, YAML, and what happens to those who ask for something else."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from kubernetes_api import Api, a_status

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def cells(table: Any) -> list[dict[str, Any]]:
    columns = [column["name"] for column in table["columnDefinitions"]]
    return [dict(zip(columns, row["cells"], strict=True)) for row in table["rows"]]


async def test_one_object_is_a_table_of_one_row(api: Api) -> None:
    made = await api.new_host("h1")
    table = (await api.get(api.host("h1"), accept=TABLE)).body
    assert [row["Name"] for row in cells(table)] == ["h1"]
    assert table["metadata"]["resourceVersion"] == made.version


async def test_the_columns_of_a_custom_kind_are_those_of_its_definition(api: Api) -> None:
    table = (await api.get(api.hosts, accept=TABLE)).body
    assert table["rows"] in ([], None)
    columns = {c["name"]: (c["type"], c["format"], c["priority"]) for c in table["columnDefinitions"]}
    assert columns["Name"] == ("string", "name", 0)
    assert columns["State"] == ("string", "", 0)
    assert columns["BMC"] == ("string", "", 1)
    assert columns["Online"] == ("string", "", 0)
    assert columns["Age"] == ("date", "", 0)
    assert all(column["description"] for column in table["columnDefinitions"])


async def test_a_value_that_is_not_there_is_an_empty_cell(api: Api) -> None:
    await api.new_host("h1")
    row = cells((await api.get(api.hosts, accept=TABLE)).body)[0]
    assert (row["State"], row["Consumer"], row["Online"]) == (None, None, "false")


@pytest.mark.parametrize(
    ("include", "kind"),
    [
        ("", "PartialObjectMetadata"),
        ("Metadata", "PartialObjectMetadata"),
        ("Object", "BareMetalHost"),
        ("None", None),
    ],
)
async def test_a_row_carries_as_much_of_its_object_as_asked_for(
    api: Api, include: str, kind: str | None
) -> None:
    await api.new_host("h1")
    row = (await api.get(api.hosts, accept=TABLE, includeObject=include)).body["rows"][0]
    carried = row.get("object")
    assert (carried and carried["kind"]) == kind


async def test_nothing_else_can_be_included_in_a_row(api: Api) -> None:
    answer = await api.get(api.hosts, accept=TABLE, includeObject="Everything")
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    assert "must be 'Metadata', 'Object', 'None', or empty" in answer.body["message"]


async def test_a_table_comes_in_pages_too(api: Api) -> None:
    for name in ("h1", "h2", "h3"):
        await api.new_host(name)
    first = (await api.get(api.hosts, accept=TABLE, limit=2)).body
    assert first["metadata"]["remainingItemCount"] == 1
    token = {"continue": first["metadata"]["continue"]}
    second = (await api.get(api.hosts, accept=TABLE, limit=2, **token)).body
    assert [row["Name"] for row in cells(first) + cells(second)] == ["h1", "h2", "h3"]


async def test_an_answer_to_a_write_can_be_a_table_or_metadata_too(api: Api) -> None:
    await api.new_host("h1")
    patch = {"metadata": {"labels": {"a": "b"}}}
    assert (await api.patch(api.host("h1"), patch, accept=TABLE)).body["kind"] == "Table"
    partial = (await api.patch(api.host("h1"), patch, accept=METADATA)).body
    assert (partial["kind"], partial["metadata"]["labels"]) == ("PartialObjectMetadata", {"a": "b"})
    assert "spec" not in partial


async def test_metadata_of_a_status_has_no_status(api: Api) -> None:
    await api.new_host("h1", annotations={"a": "b"})
    await api.patch(f"{api.host('h1')}/status", {"status": a_status()})
    one = (await api.get(f"{api.host('h1')}/status", accept=METADATA)).body
    assert set(one) == {"kind", "apiVersion", "metadata"}
    assert one["metadata"]["annotations"] == {"a": "b"}
    assert one["metadata"]["uid"]


async def test_metadata_lists_come_in_pages_and_by_selector(api: Api) -> None:
    for name in ("h1", "h2", "h3"):
        await api.new_host(name, labels={"rack": "b" if name == "h2" else "a"})
    first = (await api.get(api.hosts, accept=METADATA_LIST, limit=1, labelSelector="rack=a")).body
    assert [item["metadata"]["name"] for item in first["items"]] == ["h1"]
    token = {"continue": first["metadata"]["continue"]}
    rest = (await api.get(api.hosts, accept=METADATA_LIST, labelSelector="rack=a", **token)).body
    assert [item["metadata"]["name"] for item in rest["items"]] == ["h3"]


async def test_one_objects_metadata_is_no_list_and_a_lists_is_no_object(api: Api) -> None:
    await api.post(api.secrets, {"metadata": {"name": "s"}})
    for path, accept in ((api.secrets, METADATA), (f"{api.secrets}/s", METADATA_LIST)):
        answer = await api.get(path, accept=accept)
        assert (answer.code, answer.body["reason"]) == (406, "NotAcceptable"), accept


async def test_objects_lists_and_errors_can_be_had_as_yaml(api: Api) -> None:
    made = await api.new_host("h1")
    one = await api.get(api.host("h1"), accept="application/yaml")
    assert one.headers["Content-Type"] == "application/yaml"
    assert yaml.safe_load(one.body) == made.body
    listed = yaml.safe_load((await api.get(api.hosts, accept="application/yaml")).body)
    assert (listed["kind"], len(listed["items"])) == ("BareMetalHostList", 1)
    gone = await api.get(api.host("h2"), accept="application/yaml")
    assert (gone.code, yaml.safe_load(gone.body)["reason"]) == (404, "NotFound")


@pytest.mark.parametrize(
    ("accept", "code"),
    [
        ("", 200),
        ("*/*", 200),
        ("application/json", 200),
        ("text/html, application/json;q=0.5", 200),
        ("application/json;as=Nothing;v=v1;g=meta.k8s.io,application/json", 200),
        ("application/vnd.kubernetes.protobuf,application/json", 200),
        ("application/json;as=Nothing;v=v1;g=meta.k8s.io", 406),
        ("text/html", 406),
        ("application/cbor", 406),
    ],
)
async def test_the_first_form_that_is_known_is_taken(api: Api, accept: str, code: int) -> None:
    await api.new_host("h1")
    answer = await api.get(api.host("h1"), accept=accept)
    assert answer.code == code
    assert answer.body["kind"] == ("BareMetalHost" if code == 200 else "Status")


async def test_words_that_are_more_than_text_to_yaml_are_quoted(api: Api) -> None:
    words = ["y", "N", "08", "1e3", "0o7", "-.5", "null", "1_000"]
    data = {f"k{index}": word for index, word in enumerate(words)}
    maps = f"/api/v1/namespaces/{api.namespace}/configmaps"
    await api.post(maps, {"metadata": {"name": "c"}, "data": data})
    text = (await api.get(f"{maps}/c", accept="application/yaml")).body
    for name, word in data.items():
        assert f'{name}: "{word}"' in text
