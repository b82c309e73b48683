"""Pods and what makes them: defaults, rules, and the life of a pod up to its end."""

from __future__ import annotations

from typing import Any

import pytest
from built_in_kinds import (
    CONTAINER,
    a_job,
    a_pod,
    a_pod_with,
    a_service,
    a_workload,
    core,
    fields_of,
    of_group,
    pods_are_welcome,
)
from kubernetes_api import MERGE, STRATEGIC, Api, Kubectl

APPLY = "application/apply-patch+yaml"


def apps(api: Api, plural: str = "deployments") -> str:
    return of_group(api, "apps", plural)


async def new_pod(api: Api, pod: dict[str, Any]) -> dict[str, Any]:
    await pods_are_welcome(api)
    made = await api.post(core(api, "pods"), pod)
    assert made.code == 201, made.body
    found: dict[str, Any] = made.body
    return found


async def bind(api: Api, name: str, node: str = "no-such-node") -> None:
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    answer = await api.post(f"{core(api, 'pods')}/{name}/binding", binding)
    assert answer.code == 201, answer.body


# What is filled in


async def test_a_pod_begins_pending_with_what_its_creator_left_out(api: Api) -> None:
    container = {**CONTAINER, "ports": [{"containerPort": 80}], "livenessProbe": {"httpGet": {"port": 80}}}
    pod = await new_pod(api, a_pod(containers=[container], volumes=[{"name": "v"}]))
    assert pod["status"]["phase"] == "Pending"
    assert pod["metadata"]["generation"] == 1
    spec = pod["spec"]
    assert {name: spec[name] for name in ("restartPolicy", "dnsPolicy", "terminationGracePeriodSeconds")} == {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
    }
    assert spec["securityContext"] == {}
    assert spec["volumes"][0] == {"name": "v", "emptyDir": {}}
    main = spec["containers"][0]
    assert main["imagePullPolicy"] == "IfNotPresent"
    assert main["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert main["terminationMessagePath"] == "/dev/termination-log"
    assert main["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


PULLS = [
    ("x", "Always"),
    ("x:latest", "Always"),
    ("x:1", "IfNotPresent"),
    ("registry.example.org:5000/x", "Always"),
    ("registry.example.org:5000/x:1", "IfNotPresent"),
    (f"x@sha256:{'0' * 64}", "IfNotPresent"),
]


async def test_an_image_is_pulled_when_it_may_have_changed(api: Api) -> None:
    await pods_are_welcome(api)
    for image, policy in PULLS:
        made = await api.post(core(api, "pods"), a_pod_with(image=image), dryRun="All")
        assert made.body["spec"]["containers"][0]["imagePullPolicy"] == policy, image


@pytest.mark.parametrize(
    ("resources", "shown", "quality"),
    [
        ({}, {}, "BestEffort"),
        ({"requests": {"cpu": "0.5"}}, {"requests": {"cpu": "500m"}}, "Burstable"),
        (
            {"limits": {"cpu": 1, "memory": "1024Mi"}},
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
            "Guaranteed",
        ),
    ],
)
async def test_what_a_pod_asks_for_is_shown_in_one_form(
    api: Api, resources: dict[str, Any], shown: dict[str, Any], quality: str
) -> None:
    await pods_are_welcome(api)
    made = await api.post(core(api, "pods"), a_pod_with(resources=resources), dryRun="All")
    assert made.body["spec"]["containers"][0]["resources"] == shown
    assert made.body["status"]["qosClass"] == quality


async def test_a_pod_on_the_network_of_its_node_uses_the_ports_of_its_node(api: Api) -> None:
    await pods_are_welcome(api)
    pod = a_pod(hostNetwork=True, containers=[{**CONTAINER, "ports": [{"containerPort": 6385}]}])
    made = await api.post(core(api, "pods"), pod, dryRun="All")
    assert made.body["spec"]["containers"][0]["ports"][0]["hostPort"] == 6385


async def test_a_deployment_says_how_it_rolls(api: Api) -> None:
    spec = (await api.post(apps(api), a_workload(), dryRun="All")).body["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }
    meant = a_workload(replicas=0, strategy={"rollingUpdate": {"maxSurge": 0}})
    spec = (await api.post(apps(api), meant, dryRun="All")).body["spec"]
    assert spec["replicas"] == 0
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": "25%"}
    recreated = a_workload(strategy={"type": "Recreate"})
    assert (await api.post(apps(api), recreated, dryRun="All")).body["spec"]["strategy"] == {
        "type": "Recreate"
    }


async def test_a_daemon_set_says_how_it_rolls_and_that_it_is_nowhere_yet(api: Api) -> None:
    made = (await api.post(apps(api, "daemonsets"), a_workload(), dryRun="All")).body
    assert made["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
    }
    assert made["status"]["numberReady"] == 0


async def test_a_job_finds_its_pods_by_its_own_identity(api: Api) -> None:
    made = (await api.post(of_group(api, "batch", "jobs"), a_job(suspend=True))).body
    spec, uid = made["spec"], made["metadata"]["uid"]
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    labels = spec["template"]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/controller-uid"] == uid
    assert labels["batch.kubernetes.io/job-name"] == "j"
    assert (spec["parallelism"], spec["completions"], spec["backoffLimit"]) == (1, 1, 6)
    assert (spec["completionMode"], spec["podReplacementPolicy"]) == ("NonIndexed", "TerminatingOrFailed")


async def test_what_the_server_makes_up_belongs_to_nobody(api: Api) -> None:
    """Whoever applies a Job or a Service a second time must not take from it what only the server could know."""
    job = {"apiVersion": "batch/v1", "kind": "Job", **a_job(suspend=True)}
    service = {"apiVersion": "v1", "kind": "Service", **a_service()}
    for place, body in ((of_group(api, "batch", "jobs"), job), (core(api, "services"), service)):
        at = f"{place}/{body['metadata']['name']}"
        made = await api.patch(at, body, APPLY, fieldManager="me")
        assert made.code == 201, made.body
        again = await api.patch(at, body, APPLY, fieldManager="me")
        assert (again.code, again.body["spec"]) == (200, made.body["spec"]), again.body
        (entry,) = made.body["metadata"]["managedFields"]
        assert not {"f:selector", "f:clusterIP", "f:clusterIPs"} & set(entry["fieldsV1"]["f:spec"])


# What is refused


REFUSED_PODS = [
    (a_pod(containers=[]), "spec.containers"),
    (a_pod(containers=[{"name": "main"}]), "spec.containers[0].image"),
    (a_pod(containers=[{"image": "x"}]), "spec.containers[0].name"),
    (a_pod(containers=[{"name": "No_Name", "image": "x"}]), "spec.containers[0].name"),
    (a_pod(containers=[CONTAINER, CONTAINER]), "spec.containers[1].name"),
    (a_pod(initContainers=[CONTAINER]), "spec.initContainers[0].name"),
    (a_pod(restartPolicy="Sometimes"), "spec.restartPolicy"),
    (a_pod(dnsPolicy="None"), "spec.dnsConfig"),
    (a_pod(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds"),
    (a_pod(hostAliases=[{"ip": "here"}]), "spec.hostAliases[0].ip"),
    (a_pod(volumes=[{"name": "v"}, {"name": "v"}]), "spec.volumes[1].name"),
    (a_pod(volumes=[{"name": "v", "secret": {}}]), "spec.volumes[0].secret.secretName"),
    (a_pod(volumes=[{"name": "v", "hostPath": {}}]), "spec.volumes[0].hostPath.path"),
    (a_pod_with(ports=[{"containerPort": 70000}]), "spec.containers[0].ports[0].containerPort"),
    (
        a_pod_with(ports=[{"containerPort": 80, "name": "far-too-long-name"}]),
        "spec.containers[0].ports[0].name",
    ),
    (a_pod_with(env=[{"name": "A=B"}]), "spec.containers[0].env[0].name"),
    (a_pod_with(env=[{"name": "A", "valueFrom": {}}]), "spec.containers[0].env[0].valueFrom"),
    (
        a_pod_with(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        "spec.containers[0].volumeMounts[0].name",
    ),
    (a_pod_with(livenessProbe={}), "spec.containers[0].livenessProbe"),
    (a_pod_with(livenessProbe={"exec": {}}), "spec.containers[0].livenessProbe.exec.command"),
    (a_pod_with(imagePullPolicy="Perhaps"), "spec.containers[0].imagePullPolicy"),
    (a_pod_with(securityContext={"runAsUser": -1}), "spec.containers[0].securityContext.runAsUser"),
    (
        a_pod_with(resources={"limits": {"cpu": 1}, "requests": {"cpu": 2}}),
        "spec.containers[0].resources.requests",
    ),
]


async def test_a_pod_that_cannot_run_is_refused(api: Api) -> None:
    await pods_are_welcome(api)
    for pod, field in REFUSED_PODS:
        answer = await api.post(core(api, "pods"), pod)
        assert (answer.code, answer.body["reason"]) == (422, "Invalid"), answer.body
        assert field in fields_of(answer), answer.body


MISTYPED_PODS = [
    a_pod(hostNetwork="yes"),
    a_pod(terminationGracePeriodSeconds="30"),
    a_pod(containers=CONTAINER),
    a_pod_with(command="sh"),
    a_pod_with(args=[1]),
    a_pod_with(resources={"limits": {"cpu": "a lot"}}),
]


async def test_what_is_of_the_wrong_type_is_no_pod(api: Api) -> None:
    for pod in MISTYPED_PODS:
        answer = await api.post(core(api, "pods"), pod)
        assert (answer.code, answer.body["reason"]) == (400, "BadRequest"), answer.body


@pytest.mark.parametrize("plural", ["deployments", "daemonsets", "replicasets", "statefulsets"])
async def test_a_workload_and_its_pods_belong_together(api: Api, plural: str) -> None:
    for other in ({}, {"matchLabels": {}}, {"matchLabels": {"app": "other"}}):
        wrong = a_workload(selector=other)
        answer = await api.post(apps(api, plural), wrong)
        assert (answer.code, answer.body["reason"]) == (422, "Invalid"), other
    once = a_workload(pod={"restartPolicy": "Never"})
    answer = await api.post(apps(api, plural), once)
    assert fields_of(answer) == {"spec.template.spec.restartPolicy"}


REFUSED_DEPLOYMENTS = [
    ({"replicas": -1}, "spec.replicas"),
    (
        {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
        "spec.strategy.rollingUpdate",
    ),
    (
        {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
        "spec.strategy.rollingUpdate.maxUnavailable",
    ),
    ({"strategy": {"rollingUpdate": {"maxSurge": "some"}}}, "spec.strategy.rollingUpdate.maxSurge"),
    ({"progressDeadlineSeconds": 5, "minReadySeconds": 5}, "spec.progressDeadlineSeconds"),
]


async def test_a_deployment_that_could_not_roll_is_refused(api: Api) -> None:
    for spec, field in REFUSED_DEPLOYMENTS:
        answer = await api.post(apps(api), a_workload(**spec))
        assert answer.code == 422, answer.body
        assert field in fields_of(answer), answer.body


async def test_a_job_that_never_ends_is_refused(api: Api) -> None:
    answer = await api.post(of_group(api, "batch", "jobs"), a_job(pod={"restartPolicy": "Always"}))
    assert (answer.code, fields_of(answer)) == (422, {"spec.template.spec.restartPolicy"})


# What can be changed


async def test_generations_count_wishes_and_nothing_else(api: Api) -> None:
    place = f"{apps(api)}/w"
    await api.post(apps(api), a_workload(replicas=0))
    for patch, generation in (
        ({"metadata": {"labels": {"a": "b"}}}, 1),
        ({"spec": {"paused": True}}, 2),
        ({"spec": {"paused": True}}, 2),
    ):
        assert (await api.patch(place, patch)).body["metadata"]["generation"] == generation
    told = await api.patch(f"{place}/status", {"status": {"observedGeneration": 2}})
    assert told.body["metadata"]["generation"] == 2


@pytest.mark.parametrize("plural", ["deployments", "daemonsets", "statefulsets"])
async def test_which_pods_belong_to_a_workload_cannot_be_changed(api: Api, plural: str) -> None:
    await api.post(apps(api, plural), a_workload())
    other = {"matchLabels": {"app": "w", "tier": "x"}}
    template = {"metadata": {"labels": {"app": "w", "tier": "x"}}}
    answer = await api.patch(f"{apps(api, plural)}/w", {"spec": {"selector": other, "template": template}})
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")


async def test_strategic_patches_find_containers_ports_and_variables_by_name(api: Api) -> None:
    place = f"{apps(api)}/w"
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    await api.post(apps(api), a_workload(replicas=0, pod={"containers": [{**CONTAINER, "env": env}]}))

    async def patched(container: dict[str, Any]) -> Any:
        body = {"spec": {"template": {"spec": {"containers": [container]}}}}
        answer = await api.patch(place, body, STRATEGIC)
        assert answer.code == 200, answer.body
        return answer.body["spec"]["template"]["spec"]["containers"]

    (main,) = await patched({"name": "main", "image": "example.org/main:2"})
    assert (main["image"], main["env"]) == ("example.org/main:2", env)
    changed = {"env": [{"name": "B", "value": "3"}, {"$patch": "delete", "name": "A"}]}
    (main,) = await patched({"name": "main", **changed})
    assert main["env"] == [{"name": "B", "value": "3"}]
    both = await patched({"name": "side", "image": "example.org/side:1"})
    assert {container["name"] for container in both} == {"main", "side"}
    (main,) = await patched({"name": "side", "$patch": "delete"})
    assert main["name"] == "main"


async def test_the_way_a_deployment_rolls_is_replaced_as_a_whole_when_asked(api: Api) -> None:
    await api.post(apps(api), a_workload(replicas=0))
    strategy = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    answer = await api.patch(f"{apps(api)}/w", {"spec": strategy}, STRATEGIC)
    assert answer.body["spec"]["strategy"] == {"type": "Recreate"}


async def test_what_a_job_runs_cannot_be_changed(api: Api) -> None:
    place = f"{of_group(api, 'batch', 'jobs')}/j"
    await api.post(of_group(api, "batch", "jobs"), a_job(suspend=True))
    other = {"template": {"spec": {"containers": [{"name": "main", "image": "example.org/other:1"}]}}}
    for patch, field in (
        (other, "spec.template"),
        ({"completions": 3}, "spec.completions"),
        ({"completionMode": "Indexed"}, "spec.completionMode"),
    ):
        answer = await api.patch(place, {"spec": patch}, STRATEGIC)
        assert answer.code == 422
        assert field in fields_of(answer), answer.body
    assert (await api.patch(place, {"spec": {"parallelism": 2}})).code == 200
    moved = {"template": {"spec": {"nodeSelector": {"example.org/here": "true"}}}}
    assert (await api.patch(place, {"spec": moved})).code == 200


async def test_of_a_pod_little_can_be_changed(api: Api) -> None:
    await new_pod(api, a_pod(activeDeadlineSeconds=100))
    place = f"{core(api, 'pods')}/p"
    image = {"containers": [{"name": "main", "image": "example.org/main:2"}]}
    changed = await api.patch(place, {"spec": image}, STRATEGIC)
    assert changed.body["metadata"]["generation"] == 2
    assert (await api.patch(place, {"spec": {"activeDeadlineSeconds": 50}})).code == 200
    for spec in (
        {"nodeName": "somewhere"},
        {"restartPolicy": "Never"},
        {"activeDeadlineSeconds": 60},
        {"hostNetwork": True},
        {"containers": [{"name": "main", "command": ["sh"]}]},
    ):
        answer = await api.patch(place, {"spec": spec}, STRATEGIC)
        assert (answer.code, answer.body["reason"]) == (422, "Invalid"), spec


# The life of a pod


async def test_a_pod_is_bound_to_a_node_once(api: Api) -> None:
    await new_pod(api, a_pod())
    await bind(api, "p", "first-node")
    pod = (await api.get(f"{core(api, 'pods')}/p")).body
    assert pod["spec"]["nodeName"] == "first-node"
    assert pod["metadata"]["generation"] == 1
    scheduled = [found for found in pod["status"]["conditions"] if found["type"] == "PodScheduled"]
    assert [condition["status"] for condition in scheduled] == ["True"]
    again = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "second-node"}}
    answer = await api.post(f"{core(api, 'pods')}/p/binding", again)
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    for node, count in (("first-node", 1), ("second-node", 0)):
        found = await api.get(core(api, "pods"), fieldSelector=f"spec.nodeName={node}")
        assert len(found.body["items"]) == count


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"name": "p"}, "target": {}},
        {"metadata": {"name": "p"}, "target": {"kind": "Rack", "name": "n"}},
        {"metadata": {"name": "p"}, "target": "n"},
        {"metadata": {"name": "other"}, "target": {"name": "n"}},
    ],
)
async def test_a_binding_that_makes_no_sense_binds_nothing(api: Api, body: dict[str, Any]) -> None:
    await new_pod(api, a_pod())
    # A cluster calls the first two an internal error, which they are not.
    assert (await api.post(f"{core(api, 'pods')}/p/binding", body)).code in (400, 422, 500)
    assert "nodeName" not in (await api.get(f"{core(api, 'pods')}/p")).body["spec"]
    assert (await api.get(f"{core(api, 'pods')}/p/binding")).code == 405


async def test_a_pod_that_runs_has_time_to_end_and_its_node_says_when_it_has(api: Api) -> None:
    await new_pod(api, a_pod(terminationGracePeriodSeconds=300))
    await bind(api, "p")
    place = f"{core(api, 'pods')}/p"

    async def grace(**asked: str) -> Any:
        answer = await api.delete(place, **asked)
        assert answer.code == 200
        return answer.body["metadata"]["deletionGracePeriodSeconds"]

    assert await grace() == 300
    assert await grace(gracePeriodSeconds="600") == 300
    assert await grace() == 300
    assert await grace(gracePeriodSeconds="200") == 200
    pod = (await api.get(place)).body
    assert pod["metadata"]["deletionTimestamp"] > pod["metadata"]["creationTimestamp"]
    assert await grace(gracePeriodSeconds="0") == 0
    assert (await api.get(place)).code == 404


async def test_a_pod_that_runs_nowhere_goes_at_once(api: Api) -> None:
    place = core(api, "pods")
    await new_pod(api, a_pod("unbound"))
    assert (await api.delete(f"{place}/unbound")).body["kind"] == "Pod"
    assert (await api.get(f"{place}/unbound")).code == 404
    await new_pod(api, a_pod("over"))
    await bind(api, "over")
    await api.patch(f"{place}/over/status", {"status": {"phase": "Succeeded"}})
    await api.delete(f"{place}/over")
    assert (await api.get(f"{place}/over")).code == 404


async def test_a_finalizer_outlives_the_time_a_pod_has(api: Api) -> None:
    pod = a_pod()
    pod["metadata"]["finalizers"] = ["example.org/wait"]
    await new_pod(api, pod)
    await bind(api, "p")
    place = f"{core(api, 'pods')}/p"
    await api.delete(place, gracePeriodSeconds="300")
    freed = await api.patch(place, {"metadata": {"finalizers": None}}, MERGE)
    assert freed.code == 200
    assert (await api.get(place)).code == 200, "its node has not said that it is over"
    await api.delete(place, gracePeriodSeconds="0")
    assert (await api.get(place)).code == 404


async def test_kubectl_shows_what_a_pod_is_doing(api: Api, kubectl: Kubectl) -> None:
    await new_pod(api, a_pod())
    await bind(api, "p")

    async def line(**status: Any) -> list[str]:
        told = await api.patch(f"{core(api, 'pods')}/p/status", {"status": status}, STRATEGIC)
        assert told.code == 200, told.body
        return kubectl("get", "pod", "p", "--no-headers").split()

    container = {"name": "main", "image": "x", "restartCount": 0}
    waiting = {**container, "state": {"waiting": {"reason": "ErrImagePull"}}}
    assert (await line(containerStatuses=[waiting]))[1:4] == ["0/1", "ErrImagePull", "0"]
    running = {**container, "ready": True, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    assert (await line(phase="Running", containerStatuses=[running]))[1:4] == ["1/1", "Running", "0"]
    ended = {**container, "restartCount": 3, "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}
    assert (await line(containerStatuses=[ended]))[1:4] == ["0/1", "Error", "3"]
    await api.delete(f"{core(api, 'pods')}/p", gracePeriodSeconds="300")
    assert kubectl("get", "pod", "p", "--no-headers").split()[2] == "Terminating"
    await api.delete(f"{core(api, 'pods')}/p", gracePeriodSeconds="0")
