"""The settings of the Ironic service: the same value on both sides of the environment, and nothing wrong gets through."""

from __future__ import annotations

import string
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from ingot.services.errors import SettingsError
from ingot.services.settings import IronicPaths, IronicSettings
from ingot.trust import Secret

STATE = Path("/state/ironic")


def settings(**changes: Any) -> IronicSettings:
    given: dict[str, Any] = {
        "paths": IronicPaths.below(STATE),
        "cert_file": Path("/tls/ironic.crt"),
        "key_file": Path("/tls/ironic.key"),
        "ca_file": Path("/ca/ca.crt"),
        "username": "ingot",
        "password_file": Path("/auth/password"),
    }
    return IronicSettings(**(given | changes))


words = st.text(string.ascii_letters + string.digits + "-_.$%é", min_size=1, max_size=12)
paths = st.lists(words.filter(lambda word: word.strip(".")), min_size=1, max_size=3).map(
    lambda parts: Path("/", *parts)
)
hosts = st.text(string.ascii_lowercase, min_size=1, max_size=10)
secure_urls = st.builds(lambda host, path: f"https://{host}:8443/{path}", hosts, words)
urls = st.one_of(secure_urls, hosts.map(lambda host: f"http://{host}"))
seconds = st.integers(1, 100_000)
push = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"push_url": secure_urls, "push_ca_file": paths, "push_token_file": paths}),
)
optional = st.fixed_dictionaries(
    {},
    optional={
        "ip": st.ip_addresses().map(str),
        "listen_port": st.integers(2, 65535),
        "listen_all": st.booleans(),
        "conductor_host": hosts,
        "public_url": secure_urls,
        "external_callback_url": secure_urls,
        "http_url": urls,
        "external_http_url": urls,
        "bmc_ca_file": paths,
        "webserver_ca_file": paths,
        "database_url": words.map(Secret),
        "reverse_proxy": st.booleans(),
        "private_port": st.sampled_from(["unix", "1"]),
        "access_port": st.integers(2, 65535),
        "external_ip": st.ip_addresses().map(str),
        "collect_lldp": st.booleans(),
        "kernel_params": st.sampled_from(["", "console=ttyS0 nosmt"]),
        "automated_clean": st.booleans(),
        "fast_track": st.booleans(),
        "boot_iso_source": st.sampled_from(["http", "local"]),
        "agent_heartbeat_timeout": seconds,
        "power_sync_interval": seconds,
        "bmc_connect_timeout": seconds,
        "boot_port": st.integers(2, 65535),
        "ramdisk_ssh_key": st.just("ssh-ed25519 AAAA me@there"),
        "debug": st.booleans(),
    },
)
coreos = st.fixed_dictionaries({}, optional={"use_coreos": st.just(True), "boot_iso_source": st.just("http")})
places = st.builds(
    lambda state, http_root, change: (
        IronicPaths.below(state) if not change else _with(IronicPaths.below(state), http_root)
    ),
    paths,
    paths,
    st.booleans(),
)


def _with(usual: IronicPaths, http_root: Path) -> IronicPaths:
    return replace(usual, http_root=http_root)


@examples(deadline=None)
@given(places=places, changes=optional, push=push, coreos=coreos)
def test_what_goes_through_the_environment_comes_out_the_same(
    places: IronicPaths, changes: dict[str, Any], push: dict[str, Any], coreos: dict[str, Any]
) -> None:
    if coreos.get("use_coreos"):
        coreos |= {"boot_iso_source": "http"}
    before = settings(paths=places, **(changes | push | coreos))
    assert IronicSettings.from_environment(before.to_environment()) == before


def test_usual_values_are_not_spelled_out() -> None:
    assert settings().to_environment() == {
        "INGOT_IRONIC_STATE": "/state/ironic",
        "IRONIC_CERT_FILE": "/tls/ironic.crt",
        "IRONIC_KEY_FILE": "/tls/ironic.key",
        "IRONIC_CACERT_FILE": "/ca/ca.crt",
        "INGOT_IRONIC_USERNAME": "ingot",
        "INGOT_IRONIC_PASSWORD_FILE": "/auth/password",
    }


def test_everything_that_is_missing_is_named_at_once() -> None:
    with pytest.raises(SettingsError) as refused:
        IronicSettings.from_environment({"IRONIC_CERT_FILE": "/tls/ironic.crt", "IRONIC_KEY_FILE": ""})
    text = str(refused.value)
    assert "INGOT_IRONIC_STATE, IRONIC_KEY_FILE, IRONIC_CACERT_FILE" in text
    assert "IRONIC_CERT_FILE" not in text


def test_a_path_can_be_set_apart_from_the_state_folder() -> None:
    environment = settings().to_environment() | {"INGOT_IRONIC_HTTP_ROOT": "/srv/http"}
    read = IronicSettings.from_environment(environment)
    assert read.paths.http_root == Path("/srv/http")
    assert read.paths.tftp_root == STATE / "tftp"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("IRONIC_LISTEN_PORT", "https", "expected a whole number"),
        ("IRONIC_LISTEN_PORT", "0", "expected a port from 1 to 65535"),
        ("IRONIC_LISTEN_PORT", "65536", "expected a port from 1 to 65535"),
        ("IRONIC_LISTEN_PORT", "-1", "expected a whole number"),
        ("LISTEN_ALL_INTERFACES", "perhaps", "expected true or false"),
        ("IRONIC_IP", "localhost", "expected an IPv4 or IPv6 address"),
        ("IRONIC_BASE_URL", "http://ironic", "expected https://HOST"),
        ("IRONIC_EXTERNAL_CALLBACK_URL", "https://", "expected https://HOST"),
        ("IRONIC_HTTP_URL", "ftp://files", "expected http or https://HOST"),
        ("IRONIC_HTTP_URL", "http://[::1", "expected http or https://HOST"),
        ("INGOT_PUSH_URL", "https://operator/push", "belong together"),
        ("IRONIC_PRIVATE_PORT", "tcp", "expected 'unix' or a port"),
        ("IRONIC_EXTERNAL_IP", "ironic.example", "expected an IPv4 or IPv6 address"),
        ("IRONIC_HTPASSWD", "ingot:secret", "bcrypt only"),
        ("IRONIC_KERNEL_PARAMS", "console=ttyS0 a;b", "holds 'a;b'"),
        ("IRONIC_KERNEL_PARAMS", "x=${net0/mac}", "holds"),
        ("IRONIC_KERNEL_PARAMS", "ipa-insecure=1", "would send its token"),
        ("IRONIC_RAMDISK_SSH_KEY", 'ssh-ed25519 AAAA" init=/bin/sh', "OpenSSH public key"),
        ("IRONIC_IPA_COLLECTORS", "default logs", "list of words"),
        ("DEPLOY_KERNEL_URL", "http://images/kernel", "belong together"),
        ("DEPLOY_KERNEL_BY_ARCH", "x86_64=http://images/kernel", "expected ARCHITECTURE:URL"),
        ("INGOT_BOOTLOADER_BY_ARCH", "bootx64.efi", "expected ARCHITECTURE:URL"),
        ("BOOTLOADER", "file://templates/esp.img", "with no host"),
        ("BOOTLOADER", "file:///templates/../etc/esp.img", "no '..'"),
        ("BOOTLOADER", "file:///templates/a.img,/var", "no comma"),
        ("BOOTLOADER", "file:///templates/a.img?b", "BOOTLOADER names the file"),
        ("BOOTLOADER", "file:////etc/esp.img", "BOOTLOADER names the file"),
        ("BOOTLOADER", "file:///", "BOOTLOADER names the file"),
        ("BOOTLOADER", "FILE:///etc/esp.img", "Ironic reads no file of /boot, /dev, /etc"),
        (
            "INGOT_BOOTLOADER_BY_ARCH",
            "aarch64:file:///boot/a.img",
            "INGOT_BOOTLOADER_BY_ARCH names /boot/a.img",
        ),
        ("IRONIC_USE_MARIADB", "true", "MARIADB_PASSWORD is not set"),
        ("INGOT_IRONIC_USERNAME", "a:b", "holds a colon"),
        ("INGOT_IRONIC_USERNAME", "a\nb = c", "control character"),
        ("IRONIC_CERT_FILE", "/tls/a\nrpc_transport = oslo", "control character"),
        ("IRONIC_BOOT_ISO_SOURCE", "swift", "expected 'http' or 'local'"),
        ("HTTP_PORT", "0", "HTTP_PORT is 0; expected a port"),
        ("INGOT_NETWORK_BOOT", "true", "IRONIC_REVERSE_PROXY_SETUP is not"),
        ("INGOT_IRONIC_POWER_SYNC_INTERVAL", "0", "at least 1 second"),
        ("INGOT_IRONIC_AGENT_LOGS_MIB", "0", "expected at least 1"),
        ("INGOT_IRONIC_STATE", "state", "must be absolute"),
        ("INGOT_IRONIC_STATE", "/a?b", "no '?' and no comma"),
        ("INGOT_IRONIC_HTTP_ROOT", "/a,/etc", "no '?' and no comma"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_was_expected(variable: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said.replace("?", r"\?")):
        IronicSettings.from_environment(settings().to_environment() | {variable: value})


def test_an_ipv6_address_stands_in_brackets_in_urls() -> None:
    here = settings(ip="2001:db8::1", listen_port=6385)
    assert here.base_url == "https://[2001:db8::1]:6385"
    assert here.boot_url == "http://[2001:db8::1]:6180/boot.ipxe"


def test_a_coreos_image_is_never_stored_by_ironic() -> None:
    with pytest.raises(SettingsError, match="would store a whole image for each host"):
        settings(use_coreos=True, boot_iso_source="local")


@pytest.mark.parametrize("taken", [{"listen_port": 6180}, {"private_port": "6180"}])
def test_boot_files_have_a_port_of_their_own(taken: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="HTTP_PORT is 6180, where another listener"):
        settings(reverse_proxy=True, network_boot=True, **taken)


def test_a_database_url_is_not_shown() -> None:
    assert "hunter2" not in repr(settings(database_url=Secret("mysql+pymysql://u:hunter2@db/ironic")))


def test_somebody_has_to_be_able_to_call() -> None:
    with pytest.raises(SettingsError, match=r"INGOT_IRONIC_PASSWORD_FILE\. Nobody could call Ironic"):
        settings(password_file=None)
    line = "ingot:$2y$05$" + "a" * 53
    assert settings(username=None, password_file=None, htpasswd=Secret(line)).htpasswd == Secret(line)


def test_with_a_front_server_agents_and_the_operator_call_different_doors() -> None:
    alone = settings(listen_port=6385)
    assert alone.base_url == alone.api_url == "https://127.0.0.1:6385"
    behind = settings(ip="10.0.0.1", listen_port=6385, reverse_proxy=True, private_port="6388")
    assert (behind.base_url, behind.api_url) == ("https://10.0.0.1:6385", "https://127.0.0.1:6388")
    assert behind.api_socket is None
    hidden = settings(reverse_proxy=True)
    assert hidden.api_socket == STATE / "ironic.sock"
    with pytest.raises(SettingsError, match="Choose another one for Ironic"):
        settings(listen_port=6385, reverse_proxy=True, private_port="6385")


def test_an_external_ipv6_address_stands_in_brackets() -> None:
    assert settings(external_ip="2001:db8::1").external_callback == "https://[2001:db8::1]:6385"
    named = settings(external_ip="2001:db8::1", external_callback_url="https://ironic.example")
    assert named.external_callback == "https://ironic.example"


def test_a_mariadb_password_may_hold_what_urls_hold() -> None:
    described = settings(
        use_mariadb=True, mariadb_password=Secret("p@ss:w/rd#%?&x"), mariadb_ca_file=Path("/ca/db.crt")
    )
    assert described.database.reveal() == (
        "mysql+pymysql://ironic:p%40ss%3Aw%2Frd%23%25%3F%26x@127.0.0.1/ironic?charset=utf8mb4&ssl_ca=/ca/db.crt"
    )
    assert not described.uses_sqlite_file
    with pytest.raises(SettingsError, match="outside ASCII"):
        settings(use_mariadb=True, mariadb_password=Secret("pässword"))
