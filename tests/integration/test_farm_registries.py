"""Images that are in a registry which wants a password: fetched with it, and told without it when it is wrong."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from ironic_room import NAMESPACE, Host, Room
from stories import story

from ingot.api.core import SECRETS
from ingot.api.meta import Key
from ingot.trust import Authority
from small_registry import PASSWORD, TOKEN, USER, SmallRegistry, small_registry

WRONG = "not-what-it-was"
DISK = b"\xfa" + bytes(509) + b"\x55\xaa" + b"pulled from a registry" * 1000


def pull_secret(registry: SmallRegistry, password: str) -> dict[str, object]:
    """As `kubectl create secret docker-registry` makes it."""
    auth = base64.b64encode(f"{USER}:{password}".encode()).decode()
    entry = {"username": USER, "password": password, "auth": auth}
    config = json.dumps({"auths": {registry.host: entry}})
    return {"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": config}}


@pytest.mark.parametrize("auth", ["basic", "bearer"])
@story
async def test_an_image_of_a_registry_is_installed_once_its_pull_secret_is_right(
    room: Room, auth: str
) -> None:
    host = room.server()
    certificate = Authority(room.state / "ca").issue(room.state / host.name, "registry", ["127.0.0.1"])
    async with small_registry(auth=auth, tls=certificate.server_context()) as registry:
        registry.store_disk("systems/own", "v1", DISK)
        secret = f"{host.name}-pull"
        await room.create(SECRETS, secret, **pull_secret(registry, WRONG))
        url = f"oci://{registry.host}/systems/own:v1"
        image = {"url": url, "format": "raw", "ociAuthSecretName": secret}
        await host.create(inspectionMode="disabled", image=image)
        told = await host.until_error("the registry of the image refused the user name or password")
        assert told.status.error_type == "provisioning error"
        assert "spec.image.ociAuthSecretName" in told.status.error_message
        assert (await host.seen()).boots == 0, "nothing is booted for an image that cannot be had"
        await tells_no_password(host)

        await room.client.patch(SECRETS, Key(NAMESPACE, secret), pull_secret(registry, PASSWORD))
        await host.until_well("provisioned")
        seen = await host.until_running()
        assert seen.running is not None
        assert seen.running.image_sha256 == hashlib.sha256(DISK).hexdigest()
        assert seen.deployments == 1
        # The server itself has fetched it, with what Ironic was told.
        blob = f"/v2/systems/own/blobs/sha256:{hashlib.sha256(DISK).hexdigest()}"
        assert ("GET", blob, who(auth)) in registry.asked
        await tells_no_password(host)


def who(auth: str) -> str:
    if auth == "bearer":
        return f"Bearer {TOKEN}"
    return "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


async def tells_no_password(host: Host) -> None:
    """Neither what users read nor what is logged has one."""
    shown = [str(host.room.hosts.get(host.key)), *await host.troubles()]
    shown += [log.read_text(errors="replace") for log in host.room.state.glob("*.log")]
    for password in (WRONG, PASSWORD):
        encoded = base64.b64encode(f"{USER}:{password}".encode()).decode()
        assert not [text for text in shown if password in text or encoded in text]
