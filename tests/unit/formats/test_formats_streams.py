"""Stream metadata in the shapes of Fedora, RHEL and CentOS Stream CoreOS; the documents are written here."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.formats import FormatError, UnsupportedFormat
from ingot.formats.streams import parse_stream

DIGEST = "0123456789abcdef" * 4


def part(name: str, *, signed: bool = False, **more: str) -> dict[str, str]:
    location = f"https://images.example/prod/{name}"
    return {
        "location": location,
        "sha256": DIGEST,
        **({"signature": location + ".sig"} if signed else {}),
        **more,
    }


def fedora(**changes: Any) -> dict[str, Any]:
    metal = {
        "release": "44.20260707.3.1",
        "formats": {
            "iso": {"disk": part("fedora-coreos-44.20260707.3.1-live-iso.x86_64.iso", signed=True)},
            "pxe": {
                "initramfs": part("fedora-coreos-44.20260707.3.1-live-initramfs.x86_64.img", signed=True),
                "kernel": part("fedora-coreos-44.20260707.3.1-live-kernel.x86_64", signed=True),
                "rootfs": part("fedora-coreos-44.20260707.3.1-live-rootfs.x86_64.img", signed=True),
            },
            "raw.xz": {
                "disk": part(
                    "fedora-coreos-metal.x86_64.raw.xz", signed=True, **{"uncompressed-sha256": "AB" * 32}
                )
            },
        },
    }
    aws = {
        "release": "44.20260707.3.1",
        "formats": {"vmdk.xz": {"disk": {"location": "https://x.example/a"}}},
    }
    return {
        "stream": "stable",
        "metadata": {"last-modified": "2026-07-20T10:00:00Z", "generator": "fedora-coreos-stream-generator"},
        "architectures": {
            "x86_64": {"artifacts": {"metal": metal, "aws": aws}, "images": {"aws": {"regions": {}}}},
            "aarch64": {"artifacts": {"metal": {**metal, "formats": {"iso": metal["formats"]["iso"]}}}},
        },
        **changes,
    }


def rhel(stream: str = "rhel-9.6") -> dict[str, Any]:
    """No signatures anywhere, gzip, and something beside the artifacts."""
    formats = {
        "iso": {"disk": part("rhcos-9.6.20250701-0-live-iso.s390x.iso")},
        "raw.gz": {
            "disk": part("rhcos-9.6.20250701-0-metal.s390x.raw.gz", **{"uncompressed-sha256": DIGEST})
        },
    }
    s390x = {
        "artifacts": {"metal": {"release": "9.6.20250701-0", "formats": formats}},
        "images": {},
        "rhel-coreos-extensions": {"azure-disk": {"release": "x", "url": "https://x.example/y"}},
    }
    return {
        "stream": stream,
        "metadata": {"last-modified": "2025-07-02T00:00:00Z"},
        "architectures": {"s390x": s390x},
    }


def read(document: Any) -> Any:
    return parse_stream(json.dumps(document).encode())


def test_an_iso_image_of_fedora_has_a_signature() -> None:
    stream = read(fedora())
    found = stream.artifact(architecture="x86_64", format="iso")
    assert (stream.name, stream.last_modified) == ("stable", "2026-07-20T10:00:00Z")
    assert found.location.endswith("/fedora-coreos-44.20260707.3.1-live-iso.x86_64.iso")
    assert found.file_name == "fedora-coreos-44.20260707.3.1-live-iso.x86_64.iso"
    assert found.signature == found.location + ".sig"
    assert (found.sha256, found.uncompressed_sha256) == (DIGEST, None)
    assert (found.stream, found.release, found.platform, found.part) == (
        "stable",
        "44.20260707.3.1",
        "metal",
        "disk",
    )


def test_what_is_booted_over_the_network_has_three_parts() -> None:
    found = read(fedora()).artifacts(architecture="x86_64", format="pxe")
    assert [artifact.part for artifact in found] == ["initramfs", "kernel", "rootfs"]


def test_a_compressed_disk_also_has_the_digest_of_what_is_in_it() -> None:
    assert read(fedora()).artifact(architecture="x86_64", format="raw.xz").uncompressed_sha256 == "ab" * 32


@pytest.mark.parametrize("name", ["rhel-9.6", "c10s"])
def test_streams_of_rhel_and_centos_are_read_without_signatures(name: str) -> None:
    stream = read(rhel(name))
    assert stream.architectures == ("s390x",)
    assert stream.platforms("s390x") == ("metal",)
    assert stream.formats("s390x") == ("iso", "raw.gz")
    assert stream.release("s390x") == "9.6.20250701-0"
    assert stream.artifact(architecture="s390x", format="iso").signature is None
    assert stream.name == name


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"architecture": "riscv64", "format": "iso"}, "architecture riscv64; it has aarch64, x86_64"),
        (
            {"architecture": "aarch64", "format": "pxe"},
            "no format pxe of the platform metal for aarch64; it has iso",
        ),
        (
            {"architecture": "x86_64", "format": "iso", "platform": "qemu"},
            "no platform qemu for x86_64; it has aws, metal",
        ),
        ({"architecture": "x86_64", "format": "pxe", "part": "disk"}, "it has initramfs, kernel, rootfs"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(wanted: dict[str, str], sentence: str) -> None:
    with pytest.raises(UnsupportedFormat, match="stream stable has no") as caught:
        read(fedora()).artifact(**wanted)
    assert sentence in str(caught.value)


def test_an_artifact_without_a_digest_is_refused_and_the_others_are_not() -> None:
    stream = read(fedora())
    with pytest.raises(FormatError, match=r"stable, x86_64, aws, vmdk\.xz, disk: the metadata has no sha256"):
        stream.artifact(architecture="x86_64", platform="aws", format="vmdk.xz")
    assert stream.artifact(architecture="x86_64", format="iso")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sha256": "abc"}, "not 64 hexadecimal digits"),
        ({"sha256": "g" * 64}, "not 64 hexadecimal digits"),
        ({"uncompressed-sha256": ""}, "uncompressed-sha256 is ''"),
        ({"location": "images/x.iso"}, "not an http or https URL"),
        ({"location": "file:///etc/passwd"}, "not an http or https URL"),
        ({"location": "https:///x.iso"}, "not an http or https URL"),
        ({"location": "https://[::1/x.iso"}, "is no URL"),
        ({"location": "https://x.example:port/x.iso"}, "is no URL"),
        ({"location": "https://x.example/a b.iso"}, "has blanks"),
        ({"location": "https://x.example/a\nb.iso"}, "has blanks"),
        ({"location": "https://x.example/"}, "does not end in the name of a file"),
        ({"location": "https://x.example/.."}, "does not end in the name of a file"),
        ({"location": "https://x.example/..%2Fpasswd"}, "does not end in the name of a file"),
        ({"location": "https://x.example/.bashrc"}, "does not end in the name of a file"),
        ({"location": "https://x.example/%00"}, "does not end in the name of a file"),
        ({"location": "https://x.example/" + "a" * 201}, "does not end in the name of a file"),
        ({"signature": "x.sig"}, "not an http or https URL"),
        ({"location": None}, "has no location"),
    ],
)
def test_what_cannot_be_fetched_or_kept_is_refused(change: dict[str, Any], sentence: str) -> None:
    document = fedora()
    iso = document["architectures"]["x86_64"]["artifacts"]["metal"]["formats"]["iso"]
    iso["disk"] = {**iso["disk"], **change}
    with pytest.raises(FormatError, match="stream stable, x86_64, metal, iso, disk: ") as caught:
        read(document).artifact(architecture="x86_64", format="iso")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "no stream metadata"),
        (b"<html>", "no stream metadata"),
        (b"[]", "no stream metadata"),
        (b"\xff", "no stream metadata"),
        (b"[" * 100_000, "no stream metadata"),
        (b"{}", "it has no key architectures"),
        (b'{"architectures": {}}', "it has no key stream"),
        (b'{"release": "44.1", "architectures": {}}', "the metadata of release 44.1, not of a stream"),
        (b'{"stream": "s", "architectures": {"x86_64": {"artifacts": []}}}', "no stream metadata"),
        (b" " * ((16 << 20) + 1), "at most"),
    ],
)
def test_another_document_is_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        parse_stream(content)


def test_a_stream_with_nothing_in_it_says_so() -> None:
    with pytest.raises(UnsupportedFormat, match="nothing for the architecture x86_64; it has none"):
        read({"stream": "s", "architectures": {}}).formats("x86_64")


ANY = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(
                [
                    "stream",
                    "architectures",
                    "x86_64",
                    "artifacts",
                    "metal",
                    "formats",
                    "iso",
                    "disk",
                    "sha256",
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
)


@given(ANY)
def test_any_document_is_read_or_refused(document: Any) -> None:
    with contextlib.suppress(FormatError):
        read(document).artifact(architecture="x86_64", format="iso")
