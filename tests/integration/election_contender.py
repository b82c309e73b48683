"""A process that contends for a Lease, and writes a Secret every few hundredths of a second while it leads.

Run by `test_election_processes.py` with the kubeconfig, its name, and how many seconds to hold up its main loop once it leads.
"""

from __future__ import annotations

import asyncio
import sys
import time

from ingot.api.core import SECRETS
from ingot.api.meta import Key
from ingot.kube import Client, Elector, KubeError, NotLeading, Timing

LEASE = Key("default", "contest")
TIMING = Timing(duration=8, renew_deadline=6, retry=0.4)
LOST = 75


async def contend(kubeconfig: str, name: str, block: float) -> int:
    async with Elector(
        lambda: Client.from_kubeconfig(kubeconfig), LEASE, identity=name, timing=TIMING
    ) as elector:
        elector.contend()
        await elector.leadership.acquired()
        print("leads", flush=True)
        time.sleep(block)  # noqa: ASYNC251 - a main loop that is held up is what is tried out
        print("goes on" if elector.leadership.held else "lost it meanwhile", flush=True)
        async with Client.from_kubeconfig(kubeconfig, guard=elector.leadership.check) as client:
            return await write(client, name)


async def write(client: Client, name: str) -> int:
    number = 0
    while True:
        number += 1
        try:
            await client.create(
                SECRETS, {"metadata": {"name": f"{name}-{number:05}", "namespace": "default"}}
            )
        except NotLeading:
            return LOST
        except KubeError as error:
            print(error, file=sys.stderr, flush=True)
        await asyncio.sleep(0.03)


if __name__ == "__main__":
    sys.exit(asyncio.run(contend(sys.argv[1], sys.argv[2], float(sys.argv[3]))))
