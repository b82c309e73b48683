"""`ingot operator`: the controllers, against any Kubernetes API.

Settings come from the environment under the names that Metal3 uses (IRONIC_ENDPOINT, IRONIC_CACERT_FILE, METAL3_AUTH_ROOT_DIR,
DEPLOY_ISO_URL, WATCH_NAMESPACE); the API from KUBECONFIG. What is wrong with them is said in a sentence before anything starts.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import AsyncExitStack

import click

from ingot.cli.parts.listen import AddressAndPort, Listen, log_to_stderr, told_to_stop
from ingot.cli.parts.state import StateFolder, state_option
from ingot.hosts import HostController
from ingot.kube import Client, ConfigError, EventRecorder, Manager
from ingot.provisioner import BackendError
from ingot.provisioner.ironic import IronicAccess, IronicProvisioner, PushListen, SettingsError
from ingot.trust import Authority, kept_token

log = logging.getLogger(__name__)


@click.command()
@state_option
@click.option(
    "--provisioner",
    type=click.Choice(["ironic"]),
    default="ironic",
    show_default=True,
    help="What drives the machines.",
)
@click.option(
    "--push-listen",
    type=AddressAndPort(),
    default="127.0.0.1:0",
    show_default=True,
    help="Where the plugin inside Ironic reports changes. TLS, with the token in STATE/operator/push-token.",
)
@click.option("--verbose", "-v", is_flag=True, help="Log more.")
def operator(state: StateFolder, provisioner: str, push_listen: Listen, verbose: bool) -> None:
    """Run the controllers until told to stop."""
    log_to_stderr(verbose=verbose)
    try:
        access = IronicAccess.from_environment(os.environ)
        client = Client.from_kubeconfig()
    except (SettingsError, ConfigError) as error:
        raise click.ClickException(str(error)) from error
    asyncio.run(_run(client, access, _push_listen(state, push_listen)))


def _push_listen(state: StateFolder, listen: Listen) -> PushListen:
    names = list(dict.fromkeys([listen.host, "127.0.0.1", "localhost"]))
    certificate = Authority(state.ca).issue(state.operator, "operator", names)
    return PushListen(
        host=listen.host,
        port=listen.port,
        tls=certificate.server_context(),
        token=kept_token(state.operator / "push-token"),
    )


async def _run(client: Client, access: IronicAccess, push: PushListen) -> None:
    stop = told_to_stop()
    async with client, EventRecorder(client) as recorder, AsyncExitStack() as stack:
        backend = await _listening(stack, IronicProvisioner(access, push), push)
        hosts = HostController(client, backend, recorder, namespace=os.environ.get("WATCH_NAMESPACE", ""))
        manager = Manager([hosts.hosts, hosts.secrets], [hosts.controller], tasks=[hosts.follow_backend])
        work = [
            asyncio.create_task(manager.run(), name="manager"),
            asyncio.create_task(stop.wait(), name="signal"),
        ]
        announcing = asyncio.create_task(_announce(manager, backend))
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (*work, announcing):
                task.cancel()
            await asyncio.gather(*work, announcing, return_exceptions=True)


async def _listening(
    stack: AsyncExitStack, backend: IronicProvisioner, push: PushListen
) -> IronicProvisioner:
    try:
        return await stack.enter_async_context(backend)
    except OSError as error:
        # In the kernel's words: the library's repeat the address as a tuple. A name that does not resolve has none.
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise click.ClickException(
            f"cannot listen for Ironic's reports at {push.host}:{push.port}: {why}. "
            "Give another address with --push-listen."
        ) from error


async def _announce(manager: Manager, backend: IronicProvisioner) -> None:
    """Say when the controllers run, and when the back end can be used or why it cannot yet."""
    await manager.started()
    click.echo(f"operator ready, push received on port {backend.push_port}")
    said = ""
    while True:
        try:
            await backend.check()
        except BackendError as error:
            if (text := str(error)) != said:
                log.warning("the back end cannot take orders yet: %s", text)
                said = text
            await asyncio.sleep(2)
        else:
            log.info("the back end is ready")
            return
