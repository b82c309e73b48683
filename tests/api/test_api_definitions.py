"""Definitions: kinds that clients add, change and take away while the server runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from defined_kinds import CRDS, Group, a_definition, a_group, a_version, condition
from kubernetes_api import Api, Kubectl, eventually

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}


@pytest.fixture
async def group(api: Api) -> AsyncIterator[Group]:
    async with a_group(api) as group:
        yield group


async def test_a_kind_that_is_defined_is_served(api: Api, group: Group) -> None:
    assert (await api.get(group.place())).code == 404
    made = await group.define(a_version(spec={"size": {**WHOLE, "default": 3}}))
    assert made.body["metadata"]["generation"] == 1
    names = {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"}
    assert made.body["spec"]["names"] == names
    definition = (await api.get(group.definition())).body
    assert definition["status"]["acceptedNames"] == names
    assert definition["status"]["storedVersions"] == ["v1"]
    said = {c["type"]: (c["status"], c["reason"], c["message"]) for c in definition["status"]["conditions"]}
    assert said == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }
    created = await api.post(group.place(), group.a_widget("w", spec={"unknown": 1}))
    assert (created.code, created.body["spec"]) == (201, {"size": 3})


async def test_discovery_openapi_and_tables_follow_at_once(api: Api, group: Group, kubectl: Kubectl) -> None:
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How large."}
    version = a_version(spec={"size": {**WHOLE, "description": "How large it is."}})
    # kubectl remembers what it discovered, so that the names are this test's own.
    plural, short = f"{group.word}s", f"{group.word}x"
    await group.define(
        {**version, "additionalPrinterColumns": [column]},
        plural=plural,
        shortNames=[short],
        categories=["things"],
    )
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

    async def discovered() -> bool:
        groups = (await api.get("/apis", accept=accept)).body["items"]
        return group.name in [found["metadata"]["name"] for found in groups]

    await eventually(discovered)
    found = (await api.get(f"/apis/{group.name}/v1")).body["resources"][0]
    assert (found["name"], found["kind"], found["shortNames"], found["categories"]) == (
        plural,
        group.word.capitalize(),
        [short],
        ["things"],
    )
    place = f"apis/{group.name}/v1"

    async def hashed() -> str:
        paths = (await api.get("/openapi/v3")).body["paths"]
        return str(paths[place]["serverRelativeURL"]) if place in paths else ""

    async def described() -> bool:
        return bool(await hashed())

    await eventually(described)
    before = await hashed()
    assert "How large it is." in kubectl("explain", f"{plural}.spec.size")
    thing = {**group.a_widget("w", spec={"size": 4}), "kind": group.word.capitalize()}
    assert (await api.post(group.place(plural=plural), thing)).code == 201
    assert kubectl("get", short).split() == ["NAME", "SIZE", "w", "4"]
    wider = a_version(spec={"size": WHOLE, "color": TEXT})
    wider["additionalPrinterColumns"] = [{"name": "Color", "type": "string", "jsonPath": ".spec.color"}]
    assert (await api.patch(group.definition(plural), {"spec": {"versions": [wider]}})).code == 200

    async def other() -> bool:
        return await hashed() != before

    await eventually(other)

    async def shown() -> bool:
        return kubectl("get", short).split()[:2] == ["NAME", "COLOR"]

    await eventually(shown)


async def test_a_changed_schema_is_in_force_and_old_objects_show_its_defaults(api: Api, group: Group) -> None:
    await group.define(a_version(spec={"size": WHOLE, "old": TEXT}))
    made = await api.post(group.place(), group.a_widget("w", spec={"size": 20, "old": "x"}))
    assert made.code == 201
    schema = {"size": {**WHOLE, "maximum": 10}, "color": {**TEXT, "default": "red"}}
    changed = await api.patch(group.definition(), {"spec": {"versions": [a_version(spec=schema)]}})
    assert (changed.code, changed.body["metadata"]["generation"]) == (200, 2)

    async def shown() -> bool:
        return bool((await api.get(f"{group.place()}/w")).body["spec"] == {"size": 20, "color": "red"})

    await eventually(shown)
    seen = (await api.get(f"{group.place()}/w")).body
    assert seen["metadata"]["resourceVersion"] == made.version
    assert (await api.patch(f"{group.place()}/w", {"spec": {"size": 30}})).code == 422
    # What is wrong since the rule got stricter stays, as long as nobody touches it.
    assert (await api.patch(f"{group.place()}/w", {"metadata": {"labels": {"a": "b"}}})).code == 200


async def test_a_change_of_labels_alone_is_no_new_generation(api: Api, group: Group) -> None:
    await group.define()
    changed = await api.patch(group.definition(), {"metadata": {"labels": {"a": "b"}}})
    assert (changed.code, changed.body["metadata"]["generation"]) == (200, 1)


async def test_a_cluster_wide_kind_has_no_namespace(api: Api, group: Group) -> None:
    await group.define(scope="Cluster")
    path = f"/apis/{group.name}/v1/widgets"
    assert (await api.post(path, group.a_widget("w", spec={"size": 1}))).code == 201
    assert (await api.get(f"{path}/w")).code == 200
    assert (await api.get(group.place())).code == 404


async def test_status_is_written_apart_once_the_definition_says_so(api: Api, group: Group) -> None:
    version = a_version(spec={"size": WHOLE}, status={"seen": WHOLE})
    await group.define(version)
    body = group.a_widget("w", spec={"size": 1}, status={"seen": 1})
    assert (await api.post(group.place(), body)).body["status"] == {"seen": 1}
    assert (await api.patch(f"{group.place()}/w/status", {"status": {"seen": 2}})).code == 404
    version["subresources"] = {"status": {}}
    assert (await api.patch(group.definition(), {"spec": {"versions": [version]}})).code == 200

    async def apart() -> bool:
        return (await api.patch(f"{group.place()}/w/status", {"status": {"seen": 3}})).code == 200

    await eventually(apart)
    done = await api.patch(f"{group.place()}/w", {"status": {"seen": 4}})
    assert (done.code, done.body["status"]) == (200, {"seen": 3})


# Names


async def test_names_that_another_kind_of_the_group_has_are_not_given_twice(api: Api, group: Group) -> None:
    await group.define(shortNames=["wd"])
    other = a_definition(group.name, plural="gadgets", kind="Gadget", shortNames=["wd"])
    assert (await api.post(CRDS, other)).code == 201

    async def refused() -> bool:
        found = (await api.get(group.definition("gadgets"))).body
        return bool(condition(found, "NamesAccepted"))

    await eventually(refused)
    found = (await api.get(group.definition("gadgets"))).body
    said = condition(found, "NamesAccepted")
    assert (said["status"], said["reason"]) == ("False", "ShortNamesConflict")
    assert '"wd" is already in use' in said["message"]
    assert condition(found, "Established")["status"] == "False"
    assert condition(found, "Established")["reason"] == "NotAccepted"
    assert (await api.get(group.place(plural="gadgets"))).code == 404
    # The one that has the name lets go of it: then the other gets it.
    assert (await api.patch(group.definition(), {"spec": {"names": {"shortNames": []}}})).code == 200
    await group.established("gadgets")
    assert (await api.get(group.place(plural="gadgets"))).code == 200


async def test_a_kind_is_free_again_when_its_definition_is_gone(api: Api, group: Group) -> None:
    await group.define()
    other = a_definition(group.name, plural="gadgets", kind="Widget")
    assert (await api.post(CRDS, other)).code == 201

    async def refused() -> bool:
        found = (await api.get(group.definition("gadgets"))).body
        return condition(found, "NamesAccepted").get("status") == "False"

    await eventually(refused)
    found = (await api.get(group.definition("gadgets"))).body
    assert condition(found, "NamesAccepted")["reason"] in ("KindConflict", "ListKindConflict")
    assert (await api.delete(group.definition())).code == 200
    await group.gone()
    await group.established("gadgets")


# Refusals


def refused_definitions() -> dict[str, tuple[Any, int, str]]:
    """What is wrong: a change of a good definition, the code, and the first field that is named."""

    def named(**names: Any) -> Any:
        return {"names": {"plural": "widgets", "kind": "Widget", **names}}

    def with_schema(schema: Any) -> Any:
        version = a_version()
        version["schema"] = {"openAPIV3Schema": schema}
        return {"versions": [version]}

    def with_field(field: Any) -> Any:
        return {"versions": [a_version(spec={"f": field})]}

    def with_version(**more: Any) -> Any:
        return {"versions": [a_version(spec={"size": WHOLE}, **more)]}

    at = "spec.validation.openAPIV3Schema"
    field = f"{at}.properties[spec].properties[f]"
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "items": {"type": "object", "properties": {"k": TEXT}},
    }
    return {
        "another name": ({"group": "other.example.com"}, 422, "metadata.name"),
        "no scope": ({"scope": None}, 422, "spec.scope"),
        "another scope": ({"scope": "Galaxy"}, 422, "spec.scope"),
        "no kind": (named(kind=None), 422, "spec.names.kind"),
        "a bad short name": (named(shortNames=["Not a name"]), 422, "spec.names.shortNames[0]"),
        "a list called as its items": (named(listKind="Widget"), 422, "spec.names.listKind"),
        "no versions": ({"versions": []}, 422, "spec.versions"),
        "two storage versions": ({"versions": [a_version("v1"), a_version("v2")]}, 422, "spec.versions"),
        "the same version twice": (
            {"versions": [a_version("v1"), a_version("v1", storage=False)]},
            422,
            "spec.versions",
        ),
        "a bad name of a version": ({"versions": [a_version("1.0")]}, 422, "spec.versions[0].name"),
        "unknown fields kept everywhere": (
            {"preserveUnknownFields": True},
            422,
            "spec.preserveUnknownFields",
        ),
        "a warning without deprecation": (
            with_version(deprecationWarning="x"),
            422,
            "spec.versions[0].deprecationWarning",
        ),
        "no type": (with_field({}), 422, f"{field}.type"),
        "nothing for a schema": (with_field(None), 422, f"{field}.type"),
        "a flag for a schema": (with_field(True), 400, ""),
        "a list that lists nothing": (with_field({"type": "array", "items": [None]}), 422, f"{field}.items"),
        "values that are no list": (with_field({"type": "string", "enum": "a"}), 400, ""),
        "an unknown type": (with_field({"type": "strong"}), 422, f"{field}.type"),
        "a list of what": (with_field({"type": "array"}), 422, f"{field}.items"),
        "a root that is no object": (with_schema({"type": "string"}), 422, f"{at}.type"),
        "a reference": (with_field({"type": "object", "$ref": "#/x"}), 422, f"{field}.$ref"),
        "unique items": (
            with_field({"type": "array", "items": TEXT, "uniqueItems": True}),
            422,
            f"{field}.uniqueItems",
        ),
        "fields beside any fields": (
            with_field({"type": "object", "properties": {"a": TEXT}, "additionalProperties": TEXT}),
            422,
            f"{field}.additionalProperties",
        ),
        "a type under a junctor": (
            with_field({"type": "object", "anyOf": [{"type": "object"}]}),
            422,
            f"{field}.anyOf[0].type",
        ),
        "a broken pattern": (with_field({**TEXT, "pattern": "("}), 422, f"{field}.pattern"),
        "a default of another type": (with_field({**TEXT, "default": 3}), 422, f"{field}.default"),
        "a default that is not allowed": (
            with_field({**WHOLE, "maximum": 2, "default": 3}),
            422,
            f"{field}.default",
        ),
        "a default with unknown fields": (
            with_field({"type": "object", "properties": {"a": TEXT}, "default": {"b": 1}}),
            422,
            f"{field}.default",
        ),
        "a keyed list without keys": (with_field(keyed), 422, f"{field}.x-kubernetes-list-map-keys"),
        "a key that may be missing": (
            with_field({**keyed, "x-kubernetes-list-map-keys": ["k"]}),
            422,
            f"{field}.items.properties[k].default",
        ),
        "a set of open objects": (
            with_field(
                {
                    "type": "array",
                    "x-kubernetes-list-type": "set",
                    "items": {"type": "object", "properties": {"a": TEXT}},
                }
            ),
            422,
            f"{field}.items.x-kubernetes-map-type",
        ),
        "a column without a path": (
            with_version(additionalPrinterColumns=[{"name": "x", "type": "string"}]),
            422,
            "spec.additionalPrinterColumns[0].JSONPath",
        ),
        "a column of no type": (
            with_version(additionalPrinterColumns=[{"name": "x", "type": "what", "jsonPath": ".spec"}]),
            422,
            "spec.additionalPrinterColumns[0].type",
        ),
        "a scale outside": (
            with_version(subresources={"scale": {**scale, "specReplicasPath": ".status.size"}}),
            422,
            "spec.subresources.scale.specReplicasPath",
        ),
        "a selectable field that is not there": (
            with_version(selectableFields=[{"jsonPath": ".spec.nothing"}]),
            422,
            "spec.selectableFields[0].jsonPath",
        ),
        "a webhook that nobody said how to call": (
            {"conversion": {"strategy": "Webhook"}},
            422,
            "spec.conversion",
        ),
        "a group of Kubernetes": ({"group": "widgets.k8s.io"}, 422, ""),
        "no object": ({"versions": "v1"}, 400, ""),
        "a schema that is none": (with_schema({"type": 3}), 400, ""),
    }


@pytest.mark.parametrize("name", list(refused_definitions()))
async def test_a_definition_that_cannot_be_served_is_refused_with_the_field_that_is_wrong(
    api: Api, group: Group, name: str
) -> None:
    change, code, field = refused_definitions()[name]
    definition = a_definition(group.name)
    definition["spec"] = {
        key: value for key, value in {**definition["spec"], **change}.items() if value is not None
    }
    done = await api.post(CRDS, definition)
    assert done.code == code, done.body
    if code == 422:
        assert done.body["reason"] == "Invalid"
        fields = [cause["field"] for cause in done.body["details"]["causes"]]
        assert any(found.startswith(field) for found in fields), fields


async def test_what_names_objects_cannot_change(api: Api, group: Group) -> None:
    await group.define()
    for change, field in (
        ({"scope": "Cluster"}, "spec.scope"),
        ({"names": {"kind": "Gadget"}}, "spec.names.kind"),
        ({"names": {"plural": "gadgets"}}, "spec.names.plural"),
        ({"group": "other.example.com"}, "spec.group"),
    ):
        done = await api.patch(group.definition(), {"spec": change})
        assert (done.code, done.body["reason"]) == (422, "Invalid")
        assert field in [cause["field"] for cause in done.body["details"]["causes"]]


async def test_unknown_words_in_a_schema_are_dropped_or_refused_as_the_client_wishes(
    api: Api, group: Group
) -> None:
    definition = a_definition(group.name, a_version(spec={"size": {**WHOLE, "wordOfMine": 1}}))
    strict = await api.post(CRDS, definition, fieldValidation="Strict")
    assert strict.code == 400
    assert "spec.versions[0].schema.openAPIV3Schema.properties" in strict.body["message"]
    assert "wordOfMine" in strict.body["message"]
    made = await api.post(CRDS, definition)
    assert made.code == 201
    assert "wordOfMine" in made.headers["Warning"]
    assert "wordOfMine" not in json.dumps(made.body["spec"])


async def test_a_format_that_means_nothing_is_taken_with_a_warning(api: Api, group: Group) -> None:
    fields = {"when": {**TEXT, "format": "sundial"}, "at": {**TEXT, "format": "date-time"}}
    made = await api.post(CRDS, a_definition(group.name, a_version(spec=fields)))
    assert made.code == 201
    assert made.headers.getall("Warning") == ['299 - "unrecognized format \\"sundial\\""']


async def test_a_dry_run_defines_nothing(api: Api, group: Group) -> None:
    done = await api.post(CRDS, a_definition(group.name), dryRun="All")
    assert done.code == 201
    assert (await api.get(group.definition())).code == 404
    assert (await api.get(group.place())).code == 404


# The end


async def test_a_deleted_definition_takes_its_objects_with_it(api: Api, group: Group) -> None:
    await group.define()
    for name in ("a", "b"):
        assert (await api.post(group.place(), group.a_widget(name, spec={"size": 1}))).code == 201
    begin = (await api.get(group.place())).version
    stream = await api.watch(group.place(), resourceVersion=begin)
    done = await api.delete(group.definition())
    assert done.code == 200
    assert done.body["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert condition(done.body, "Terminating")["reason"] == "InstanceDeletionPending"
    async with asyncio.timeout(60):
        assert sorted(await stream.names(2)) == [("DELETED", "a"), ("DELETED", "b")]
    await group.gone()

    async def away() -> bool:
        groups = [found["name"] for found in (await api.get("/apis")).body["groups"]]
        return (await api.get(group.place())).code == 404 and group.name not in groups

    await eventually(away)
    # Defined once more, the kind begins with nothing.
    await group.define()

    async def empty() -> bool:
        found = await api.get(group.place())
        return found.code == 200 and found.body["items"] == []

    await eventually(empty)


async def test_objects_that_somebody_holds_keep_their_definition(api: Api, group: Group) -> None:
    await group.define()
    held = {"finalizers": ["example.com/held"]}
    assert (await api.post(group.place(), group.a_widget("w", metadata=held, spec={}))).code == 201
    assert (await api.delete(group.definition())).code == 200

    async def marked() -> bool:
        found = await api.get(f"{group.place()}/w")
        return "deletionTimestamp" in found.body["metadata"]

    await eventually(marked)
    refused = await api.post(group.place(), group.a_widget("x", spec={}))
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    words = "create not allowed while custom resource definition is terminating"
    assert refused.body["message"] == f'widgets.{group.name} "x" is forbidden: {words}'
    assert condition((await api.get(group.definition())).body, "Terminating")["status"] == "True"
    assert (await api.patch(f"{group.place()}/w", {"metadata": {"finalizers": None}})).code == 200
    await group.gone()


# kubectl


async def test_kubectl_applies_waits_for_and_deletes_a_definition(
    api: Api, group: Group, kubectl: Kubectl
) -> None:
    definition = a_definition(group.name, a_version(spec={"size": WHOLE}))
    name = f"crd/widgets.{group.name}"
    assert "created" in kubectl("apply", "-f", "-", stdin=json.dumps(definition))
    assert "condition met" in kubectl("wait", "--for=condition=established", name, "--timeout=60s")
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=json.dumps(definition))
    definition["spec"]["names"]["shortNames"] = ["wd"]
    assert "configured" in kubectl("apply", "-f", "-", stdin=json.dumps(definition))
    widget = group.a_widget("w", spec={"size": 1})

    async def taken() -> bool:
        return kubectl.run("apply", "-f", "-", stdin=json.dumps(widget)).returncode == 0

    await eventually(taken)
    assert "w" in kubectl("get", f"widgets.{group.name}", "-o=name")
    assert "deleted" in kubectl("delete", name, "--timeout=60s")
    assert (await api.get(group.definition())).code == 404


async def test_a_definition_is_applied_by_the_server(api: Api, group: Group, kubectl: Kubectl) -> None:
    definition = json.dumps(a_definition(group.name))
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", "-", stdin=definition)
    await group.established()
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", "-", stdin=definition)
    found = (await api.get(group.definition())).body
    assert found["metadata"]["generation"] == 1
