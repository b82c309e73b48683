"""Objects of built-in kinds, as small as they can be, and where they live."""

from __future__ import annotations

import copy
from typing import Any

from kubernetes_api import Answer, Api

Object = dict[str, Any]

CONTAINER: Object = {"name": "main", "image": "example.org/main:1"}


def core(api: Api, plural: str) -> str:
    return f"/api/v1/namespaces/{api.namespace}/{plural}"


def of_group(api: Api, group: str, plural: str) -> str:
    return f"/apis/{group}/v1/namespaces/{api.namespace}/{plural}"


def a_pod(name: str = "p", **spec: Any) -> Object:
    """A pod that no scheduler of a cluster feels responsible for: what happens to it is the test's business."""
    return {
        "metadata": {"name": name},
        "spec": {"containers": [dict(CONTAINER)], "schedulerName": "the-test", **spec},
    }


def a_pod_with(**container: Any) -> Object:
    return a_pod(containers=[{**CONTAINER, **container}])


def a_workload(name: str = "w", *, pod: Object | None = None, **spec: Any) -> Object:
    """Good as a Deployment, a DaemonSet, a ReplicaSet and a StatefulSet; on a cluster it runs nowhere."""
    labels = {"app": name}
    made: Object = {
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": dict(labels)},
            "template": {"metadata": {"labels": dict(labels)}, "spec": {**a_pod()["spec"], **(pod or {})}},
            **spec,
        },
    }
    return copy.deepcopy(made)


def a_job(name: str = "j", *, pod: Object | None = None, **spec: Any) -> Object:
    template = {"spec": {**a_pod()["spec"], "restartPolicy": "Never", **(pod or {})}}
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


def a_service(name: str = "s", **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def pods_are_welcome(api: Api) -> None:
    """A cluster takes pods only where their service account is; here nobody needs one."""
    await api.post(core(api, "serviceaccounts"), {"metadata": {"name": "default"}})


def fields_of(answer: Answer) -> set[str]:
    """The fields that a refusal names."""
    return {cause["field"] for cause in (answer.body.get("details") or {}).get("causes", ())}
