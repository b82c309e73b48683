"""The environment of whoever builds ramdisks: what is taken from it, and what is refused before it ends up in one."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ramdisk_parts import SSH_KEY

from ingot.images.controller import ImageSettings, Listen
from ingot.images.ramdisk import AgentSettings, SettingsError
from ingot.trust import Authority

URL = {"IRONIC_BASE_URL": "https://10.0.0.1:6385"}
NOWHERE = Path("/nowhere/pull-secret")
AUTHS = '{"auths": {"registry.example": {"auth": "c2VjcmV0OnBhc3M="}}}'


def read(**environment: str) -> AgentSettings:
    return AgentSettings.from_environment({**URL, **environment}, pull_secret_file=NOWHERE)


def test_the_address_of_the_api_is_all_that_is_needed() -> None:
    settings = read()
    assert settings.api_urls == ("https://10.0.0.1:6385",)
    assert settings.image == "quay.io/metal3-io/ironic-agent"
    assert settings == AgentSettings(api_urls=("https://10.0.0.1:6385",))


def test_without_an_address_nothing_starts() -> None:
    with pytest.raises(SettingsError, match="IRONIC_BASE_URL"):
        AgentSettings.from_environment({}, pull_secret_file=NOWHERE)


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("https://ironic.example", ("https://ironic.example:6385",)),
        ("https://[2001:db8::1]", ("https://[2001:db8::1]:6385",)),
        ("https://[2001:db8::1]:7000/", ("https://[2001:db8::1]:7000",)),
        ("https://a.example,https://b.example:1", ("https://a.example:6385", "https://b.example:1")),
        (" https://a.example , ,", ("https://a.example:6385",)),
        ("https://a.example/below", ("https://a.example:6385/below",)),
    ],
)
def test_addresses_of_the_api(text: str, urls: tuple[str, ...]) -> None:
    assert read(IRONIC_BASE_URL=text).api_urls == urls


@pytest.mark.parametrize(
    "text",
    [
        "http://10.0.0.1:6385",  # the agent says its token there
        "https://",
        "https://user:secret@10.0.0.1",
        "https://10.0.0.1?x=1",
        "https://10.0.0.1/a\ninsecure = True",
        "https://10.0.0.1/$HOME",
        "https://10.0.0.1/'x'",
        "https://127.1",
        "mdns",
        ",",
    ],
)
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(SettingsError, match="IRONIC_BASE_URL") as problem:
        read(IRONIC_BASE_URL=text)
    assert "secret" not in str(problem.value)


def test_an_inspector_of_its_own_gets_its_usual_port_and_path() -> None:
    found = read(
        IRONIC_INSPECTOR_BASE_URL="https://i.example,https://j.example:1/v1/continue"
    ).inspection_urls
    assert found == ("https://i.example:5050/v1/continue", "https://j.example:1/v1/continue")


@pytest.mark.parametrize(
    "name",
    [
        "ironic-agent",
        "quay.io/metal3-io/ironic-agent:main",
        "registry.example:5000/a/b__c/d-e:v1.2_3",
        "[fd00::1]:5000/agent",
        "localhost/agent@sha256:" + "a" * 64,
        "r.example/agent:tag@sha256:" + "0" * 64,
    ],
)
def test_names_of_container_images(name: str) -> None:
    assert read(IRONIC_AGENT_IMAGE=name).image == name


@pytest.mark.parametrize(
    "name",
    [
        "a b",
        "a;b",
        "--privileged",
        "-v",
        "a$(id)",
        "a\nExecStartPre=/bin/x",
        "https://quay.io/a",
        "a@sha256:123",
        "a:%n",
        "a/Upper",
        "a" * 300,
        "../a",
    ],
)
def test_what_is_no_container_image(name: str) -> None:
    with pytest.raises(SettingsError, match="IRONIC_AGENT_IMAGE"):
        read(IRONIC_AGENT_IMAGE=name)


@pytest.mark.parametrize("text", [AUTHS, base64.b64encode(AUTHS.encode()).decode()])
def test_a_pull_secret_is_json_or_base64_of_it(text: str) -> None:
    found = read(IRONIC_AGENT_PULL_SECRET=text).pull_secret
    assert found.reveal() == AUTHS
    assert "c2Vj" not in repr(read(IRONIC_AGENT_PULL_SECRET=text))


@pytest.mark.parametrize("text", ["nonsense!", "{", '{"auth": {}}', "e30=", "[]", '{"auths": "secret"}'])
def test_a_pull_secret_that_is_none_is_not_repeated(text: str) -> None:
    with pytest.raises(SettingsError, match="IRONIC_AGENT_PULL_SECRET") as problem:
        read(IRONIC_AGENT_PULL_SECRET=text)
    assert text not in str(problem.value)


def test_a_pull_secret_comes_from_its_usual_file_when_nothing_else_is_said(tmp_path: Path) -> None:
    file = tmp_path / "pull-secret"
    file.write_text(AUTHS + "\n")
    assert AgentSettings.from_environment(URL, pull_secret_file=file).pull_secret.reveal() == AUTHS


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("IRONIC_RAMDISK_SSH_KEY", "ssh-rsa AAAA\nssh-rsa BBBB"),
        ("IRONIC_RAMDISK_SSH_KEY", 'command="x" ssh-rsa AAAA'),
        ("IRONIC_AGENT_VLAN_INTERFACES", "sometimes"),
        ("IP_OPTIONS", "ip=dhcp\nrd.break"),
        ("IP_OPTIONS", 'ip="dhcp x"'),
        ("IP_OPTIONS", "ip=$(reboot)"),
        ("IP_OPTIONS", "ipa-insecure=1"),
        ("IRONIC_KERNEL_PARAMS", "console=ttyS0\nrd.break"),
        ("IRONIC_KERNEL_PARAMS", 'a="b c"'),
        ("IRONIC_KERNEL_PARAMS", "a=${net0/mac}"),
        ("IRONIC_KERNEL_PARAMS", "ipa-api-url=https://elsewhere"),
        ("ENABLE_FIPS_IPA", "perhaps"),
        ("HTTP_PROXY", "http://proxy:3128\nEnvironment=LD_PRELOAD=x"),
        ("HTTP_PROXY", "socks5://proxy"),
        ("HTTPS_PROXY", 'http://pro"xy'),
        ("NO_PROXY", "a b"),
        ("NO_PROXY", 'a","b'),
        ("ADDITIONAL_NTP_SERVERS", "time.example iburst"),
        ("ADDITIONAL_NTP_SERVERS", "a\nallow all"),
        ("CA_BUNDLE", "/nowhere/ca.crt"),
        ("REGISTRIES_CONF_PATH", "/nowhere/registries.conf"),
        ("IRONIC_CACERT_FILE", "/dev/zero"),
    ],
)
def test_what_could_become_something_else_is_refused_with_the_name_of_its_variable(
    variable: str, text: str
) -> None:
    with pytest.raises(SettingsError, match=variable):
        read(**{variable: text})


def test_the_password_of_a_proxy_is_kept_out_of_sight() -> None:
    settings = read(HTTP_PROXY="http://me:hush@proxy.example:3128")
    assert settings.http_proxy.reveal() == "http://me:hush@proxy.example:3128"
    assert "hush" not in repr(settings)
    assert read(HTTPS_PROXY="proxy.example:3128").https_proxy.reveal() == "http://proxy.example:3128"
    with pytest.raises(SettingsError) as problem:
        read(HTTP_PROXY="http://me:hush@pro xy")
    assert "hush" not in str(problem.value)


def test_files_are_read_and_looked_into(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca").ca_file
    registries = tmp_path / "registries.conf"
    registries.write_text('unqualified-search-registries = ["r.example"]\n')
    settings = read(
        IRONIC_CACERT_FILE=str(authority), CA_BUNDLE=str(authority), REGISTRIES_CONF_PATH=str(registries)
    )
    assert settings.ca == settings.ca_bundle == authority.read_bytes()
    assert settings.registries_conf == registries.read_bytes()
    registries.write_text("[[registry]\n")
    with pytest.raises(SettingsError, match=r"REGISTRIES_CONF_PATH.*not TOML"):
        read(REGISTRIES_CONF_PATH=str(registries))
    with pytest.raises(SettingsError, match=r"CA_BUNDLE.*no certificates"):
        read(CA_BUNDLE=str(registries))


@pytest.mark.parametrize("variable", ["CA_BUNDLE", "IRONIC_CACERT_FILE"])
def test_a_private_key_beside_a_certificate_does_not_get_into_ramdisks(tmp_path: Path, variable: str) -> None:
    both = tmp_path / "both.pem"
    key = "-----BEGIN EC PRIVATE KEY-----\nhush\n-----END EC PRIVATE KEY-----\n"
    both.write_text(key + Authority(tmp_path / "ca").ca_file.read_text())
    with pytest.raises(SettingsError, match=rf"{variable}.*private key") as problem:
        read(**{variable: str(both)})
    assert "hush" not in str(problem.value)


@pytest.mark.parametrize("comment", ["", " Jane Doe's laptop", " jane+work@example:2"])
def test_an_ssh_key_has_any_comment(comment: str) -> None:
    key = SSH_KEY.rpartition(" ")[0] + comment
    assert read(IRONIC_RAMDISK_SSH_KEY=key).ssh_key == key


def test_the_rest_of_the_environment() -> None:
    settings = read(
        IRONIC_RAMDISK_SSH_KEY=f" {SSH_KEY}\n",
        IP_OPTIONS="ip=dhcp,dhcp6  rd.neednet=1",
        ADDITIONAL_NTP_SERVERS="time.example, fd00::1,",
        NO_PROXY=".example, 10.0.0.0/8",
        IRONIC_AGENT_VLAN_INTERFACES="Never",
    )
    assert settings.ssh_key == SSH_KEY
    assert settings.ip_options == ("ip=dhcp,dhcp6", "rd.neednet=1")
    assert settings.ntp_servers == ("time.example", "fd00::1")
    assert settings.no_proxy == ".example,10.0.0.0/8"
    assert settings.vlan_interfaces == "never"


@pytest.mark.parametrize(
    ("environment", "arguments"),
    [
        ({}, ()),
        ({"IRONIC_KERNEL_PARAMS": "", "ENABLE_FIPS_IPA": ""}, ()),
        ({"IRONIC_KERNEL_PARAMS": " console=ttyS0,115200  quiet "}, ("console=ttyS0,115200", "quiet")),
        ({"ENABLE_FIPS_IPA": "true"}, ("fips=1",)),
        ({"ENABLE_FIPS_IPA": "False", "IRONIC_KERNEL_PARAMS": "a"}, ("a",)),
        ({"ENABLE_FIPS_IPA": "true", "IRONIC_KERNEL_PARAMS": "a=b"}, ("fips=1", "a=b")),
    ],
)
def test_what_ironic_tells_every_ramdisk_is_known_here_too(
    environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    assert read(**environment).iso_arguments == arguments


@given(st.text())
def test_whatever_an_image_is_called_it_is_one_word_or_refused(text: str) -> None:
    try:
        image = read(IRONIC_AGENT_IMAGE=text).image
    except SettingsError:
        return
    assert image.split() == [image]
    assert not set(image) & set("\"'\\%$;&|`(){}<>#\n")
    assert not image.startswith("-")


# How images are served


def image_settings(tmp_path: Path, **environment: str) -> ImageSettings:
    return ImageSettings.from_environment({**URL, **environment}, state=tmp_path)


def test_images_come_from_a_payload_or_from_iso_files(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"INGOT_RELEASE_PAYLOAD.*DEPLOY_ISO"):
        image_settings(tmp_path)
    assert image_settings(tmp_path, DEPLOY_ISO="/images/ipa.iso").iso == Path("/images/ipa.iso")
    both = image_settings(tmp_path, DEPLOY_ISO="/images/ipa.iso", INGOT_RELEASE_PAYLOAD="/payload")
    assert (both.payload, both.iso) == (Path("/payload"), None)


def test_where_images_are_served(tmp_path: Path) -> None:
    usual = image_settings(tmp_path, INGOT_RELEASE_PAYLOAD="/payload")
    assert (usual.listen, usual.public_url, usual.minimal_iso) == (Listen("127.0.0.1", 8084), "", False)
    other = image_settings(
        tmp_path,
        INGOT_RELEASE_PAYLOAD="/payload",
        INGOT_IMAGES_LISTEN="[::]:443",
        INGOT_IMAGES_URL="https://images.example/",
        INGOT_MINIMAL_ISO="yes",
    )
    assert (other.listen, other.public_url, other.minimal_iso) == (
        Listen("::", 443),
        "https://images.example",
        True,
    )


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("INGOT_IMAGES_LISTEN", "443"),
        ("INGOT_IMAGES_LISTEN", "a:b"),
        ("INGOT_IMAGES_URL", "images.example"),
        ("INGOT_IMAGES_URL", "https://images.example/;reboot"),
        ("INGOT_IMAGES_URL", "https://me:hush@images.example"),
        ("INGOT_MINIMAL_ISO", "perhaps"),
        ("IRONIC_AGENT_IMAGE", "a b"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_served(tmp_path: Path, variable: str, text: str) -> None:
    with pytest.raises(SettingsError, match=variable) as problem:
        image_settings(tmp_path, INGOT_RELEASE_PAYLOAD="/payload", **{variable: text})
    assert "hush" not in str(problem.value)
