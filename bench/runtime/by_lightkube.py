"""Contender: lightkube, in straight use. No informer and no queue: a list into a dictionary, then a watch into it."""

import time

STARTED = time.perf_counter()

import asyncio  # noqa: E402 - what follows is what an import costs

from lightkube import AsyncClient  # noqa: E402
from lightkube.config.kubeconfig import KubeConfig  # noqa: E402
from lightkube.generic_resource import create_namespaced_resource  # noqa: E402

IMPORTED = time.perf_counter() - STARTED

from runtime.stopwatch import Result, Stopwatch, arguments, go, memory, peak, tell  # noqa: E402

HOST = create_namespaced_resource("metal3.io", "v1alpha1", "BareMetalHost", "baremetalhosts")


async def main() -> None:
    folder, hosts, events = arguments()
    base, watch = memory(), Stopwatch()
    config = KubeConfig.from_file(folder / "kubeconfig")
    client = AsyncClient(config.get(), trust_env=False)
    known, seen = {}, {}
    listing = client.list(HOST, namespace="*", chunk_size=500)
    async for host in listing:
        known[host.metadata.namespace, host.metadata.name] = host
        seen[host.metadata.namespace, host.metadata.name] = host.status["provisioning"]["state"]
    assert len(seen) == hosts
    listed = watch.lap()
    go(config.get().cluster.server, folder / "ca" / "ca.crt")
    watch, found = Stopwatch(), 0
    async for _, host in client.watch(HOST, namespace="*", resource_version=str(hosts)):
        known[host.metadata.namespace, host.metadata.name] = host
        seen[host.metadata.namespace, host.metadata.name] = host.status["provisioning"]["state"]
        found += 1
        if found == events:
            break
    watched = watch.lap()
    tell(Result(IMPORTED, base, listed, watched, memory(), peak()))


asyncio.run(main())
