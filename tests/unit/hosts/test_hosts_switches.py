"""BareMetalSwitch: the file that Ironic's networking service reads, the keys beside it, and what a switch says of itself."""

from __future__ import annotations

import asyncio
import configparser
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.baremetalswitch import BARE_METAL_SWITCHES
from ingot.api.core import SECRETS, SecretObject
from ingot.api.hostnetworkattachment import HOST_NETWORK_ATTACHMENTS
from ingot.api.meta import Condition, Key
from ingot.hosts import SwitchController, SwitchSettings
from ingot.kube import Client, Informer, Invalid, Manager, metadata_of

SETTINGS = SwitchSettings(
    configs_secret="switch-configs", credentials_secret="switch-credentials", credentials_path="/keys"
)
MAC = "00:00:5e:00:53:01"
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n"


class Closet:
    """Where the switches are."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def secret(self, name: str, **values: str) -> None:
        body = {"metadata": {"name": name}, "stringData": values}
        await self.client.create(SECRETS, body, namespace=self.namespace)

    async def switch(self, name: str = "leaf1", *, secret: str = "login", mac: str = MAC, **spec: Any) -> Key:
        spec = {
            "address": "10.0.0.1",
            "macAddress": mac,
            "deviceType": "netmiko_cisco_ios",
            "credentials": {"name": secret},
        } | spec
        await self.client.create(
            BARE_METAL_SWITCHES, {"metadata": {"name": name}, "spec": spec}, namespace=self.namespace
        )
        return Key(self.namespace, name)

    async def until_valid(self, name: str, condition: Callable[[Condition], bool]) -> Condition:
        found: list[Condition] = []
        try:
            async with asyncio.timeout(60):
                while True:
                    switch = await self.client.get(BARE_METAL_SWITCHES, Key(self.namespace, name))
                    found = switch.status.conditions
                    if found and condition(found[0]):
                        return found[0]
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{name} never came there: {found}") from None

    async def read(self, name: str) -> SecretObject:
        return await self.client.get(SECRETS, Key(self.namespace, name))

    async def file(self) -> configparser.RawConfigParser:
        text = (await self.read("switch-configs")).text("switch-configs.conf") or ""
        parser = configparser.RawConfigParser()
        parser.read_string(text)
        return parser

    async def until_file(self, *sections: str) -> configparser.RawConfigParser:
        wanted = [f"switch:{one}" for one in sections]

        async def there() -> bool:
            return (await self.file()).sections() == wanted

        await self.until(there)
        return await self.file()

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(60):
            while True:
                if await condition():
                    return
                await asyncio.sleep(0.02)


@pytest_asyncio.fixture(loop_scope="session")
async def closet(client: Client, namespace: str) -> AsyncIterator[Closet]:
    secrets = Informer(client, metadata_of(SECRETS), namespace=namespace)
    switches = SwitchController(client, SETTINGS, secrets=secrets, namespace=namespace)
    manager = Manager([secrets, *switches.informers], [switches.controller])
    running = asyncio.create_task(manager.run())
    await manager.started()
    yield Closet(client, namespace)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest_asyncio.fixture(loop_scope="session")
async def ready(closet: Closet) -> Closet:
    await closet.secret("switch-configs", **{"switch-configs.conf": "# empty\n"})
    await closet.secret("switch-credentials", other="stays")
    await closet.secret("login", username="admin", password="pa ss=#;word")
    return closet


async def test_a_switch_with_a_password_is_a_section_of_the_file(ready: Closet) -> None:
    await ready.switch(port=2222, disableCertificateVerification=True)
    valid = await ready.until_valid("leaf1", lambda found: found.status == "True")
    assert valid.reason == "Reconciled"
    assert "word" not in valid.message
    assert dict((await ready.file())["switch:leaf1"]) == {
        "address": "10.0.0.1",
        "mac_address": MAC,
        "port": "2222",
        "driver_type": "generic-switch",
        "device_type": "netmiko_cisco_ios",
        "insecure": "true",
        "username": "admin",
        "password": "pa ss=#;word",
    }


async def test_a_switch_with_a_key_names_its_file_and_others_keys_stay(ready: Closet) -> None:
    await ready.secret("key", username="admin", **{"ssh-privatekey": KEY, "admin-password": "enable"})
    await ready.switch(secret="key")
    await ready.until_valid("leaf1", lambda found: found.status == "True")
    section = (await ready.file())["switch:leaf1"]
    assert section["key_file"] == "/keys/00-00-5e-00-53-01.key"
    assert section["enable_secret"] == "enable"
    assert "password" not in section
    credentials = await ready.read("switch-credentials")
    assert credentials.text("00-00-5e-00-53-01.key") == KEY
    assert credentials.text("other") == "stays"
    await ready.client.delete(BARE_METAL_SWITCHES, Key(ready.namespace, "leaf1"))
    await ready.until_file()

    async def the_key_is_gone() -> bool:
        return (await ready.read("switch-credentials")).data.keys() == {"other"}

    await ready.until(the_key_is_gone)


async def test_what_does_not_change_is_not_written(ready: Closet) -> None:
    key = await ready.switch()
    await ready.until_valid("leaf1", lambda found: found.status == "True")
    before = await versions(ready, key)
    async with asyncio.timeout(60):
        # The last writes of it may still be on their way.
        while (now := await versions(ready, key)) != before:
            before = now
    # A Secret that is touched without a change wakes, and nothing comes of it.
    await ready.client.patch(SECRETS, Key(ready.namespace, "login"), {"metadata": {"labels": {"a": "b"}}})
    assert await versions(ready, key) == before


async def versions(closet: Closet, key: Key) -> list[str]:
    """What all that is written for a switch has come to, in a while."""
    await asyncio.sleep(0.3)
    return [
        (await closet.read("switch-configs")).metadata.resource_version,
        (await closet.read("switch-credentials")).metadata.resource_version,
        (await closet.client.get(BARE_METAL_SWITCHES, key)).metadata.resource_version,
    ]


async def test_a_secret_of_a_switch_that_comes_later_is_noticed_by_watch(ready: Closet) -> None:
    await ready.switch(secret="later")
    await ready.switch("leaf2", mac="00:00:5e:00:53:02")
    told = await ready.until_valid("leaf1", lambda found: found.status == "False")
    assert told.reason == "CredentialError"
    assert "Secret later does not exist" in told.message
    await ready.until_file("leaf2")
    await ready.secret("later", username="admin", password="x")
    await ready.until_valid("leaf1", lambda found: found.status == "True")
    await ready.until_file("leaf1", "leaf2")


async def test_the_secret_of_the_service_that_comes_later_is_noticed_by_watch(closet: Closet) -> None:
    await closet.secret("login", username="admin", password="x")
    await closet.switch()
    told = await closet.until_valid("leaf1", lambda found: found.status == "Unknown")
    assert (told.reason, "Secret switch-configs" in told.message) == ("SecretMissing", True)
    await closet.secret("switch-configs")
    await closet.until_valid("leaf1", lambda found: found.status == "True")
    await closet.until_file("leaf1")


async def test_a_changed_password_reaches_the_file(ready: Closet) -> None:
    await ready.switch()
    await ready.until_file("leaf1")
    await ready.client.patch(SECRETS, Key(ready.namespace, "login"), {"stringData": {"password": "new"}})

    async def it_is_there() -> bool:
        return (await ready.file())["switch:leaf1"]["password"] == "new"

    await ready.until(it_is_there)


async def test_two_switches_with_one_mac_address_do_not_share_their_keys(ready: Closet) -> None:
    await ready.switch("leaf1")
    await ready.switch("leaf2", mac=MAC.upper())
    told = await ready.until_valid("leaf2", lambda found: found.status == "False")
    assert (told.reason, "leaf1" in told.message) == ("InvalidSpec", True)
    await ready.until_file("leaf1")


async def test_an_attachment_that_a_host_refers_to_is_neither_changed_nor_deleted(closet: Closet) -> None:
    client = closet.client
    attachment = {"metadata": {"name": "storage"}, "spec": {"mode": "access", "nativeVLAN": 100}}
    await client.create(HOST_NETWORK_ATTACHMENTS, attachment, namespace=closet.namespace)
    interface = {"name": "eth0", "hostNetworkAttachment": {"name": "storage"}}
    host = {"metadata": {"name": "h1"}, "spec": {"online": True, "networkInterfaces": [interface]}}
    await client.create(BARE_METAL_HOSTS, host, namespace=closet.namespace)
    key = Key(closet.namespace, "storage")
    with pytest.raises(Invalid, match=r"/h1\[eth0\]"):
        await client.patch(HOST_NETWORK_ATTACHMENTS, key, {"spec": {"nativeVLAN": 200}})
    with pytest.raises(Invalid, match="cannot be deleted"):
        await client.delete(HOST_NETWORK_ATTACHMENTS, key)
    await client.patch(BARE_METAL_HOSTS, Key(closet.namespace, "h1"), {"spec": {"networkInterfaces": None}})
    await client.delete(HOST_NETWORK_ATTACHMENTS, key)
