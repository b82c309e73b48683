"""Contender: the official client's SharedInformer. It needs a list function of its own for custom kinds; no queue."""

import time

STARTED = time.perf_counter()

import os  # noqa: E402 - what follows is what an import costs
import threading  # noqa: E402
from types import SimpleNamespace  # noqa: E402

from kubernetes import client, config  # noqa: E402
from kubernetes.informer import SharedInformer  # noqa: E402

IMPORTED = time.perf_counter() - STARTED

from runtime.stopwatch import Result, Stopwatch, arguments, go, memory, peak, tell  # noqa: E402

KIND = {"group": "metal3.io", "version": "v1alpha1", "plural": "baremetalhosts"}


def hosts_of(api: client.CustomObjectsApi):
    """The informer reads `.items` and `.metadata`, which the dictionaries of custom kinds do not have."""

    def list_hosts(*, watch: bool = False, **more):
        """:return: object"""
        if watch:
            return api.list_cluster_custom_object(**KIND, watch=True, **more)
        items, token = [], None
        while True:
            page = api.list_cluster_custom_object(
                **KIND, limit=500, **({"_continue": token} if token else {})
            )
            items += page["items"]
            token = page["metadata"].get("continue")
            if not token:
                version = page["metadata"]["resourceVersion"]
                return SimpleNamespace(items=items, metadata=SimpleNamespace(resource_version=version))

    return list_hosts


def main() -> None:
    folder, hosts, events = arguments()
    base, watch = memory(), Stopwatch()
    config.load_kube_config(str(folder / "kubeconfig"))
    informer = SharedInformer(hosts_of(client.CustomObjectsApi()))
    seen, counts = {}, {"ADDED": 0, "MODIFIED": 0}
    reached = threading.Event()

    def note(event: str, wanted: int):
        def handler(host) -> None:
            seen[host["metadata"]["namespace"], host["metadata"]["name"]] = host["status"]["provisioning"][
                "state"
            ]
            counts[event] += 1
            if counts[event] == wanted:
                reached.set()

        return handler

    informer.add_event_handler("ADDED", note("ADDED", hosts))
    informer.add_event_handler("MODIFIED", note("MODIFIED", events))
    informer.start()
    reached.wait()
    listed = watch.lap()
    reached.clear()
    go(client.Configuration.get_default_copy().host, folder / "ca" / "ca.crt")
    watch = Stopwatch()
    reached.wait()
    watched = watch.lap()
    tell(Result(IMPORTED, base, listed, watched, memory(), peak()))
    os._exit(0)  # its thread reads a stream that nobody ends


main()
