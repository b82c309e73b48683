"""How fast the embedded API is: creates, status patches, gets, lists, watch fan-out, over TLS, with a Python client.

The server runs as its own process. `python bench/bench_api.py [--objects 2000] [--clients 16]` prints a small table with the rate
and the processor time the server spent on each; there are no thresholds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import msgspec
import yaml

from ingot.trust import client_context

HOSTS = "/apis/metal3.io/v1alpha1/namespaces/default/baremetalhosts"


def host(name: str) -> bytes:
    spec = {
        "online": True,
        "bmc": {"address": "redfish-virtualmedia://127.0.0.1/redfish/v1/Systems/1", "credentialsName": "s"},
    }
    return msgspec.json.encode(
        {
            "metadata": {"name": name, "labels": {"rack": "a"}},
            "spec": {**spec, "bootMACAddress": "00:11:22:33:44:55"},
        }
    )


def status(state: str) -> bytes:
    """A status with an inventory of about 5 KB, as a real host has after inspection."""
    nics = [
        {"name": f"eth{n}", "mac": f"00:00:00:00:00:{n:02x}", "model": "0x1af4 0x0001", "speedGbps": 25}
        for n in range(24)
    ]
    storage = [
        {"name": f"/dev/sd{n}", "sizeBytes": 10**12, "serialNumber": f"serial-{n}", "model": "disk"}
        for n in range(24)
    ]
    hardware = {
        "hostname": "h",
        "cpu": {"arch": "x86_64", "count": 64},
        "ramMebibytes": 262144,
        "nics": nics,
        "storage": storage,
    }
    provisioning = {"ID": "x", "state": state, "image": {"url": ""}}
    return msgspec.json.encode(
        {
            "status": {
                "operationalStatus": "OK",
                "errorMessage": "",
                "errorCount": 0,
                "poweredOn": True,
                "provisioning": provisioning,
                "hardware": hardware,
            }
        }
    )


async def rate(count: int, clients: int, one: Callable[[int], Awaitable[None]]) -> float:
    """How many of these a second, with this many clients at once."""
    numbers = iter(range(count))

    async def client() -> None:
        for number in numbers:
            await one(number)

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return count / (time.perf_counter() - start)


async def measure(pid: int, state: Path, url: str, objects: int, clients: int) -> list[tuple[str, str]]:
    token = yaml.safe_load((state / "kubeconfig").read_text())["users"][0]["user"]["token"]
    connector = aiohttp.TCPConnector(ssl=client_context(state / "ca" / "ca.crt"), limit=0)
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(
        url, connector=connector, headers=headers, read_bufsize=2**22
    ) as session:

        async def call(
            method: str, path: str, body: bytes | None = None, type_: str = "application/json"
        ) -> bytes:
            async with session.request(method, path, data=body, headers={"Content-Type": type_}) as response:
                answer = await response.read()
                assert response.status in (200, 201), answer
                return answer

        async def create(number: int) -> None:
            await call("POST", HOSTS, host(f"h{number}"))

        async def patch(number: int) -> None:
            await call(
                "PATCH", f"{HOSTS}/h{number}/status", status("available"), "application/merge-patch+json"
            )

        async def get(number: int) -> None:
            await call("GET", f"{HOSTS}/h{number}")

        rows = []
        for name, count, at_once, one in (
            ("creates/s", objects, clients, create),
            ("status patches/s (5 KB)", objects, clients, patch),
            ("gets/s", objects, clients, get),
            ("creates/s, one client", 200, 1, lambda number: create(objects + number)),
        ):
            before = processor_time(pid)
            found = await rate(count, at_once, one)
            spent = (processor_time(pid) - before) / count
            rows.append((name, f"{found:,.0f}   ({spent * 1e6:,.0f} µs)"))
        start = time.perf_counter()
        body = await call("GET", HOSTS)
        rows.append(
            (
                f"list of {objects + 200:,} ({len(body) / 1e6:.1f} MB)",
                f"{(time.perf_counter() - start) * 1e3:,.0f} ms",
            )
        )
        rows.append(("deliveries/s to 100 watches", f"{await fan_out(session, call):,.0f}"))
    return rows


async def fan_out(session: aiohttp.ClientSession, call: Callable[..., Awaitable[bytes]]) -> float:
    version = msgspec.json.decode(await call("GET", f"{HOSTS}?limit=1"))["metadata"]["resourceVersion"]
    watches = [
        await session.get(HOSTS, params={"watch": "1", "resourceVersion": version}) for _ in range(100)
    ]

    async def drain(response: aiohttp.ClientResponse) -> None:
        for _ in range(50):
            await response.content.readline()

    start = time.perf_counter()
    readers = [asyncio.create_task(drain(watch)) for watch in watches]
    for number in range(50):
        await call(
            "PATCH", f"{HOSTS}/h{number}", b'{"spec":{"online":false}}', "application/merge-patch+json"
        )
    await asyncio.gather(*readers)
    elapsed = time.perf_counter() - start
    for watch in watches:
        watch.close()
    return 5000 / elapsed


def processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> str:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return f"{int(fields[1]) * 4096 / 1e6:,.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
        state = Path(folder)
        start = time.perf_counter()
        command = [sys.executable, "-c", "from ingot.cli.main import main; main()", "api-server"]
        server = subprocess.Popen(
            [*command, "--state", folder, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[3]
            rows = [
                ("start to ready", f"{time.perf_counter() - start:.2f} s"),
                ("memory at start", memory(server.pid)),
            ]
            rows += asyncio.run(measure(server.pid, state, url, options.objects, options.clients))
            rows.append(("memory at the end", memory(server.pid)))
        finally:
            server.terminate()
            server.wait()
    print(f"embedded API, {options.objects} hosts, {options.clients} clients on one machine")
    for name, value in rows:
        print(f"  {name:<32}{value:>22}")


if __name__ == "__main__":
    main()
