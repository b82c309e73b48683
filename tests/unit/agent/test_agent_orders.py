"""What install_coreos is asked for: where each value comes from, what is refused, and that no refusal quotes user data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot_agent.checksum import Digest, DigestAt, found_in
from ingot_agent.errors import Refused
from ingot_agent.kargs import arguments
from ingot_agent.order import ARGUMENTS, Surroundings, is_hostname, read, shown

CONFIG = {"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/secret-path"}]}}
SHA256 = "a" * 64
NOBODY = Surroundings()


def node(*, drive: Any = None, **instance: Any) -> dict[str, Any]:
    return {"uuid": "u", "instance_info": {"configdrive": drive, **instance}}


def asked(
    given_: dict[str, Any] | None = None, *, around: Surroundings = NOBODY, name: str = "h1", **more: Any
) -> Any:
    return read(given_ or {}, node(**more), around, name)


def test_an_order_without_anything_installs_the_build_that_runs() -> None:
    order = asked()
    assert (order.ignition, order.image, order.append_kargs, order.copy_network) == (None, None, (), False)
    assert order.hostname == "h1"


@pytest.mark.parametrize("form", [CONFIG, json.dumps(CONFIG), json.dumps(CONFIG, indent=3)])
def test_ignition_comes_from_the_argument_as_object_or_text(form: Any) -> None:
    order = asked({"ignition": form}, drive={"user_data": '{"ignition": {"version": "3.0.0"}}'})
    assert json.loads(order.ignition) == CONFIG


@pytest.mark.parametrize("form", [CONFIG, json.dumps(CONFIG)])
def test_without_the_argument_the_user_data_is_the_ignition_config(form: Any) -> None:
    assert json.loads(asked(drive={"user_data": form}).ignition) == CONFIG


def test_a_text_is_carried_to_the_letter() -> None:
    text = '{ "ignition":   {"version":"3.4.0"} }\n'
    assert asked({"ignition": text}).ignition == text


@pytest.mark.parametrize(
    ("user_data", "said"),
    [
        ("#cloud-config\npassword: hunter2\n", "cloud-config"),
        ("#!/bin/sh\necho hunter2\n", "no JSON"),
        ('{"hunter2": 1}', "no ignition.version"),
        ('["hunter2"]', "no ignition.version"),
        ('{"ignition": {"version": "2.2.0"}, "x": "hunter2"}', "spec 3"),
        ('{"ignition": {"version": 3}, "x": "hunter2"}', "no ignition.version"),
        (["hunter2"], "neither an object nor a text"),
        ("[" * 100000, "no JSON"),
    ],
)
def test_user_data_that_is_not_ignition_is_refused_without_quoting_it(user_data: Any, said: str) -> None:
    with pytest.raises(Refused, match=said) as refused:
        asked(drive={"user_data": user_data})
    assert "hunter2" not in str(refused.value)
    assert "user data" in str(refused.value)


def test_a_finished_config_drive_is_refused() -> None:
    with pytest.raises(Refused, match="finished image"):
        asked(drive="H4sIAAAA")


def test_a_wrong_kind_of_meta_data_is_refused_by_name() -> None:
    with pytest.raises(Refused, match="meta_data is not an object"):
        asked(drive={"meta_data": ["x"]})


def test_an_unknown_argument_is_refused_by_name() -> None:
    with pytest.raises(Refused, match="no argument 'kargs'; it has ignition, append_kargs"):
        asked({"kargs": []})


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        (["console=ttyS0", "nosmt"], ("console=ttyS0", "nosmt")),
        ("console=ttyS0  nosmt", ("console=ttyS0", "nosmt")),
        (["a=1 b=2"], ("a=1", "b=2")),
        (['dyndbg="file a.c +p" quiet'], ('dyndbg="file a.c +p"', "quiet")),
        ([], ()),
        ("", ()),
        (None, ()),
    ],
)
def test_kernel_arguments_become_single_ones(given_: Any, words: tuple[str, ...]) -> None:
    assert arguments(given_, "here") == words


@pytest.mark.parametrize(
    "given_", [["a\nb"], "a\x00b", "a\x1bb", 'a="', ["a=é"], [1], {"a": 1}, ["x" * 3000]]
)
def test_what_is_no_kernel_argument_is_refused(given_: Any) -> None:
    with pytest.raises(Refused, match="here"):
        arguments(given_, "here")


@given(st.lists(st.from_regex(r"[!#-~]+", fullmatch=True)))
def test_a_list_and_the_same_words_in_one_text_are_the_same(words: list[str]) -> None:
    assert arguments(words, "x") == arguments(" ".join(words), "x") == tuple(words)


@given(st.text())
def test_no_text_makes_an_argument_that_is_two(text: str) -> None:
    try:
        words = arguments(text, "x")
    except Refused:
        return
    assert all(word and "\n" not in word and word.count('"') % 2 == 0 for word in words)
    assert all(" " not in part for word in words for part in word.split('"')[::2])


def test_kernel_arguments_of_the_meta_data_count_where_the_step_has_none() -> None:
    drive = {"meta_data": {"coreos_append_karg": ["a=1", "b=2"], "coreos_delete_karg": "quiet"}}
    assert asked(drive=drive).append_kargs == ("a=1", "b=2")
    assert asked(drive=drive).delete_kargs == ("quiet",)
    assert asked({"append_kargs": ["c"], "delete_kargs": []}, drive=drive).append_kargs == ("c",)
    assert asked({"append_kargs": ["c"], "delete_kargs": []}, drive=drive).delete_kargs == ()


def test_the_ramdisks_ip_options_are_arguments_of_their_own() -> None:
    around = Surroundings(ip_options="ip=dhcp6 rd.neednet=1")
    assert asked({"append_kargs": "a"}, around=around).append_kargs == ("a", "ip=dhcp6", "rd.neednet=1")


@pytest.mark.parametrize(
    ("argument", "meta", "environment", "copied"),
    [
        (None, None, "", False),
        (None, None, "true", True),
        (None, False, "true", False),
        (None, "true", "false", True),
        (False, True, "true", False),
        (True, None, "", True),
    ],
)
def test_the_network_is_copied_when_the_first_that_says_something_says_so(
    argument: Any, meta: Any, environment: str, copied: bool
) -> None:
    drive = {"meta_data": {"coreos_copy_network": meta}}
    around = Surroundings(copy_network=environment)
    assert asked({"copy_network": argument}, drive=drive, around=around).copy_network is copied


def test_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(Refused, match="IPA_COREOS_COPY_NETWORK is neither true nor false"):
        asked(around=Surroundings(copy_network="perhaps"))


KEYFILES = {"eth0.nmconnection": "[connection]\nid=eth0\npassword=hunter2\n"}


def test_keyfiles_come_in_the_arguments_or_in_the_meta_data() -> None:
    drive = {"meta_data": {"coreos_network_keyfiles": {"other.nmconnection": ""}}}
    assert asked({"network_keyfiles": KEYFILES}, drive=drive).keyfiles == KEYFILES
    assert asked(drive={"meta_data": {"coreos_network_keyfiles": KEYFILES}}).keyfiles == KEYFILES
    assert asked({"network_keyfiles": {}}, drive=drive).keyfiles == {}
    assert asked().keyfiles == {}
    assert "hunter2" not in repr(asked({"network_keyfiles": KEYFILES}))


@pytest.mark.parametrize(
    "form",
    [
        ["eth0"],
        "hunter2",
        {"eth0": 5},
        {"../eth0": "hunter2"},
        {"a/b": ""},
        {".hidden": ""},
        {"": ""},
        {"a\n": ""},
        {"a" * 256: ""},
        {"eth0": "\ud800"},
        {"\ud800": ""},
        {"eth0": "x" * ((4 << 20) + 1)},
    ],
)
def test_what_are_no_keyfiles_is_refused(form: Any) -> None:
    with pytest.raises(Refused, match="the argument network_keyfiles") as refused:
        asked({"network_keyfiles": form})
    assert "hunter2" not in str(refused.value)


KEY = "ssh-ed25519 AAAAC3Nz someone@somewhere"


@pytest.mark.parametrize("form", [[KEY], KEY, KEY + "\n\n", [f" {KEY} "]])
def test_ssh_keys_come_as_list_or_text(form: Any) -> None:
    assert asked({"ssh_keys": form}).ssh_keys == (KEY,)


@pytest.mark.parametrize("form", [{"mine": KEY}, [KEY], KEY])
def test_the_meta_datas_public_keys_count_too(form: Any) -> None:
    assert asked(drive={"meta_data": {"public_keys": form}}).ssh_keys == (KEY,)


@pytest.mark.parametrize("form", [["hello"], "x\x07y z", [1], 5, [f"{KEY}\nssh-rsa AAAA"]])
def test_what_is_no_ssh_key_is_refused(form: Any) -> None:
    with pytest.raises(Refused, match="the argument ssh_keys"):
        asked({"ssh_keys": form})


FILLED_IN = {"metal3-name": "h1", "local-hostname": "h1", "local_hostname": "h1", "name": "h1"}


@pytest.mark.parametrize(
    ("meta", "name"),
    [
        ({}, "from-dhcp"),
        (FILLED_IN, "from-dhcp"),
        ({"local-hostname": "rack-3"}, "rack-3"),
        (FILLED_IN | {"local-hostname": "rack-3"}, "rack-3"),
        (FILLED_IN | {"local_hostname": "rack-3"}, "rack-3"),
        (FILLED_IN | {"name": "rack-3"}, "rack-3"),
        (FILLED_IN | {"hostname": "h1"}, "h1"),
        (FILLED_IN | {"local-hostname": "not a name"}, "from-dhcp"),
        (FILLED_IN | {"local-hostname": 3}, "from-dhcp"),
    ],
)
def test_a_name_that_somebody_chose_wins_over_the_machines(meta: dict[str, Any], name: str) -> None:
    assert asked(name="from-dhcp", drive={"meta_data": meta}).hostname == name


def test_a_machine_that_the_network_gives_no_name_is_called_like_its_host() -> None:
    assert read({}, node(drive={"meta_data": FILLED_IN}), NOBODY, None).hostname == "h1"


def test_a_machine_without_a_name_is_called_as_the_meta_data_says() -> None:
    drive = {"meta_data": {"local-hostname": "rack-3", "name": "other"}}
    assert read({}, node(drive=drive), NOBODY, None).hostname == "rack-3"
    assert read({}, node(drive={"meta_data": {"name": "a b"}}), NOBODY, None).hostname is None


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("h1", True),
        ("h1.example.com", True),
        ("localhost", False),
        ("localhost.localdomain", False),
        ("", False),
        ("-a", False),
        ("a_b", False),
        ("a" * 65, False),
        ("a..b", False),
        ("h\n", False),
    ],
)
def test_a_hostname_says_which_machine_it_is(name: str, good: bool) -> None:
    assert is_hostname(name) is good


def test_an_image_comes_with_its_hash() -> None:
    image = asked(
        image_source="https://host/x/fcos.raw.xz?token=hunter2",
        image_os_hash_algo="sha256",
        image_os_hash_value=SHA256.upper(),
    ).image
    assert image.hash == Digest("sha256", SHA256)
    assert str(image) == "https://host/x/fcos.raw.xz"


@pytest.mark.parametrize(
    ("fields", "hash_"),
    [
        ({"image_checksum": SHA256}, Digest("sha256", SHA256)),
        ({"image_checksum": "b" * 128}, Digest("sha512", "b" * 128)),
        ({"image_os_hash_algo": "SHA-512", "image_os_hash_value": "b" * 128}, Digest("sha512", "b" * 128)),
        ({"image_os_hash_value": SHA256}, Digest("sha256", SHA256)),
        ({"image_checksum": "https://host/SUMS"}, DigestAt("https://host/SUMS", None)),
        (
            {"image_os_hash_algo": "sha256", "image_os_hash_value": "http://host/SUMS"},
            DigestAt("http://host/SUMS", "sha256"),
        ),
        (
            {"image_checksum": "c" * 32, "image_os_hash_algo": "sha256", "image_os_hash_value": SHA256},
            Digest("sha256", SHA256),
        ),
    ],
)
def test_the_hash_is_found_in_each_of_its_fields(fields: dict[str, Any], hash_: object) -> None:
    assert asked(image_source="https://host/a.raw", **fields).image.hash == hash_


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "has no hash"),
        ({"image_os_hash_algo": "sha256"}, "has no hash"),
        ({"image_checksum": "d" * 32}, "MD5 proves nothing"),
        ({"image_os_hash_algo": "md5", "image_os_hash_value": "d" * 32}, "a md5"),
        (
            {"image_os_hash_algo": "sha512", "image_os_hash_value": SHA256},
            "64 digits, and one of sha512 has 128",
        ),
        ({"image_checksum": "xyz"}, "not a hexadecimal number"),
    ],
)
def test_an_image_without_a_good_hash_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=said):
        asked(image_source="https://host/a.raw", **fields)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://host/live.iso", "is an ISO"),
        ("file:///etc/passwd", "not at an http or https URL"),
        ("b7a3f6e0-glance-id", "not at an http or https URL"),
        ("ftp://me:hunter2@host/a.raw", "not at an http or https URL"),
        ("https://host/a.raw\nx", "not a URL"),
        ("https:///a.raw", "not at an http"),
        ("https://[::1/a.raw", "not a URL"),
        ("https://host:port/a.raw", "not a URL"),
        (7, "not a URL"),
    ],
)
def test_what_is_no_image_url_is_refused(url: Any, said: str) -> None:
    with pytest.raises(Refused, match=said) as refused:
        asked(image_source=url, image_checksum=SHA256)
    assert "hunter2" not in str(refused.value)


SUMS = f"# made by hand\n{'1' * 64}  other.raw\n{SHA256} *fcos 1.raw\nSHA256 (bsd.raw) = {'2' * 64}\n"


@pytest.mark.parametrize(
    ("text", "image", "value"),
    [
        (SHA256 + "\n", "https://host/anything.raw", SHA256),
        (SUMS, "https://host/d/fcos%201.raw?x=1", SHA256),
        (SUMS, "https://host/bsd.raw", "2" * 64),
        (f"{SHA256}  ./a.raw", "https://host/a.raw", SHA256),
    ],
)
def test_a_file_of_checksums_is_read_by_the_images_name(text: str, image: str, value: str) -> None:
    assert found_in(text, image, DigestAt("u", None)) == Digest("sha256", value)


def test_a_file_of_checksums_without_the_image_is_refused() -> None:
    with pytest.raises(Refused, match=r"names no image 'new\.raw'"):
        found_in(SUMS, "https://host/new.raw", DigestAt("u", None))


def test_the_surroundings_are_read_from_the_environment() -> None:
    assert Surroundings.of({}) == Surroundings(root=Path("/mnt/coreos"))
    told = {
        "INGOT_COREOS_ROOT": "/x",
        "IPA_COREOS_IP_OPTIONS": "ip=dhcp",
        "IPA_COREOS_COPY_NETWORK": "true",
        "IPA_DEFAULT_HOSTNAME": "h",
        "INGOT_COREOS_RETRY_PAUSE": "0.5",
    }
    assert Surroundings.of(told) == Surroundings(Path("/x"), "ip=dhcp", "true", "h", 0.5)
    assert Surroundings.of({"INGOT_COREOS_RETRY_PAUSE": "soon"}) == Surroundings()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
URLS = st.builds("{}://{}/{}".format, st.sampled_from(["http", "https", "x"]), st.text(max_size=9), st.text())
FIELDS = {
    "image_source": JSON | URLS,
    "image_os_hash_value": JSON | st.just(SHA256) | URLS,
    "image_os_hash_algo": JSON | st.just("sha256"),
    "image_checksum": JSON,
    "configdrive": JSON | st.fixed_dictionaries({}, optional={"user_data": JSON, "meta_data": JSON}),
}
GIVEN = dict.fromkeys(ARGUMENTS, JSON)


@given(st.fixed_dictionaries({}, optional=GIVEN), st.fixed_dictionaries({}, optional=FIELDS))
def test_whatever_is_asked_is_an_order_or_refused(given_: dict[str, Any], instance: dict[str, Any]) -> None:
    try:
        order = read(given_, {"instance_info": instance}, NOBODY, "h1")
    except Refused:
        return
    assert order.image is None or order.image.url.startswith("http")


def test_an_order_does_not_show_the_ignition_config() -> None:
    assert "secret-path" not in repr(asked({"ignition": CONFIG}))


def test_a_shown_url_has_no_password_and_no_token() -> None:
    assert shown("https://u:p@host:8443/a/b?sig=x#y") == "https://host:8443/a/b"
