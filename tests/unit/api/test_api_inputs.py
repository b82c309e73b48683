"""What users write that becomes a URL, a checksum, a word on a command line: rules for values, whatever field they stand in."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ingot.api.baremetalhost import Image, RootDeviceHints
from ingot.api.inputs import checksums, documents, hints, kernel_arguments, steps, text, urls
from ingot.api.inputs.weaknesses import Weakness, weaknesses

WEB = urls.WEB_SCHEMES


@pytest.mark.parametrize(
    "url",
    [
        "https://images.example.com/x.qcow2",
        "http://10.0.0.1:8080/x?a=1&b=2#part",
        "https://[fd00::1]:6180/x",
        "https://user:p%40ss@host/x",
        "http://image_server/x",
        "http://host./x",
        "https://1e100.net/x",
        "https://a.b3/x",
    ],
)
def test_a_url_that_everybody_reads_alike_passes(url: str) -> None:
    assert urls.problem_with(url, WEB) is None


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://host/a b", "printable ASCII"),
        ("https://host/ü", "printable ASCII"),
        ("https://host/x\n", "printable ASCII"),
        ("", "printable ASCII"),
        ("file:///etc/shadow", "the scheme has to be one of"),
        ("host/x", "the scheme has to be one of"),
        ("https:host/x", "names no host"),
        ("https:///x", "names no host"),
        ("https://host:99999/x", "this is not a URL"),
        ("https://[fd00::1/x", "this is not a URL"),
        ("https://[fe80::1%25eth0]/x", "neither an IP address"),
        ("https://2130706433/x", "neither an IP address"),
        ("https://0x7f000001/x", "neither an IP address"),
        ("https://127.1/x", "neither an IP address"),
        ("https://1.2.3.256/x", "neither an IP address"),
        ("https://-h/x", "neither an IP address"),
        ("https://a,b/x", "neither an IP address"),
        ("https://host/a\\b", "backslash"),
        ("https://good.example\\@evil/x", "backslash"),
        ("https://host/a%0d%0aSet-Cookie:x", "encoded control character"),
        ("https://host/a%00", "encoded control character"),
    ],
)
def test_a_url_that_somebody_could_read_otherwise_does_not(url: str, words: str) -> None:
    problem = urls.problem_with(url, WEB)
    assert problem is not None
    assert words in problem.sentence


@given(st.text() | st.from_regex(r"https?://[!-~]{1,40}", fullmatch=True))
@example("https://u:p@h@evil/x")
def test_the_host_that_is_checked_is_the_host_that_is_called(url: str) -> None:
    if urls.problem_with(url, WEB) is None:
        host = urls.host_of(url)
        assert host == urlsplit(url).hostname
        assert urls.is_web_host(host)
        assert not set(host) & set("/\\@?# ")


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_password_in_a_url_is_not_shown(user: str, password: str) -> None:
    shown = urls.without_password(f"https://{user}:{password}@host/x")
    assert shown == "https://******@host/x"


_BY_DIGEST = "reg.example:5000/team/x@sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"oci://{_BY_DIGEST}", f"oci://{_BY_DIGEST}"),
        ("oci://reg/x:1@sha512:" + "AB" * 64, "oci://reg/x:1@sha512:" + "AB" * 64),
        (f"oci://user:hush@{_BY_DIGEST}", f"oci://******@{_BY_DIGEST}"),
        (f"oci://user:h/u@sh@{_BY_DIGEST}", f"oci://******@{_BY_DIGEST}"),
        ("https://user:hush@sha256:8443/x", "https://******@sha256:8443/x"),
        ("https://user:hush@sha256:8443", "https://******@sha256:8443"),
        ("oci://user:hush@sha256:" + "ab" * 32, "oci://******@sha256:" + "ab" * 32),
    ],
)
def test_the_digest_of_an_image_is_no_password_before_it(url: str, shown: str) -> None:
    assert urls.without_password(url) == shown


@pytest.mark.parametrize(
    ("checksum", "named", "words"),
    [
        ("ab" * 16, None, None),
        ("AB" * 32, "auto", None),
        ("ab" * 64, "sha512", None),
        ("ab" * 32, "sha256", None),
        ("xy" * 32, None, "hexadecimal"),
        ("ab" * 32 + "\n", None, "hexadecimal"),
        ("ab" * 20, None, "it has 40 digits, and checksums have so many: md5 32, sha256 64, sha512 128"),
        ("ab" * 32, "md5", "it has 64 digits, and a md5 checksum has 32"),
        ("ab" * 32, "crc32", "the algorithm 'crc32' is not one of"),
    ],
)
def test_a_checksum_has_the_digits_of_its_algorithm(
    checksum: str, named: str | None, words: str | None
) -> None:
    problem = checksums.problem_with(checksum, named)
    assert problem is None if words is None else words in (problem or "")


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "  quiet  ",
        "console=ttyS0,115200n8 ip=10.0.0.1::10.0.0.254:255.255.255.0:h1:eno1:none",
        "ignition.config.url=https://[fd00::1]:6180/a/b.ign?x=1 rd.neednet=1",
        'dyndbg="file drivers/usb/* +p"',
        'dyndbg="file drivers/usb/* -p" x="a b=c" quiet',
        'x="ipa-api-url=https://x"',
        'x="ipa-debug=1 ipa-ntp-server=10.0.0.1"',
        "memmap=4G!12G isolcpus=1-3,5 mitigations=auto,nosmt",
        "url=http://x/a%20b",
        "ipa-ntp-server=10.0.0.1,ntp.example.com ipa-debug=1",
    ],
)
def test_arguments_that_kernels_take_pass(arguments: str) -> None:
    assert kernel_arguments.problem_with(arguments) is None


@pytest.mark.parametrize(
    "arguments",
    [
        "quiet\nboot",
        "a\tb",
        "a=\x00",
        "a=ü",
        "a=$b",
        "a;b",
        "a=b&&c",
        "a|b",
        "a=`b`",
        "a=b>c",
        "a #b",
        "a=\\",
        "a='b'",
        'a="b',
        'a="b"c"d"',
        'a="b;c"',
        "--initrd=x",
        "-- single",
        "=b",
        "a={b}",
        "%default%",
        "a=%zz",
        "x=" + "a" * kernel_arguments.LONGEST,
        "ipa-api-url=https://evil",
        "IPA_INSECURE=1",
        "ipa-agent-token=x",
        "ipa-use-mdns=1",
        "boot_method=vmedia",
        'x="a ipa-api-url=https://evil.example/ ipa-insecure=1 b"',
        'x=" ipa-api-url=https://evil.example/"',
        'x="a  IPA_API_URL=https://evil.example/"',
        'x="a ipa-agent-token" quiet',
        'x="a ipa-ntp-server=-x"',
        'ipa-ntp-server="10.0.0.1 b"',
        "ipa-ntp-server=",
        "ipa-ntp-server=a_b",
        "ipa-ntp-server=-x",
    ],
)
def test_arguments_that_mean_something_else_to_somebody_do_not(arguments: str) -> None:
    problem = kernel_arguments.problem_with(arguments)
    assert problem is not None
    assert problem.endswith(".")
    assert problem.isprintable()


# What a boot loader (iPXE, GRUB, isolinux) or a shell gives a meaning.
_META = re.compile(r"[\x00-\x1f\x7f$;&|<>`\\#{}']|%(?![0-9A-Fa-f]{2})")
_SHAPES = st.builds(
    "{}{}{}".format,
    st.sampled_from(["quiet", "ip", "a_b.c-d", "ipa-ntp-server", "--x", ""]),
    st.sampled_from(["", "=", '="']),
    st.text('ab1.:/-"$; %2', max_size=8),
)


@given(st.text() | st.lists(_SHAPES).map(" ".join))
@example("a --b")
@example("a\x85b")
@example("a\u2028b")
def test_whatever_passes_as_kernel_arguments_is_words_and_nothing_else(arguments: str) -> None:
    if kernel_arguments.problem_with(arguments) is not None:
        return
    assert len(arguments.splitlines()) <= 1
    assert arguments.isascii()
    assert not _META.search(arguments)
    assert not [word for word in arguments.split() if word.startswith("-") and arguments.count('"') == 0]
    assert arguments.count('"') % 2 == 0


def seen_by_the_agent(arguments: str) -> set[str]:
    """As ironic-python-agent reads /proc/cmdline (`_read_params_from_file`): cut at every blank, quotes or not."""
    return {word.split("=", 1)[0] for word in arguments.split() if "=" in word}


_CONTRACT = ("ipa-api-url", "ipa-insecure", "ipa-agent-token", "ipa-use-mdns", "ir-pub-id", "boot_method")
_QUOTED = st.lists(
    st.builds("{}{}".format, st.sampled_from([*_CONTRACT, "a", "ip", "(", ""]), st.text('=/:a "', max_size=4))
).map(lambda words: f'x="{" ".join(words)}"')


@given(st.lists(_SHAPES | _QUOTED | st.sampled_from(_CONTRACT).map("{}=1".format)).map(" ".join))
@example('x="a ipa-api-url=https://evil.example/"')
def test_no_word_of_the_servers_gets_to_the_agent_however_it_is_quoted(arguments: str) -> None:
    if kernel_arguments.problem_with(arguments) is None:
        assert not seen_by_the_agent(arguments) & set(_CONTRACT)


@pytest.mark.parametrize("quoted", ['x="a ipa-api-url=https://evil.example/ b"', "ipa-api-url=https://evil"])
def test_a_refused_word_is_named_and_so_is_who_would_read_it(quoted: str) -> None:
    problem = kernel_arguments.problem_with(quoted)
    assert problem == (
        "ipa-api-url is set by the server that the ramdisk reports to, and by nobody else, in quotes neither: the agent in the "
        "ramdisk does not heed them. Leave it out."
    )


@given(st.text())
def test_what_is_shown_of_a_text_is_one_line_of_it(found: str) -> None:
    assert text.is_one_line(text.shown(found))
    assert len(text.shown(found)) <= text.MOST_SHOWN


DIGEST = "ab" * 32


@pytest.mark.parametrize(
    ("image", "found"),
    [
        (Image(url="http://x/y", checksum=DIGEST), []),
        (Image(url="https://x/y.iso", format="live-iso"), []),
        (Image(url="oci://x/y"), []),
        (Image(url="http://x/y", checksum="ab" * 16), [Weakness.MD5]),
        (Image(url="http://x/y", checksum="ab" * 16, checksum_type="md5"), [Weakness.MD5]),
        (Image(url="https://x/y", checksum="https://x/y.sha256"), [Weakness.CHECKSUM_URL]),
        (
            Image(url="http://x/y", checksum="http://x/y.sha256"),
            [Weakness.CHECKSUM_URL, Weakness.UNVERIFIED],
        ),
        (Image(url="http://x/y.iso", format="live-iso"), [Weakness.UNVERIFIED]),
        (Image(url="https://u:p@x/y", checksum=DIGEST), [Weakness.URL_CREDENTIALS]),
        (
            Image(url="https://x/y", checksum="https://u:p@x/y.sha256"),
            [Weakness.CHECKSUM_URL, Weakness.URL_CREDENTIALS],
        ),
        (Image(url=""), []),
        (None, []),
    ],
)
def test_what_is_weak_in_an_image_is_known(image: Image | None, found: list[Weakness]) -> None:
    assert [weak.weakness for weak in weaknesses(image)] == found
    assert all("p@" not in weak.sentence and not weak.sentence.endswith(".") for weak in weaknesses(image))


@pytest.mark.parametrize(
    ("given_hints", "field"),
    [
        (RootDeviceHints(device_name="/dev/sda"), None),
        (RootDeviceHints(device_name="/dev/disk/by-path/pci-0000:00:1f.2-ata-1.0"), None),
        (RootDeviceHints(vendor="ATA", model="Dell PERC H730 <X>", hctl="0:0:0:0"), None),
        (RootDeviceHints(device_name="/dev/disk/by-id/x"), "deviceName"),
        (RootDeviceHints(device_name="/dev/.."), "deviceName"),
        (RootDeviceHints(device_name="/dev/sd$(x)"), "deviceName"),
        (RootDeviceHints(serial_number="a\x00"), "serialNumber"),
        (RootDeviceHints(wwn="x" * 300), "wwn"),
        (RootDeviceHints(model="<or> a <or> b"), "model"),
        (RootDeviceHints(vendor="a s!= b"), "vendor"),
    ],
)
def test_hints_are_names_of_disks_and_no_expressions(given_hints: RootDeviceHints, field: str | None) -> None:
    assert [one.field for one in hints.problems_with(given_hints)] == ([field] if field else [])


@pytest.mark.parametrize(
    ("name", "passes"), [("install_coreos", True), ("", False), ("a b", False), ("../x", False)]
)
def test_a_deploy_step_is_a_word(name: str, passes: bool) -> None:
    assert (steps.problem_with(name) is None) is passes


@pytest.mark.parametrize(
    "document",
    [
        "a: &a {x: 1}\nb: {<<: [*a, *a]}\n",
        "a: &a {x: 1}\nl: &l [*a, *a]\nb: {<<: *l}\n",
        "a: &a {x: 1}\nb: {<<:\n  [*a, *a]}\n",
    ],
)
def test_lists_of_mappings_are_not_merged_because_they_multiply(document: str) -> None:
    with pytest.raises(documents.TooMuch, match="lists that are merged"):
        documents.load(document)


def test_a_mapping_is_merged_and_a_list_that_is_merely_repeated_is_not_merging() -> None:
    found = documents.load("a: &a {x: 1}\nl: &l [1, 2]\nb: {<<: *a, y: *l}\n")
    assert found == {"a": {"x": 1}, "l": [1, 2], "b": {"x": 1, "y": [1, 2]}}
