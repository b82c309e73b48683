"""Container images' documents, digests, references and architectures."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.formats import FormatError, UnsupportedFormat
from ingot.formats.oci import (
    ContainerConfig,
    Descriptor,
    Digest,
    ImageConfig,
    Index,
    Manifest,
    MediaType,
    Platform,
    RootFs,
    decode_config,
    decode_document,
    decode_index,
    digest_of,
    encode,
    go_name,
    kernel_name,
    parse_digest,
    parse_reference,
)

HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


def descriptor(media_type: str = MediaType.LAYER, content: bytes = b"x") -> Descriptor:
    return Descriptor(media_type=media_type, digest=digest_of(content), size=len(content))


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag"),
    [
        ("quay.io/coreos/payload:44", "quay.io", "coreos/payload", "44"),
        ("localhost/payload", "localhost", "payload", None),
        ("localhost:5000/a/b/c:latest", "localhost:5000", "a/b/c", "latest"),
        ("[::1]:5000/payload:1", "[::1]:5000", "payload", "1"),
        ("10.0.0.1/a__b/c-d.e:v1.2_3-4", "10.0.0.1", "a__b/c-d.e", "v1.2_3-4"),
    ],
)
def test_a_reference_is_taken_apart(text: str, registry: str, repository: str, tag: str | None) -> None:
    found = parse_reference(text)
    assert (found.registry, found.repository, found.tag, found.digest) == (registry, repository, tag, None)
    assert str(found) == text
    at = parse_reference(f"{text}@sha256:{HEX}")
    assert at.digest == at.wanted == f"sha256:{HEX}"
    assert str(at) == f"{text}@sha256:{HEX}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "payload",
        "coreos/payload:44",
        "quay.io",
        "quay.io/",
        "quay.io/Upper",
        "quay.io/a//b",
        "quay.io/../b",
        "quay.io/a:",
        "quay.io/a:.b",
        "quay.io/a:b c",
        "quay.io/a?x=1",
        "quay.io/a#x",
        "quay.io/a%2fb",
        "user@quay.io/a",
        "https://quay.io/a",
        "quay.io:0/a",
        "quay.io:65536/a",
        "quay.io/a@sha256:12",
        f"quay.io/a@sha256:{HEX.upper()}",
        "quay.io/" + "a" * 300,
        "quay.io/a\n",
        "quay.io/ä",
    ],
)
def test_what_could_mean_something_else_in_a_url_is_no_reference(text: str) -> None:
    with pytest.raises(FormatError):
        parse_reference(text)


@given(st.text())
def test_any_text_is_a_reference_that_is_written_as_it_was_read_or_none(text: str) -> None:
    try:
        found = parse_reference(text)
    except FormatError:
        return
    assert str(found) == text


def test_only_sha256_is_a_digest() -> None:
    assert parse_digest(f"sha256:{HEX}") == f"sha256:{HEX}"
    with pytest.raises(UnsupportedFormat, match="another kind than sha256"):
        parse_digest("sha512:" + HEX * 2)
    for wrong in ("", HEX, f"sha256:{HEX}0", f"sha256:../{HEX}", f"sha256:{HEX}\n"):
        with pytest.raises(FormatError):
            parse_digest(wrong)


def test_architectures_have_two_names() -> None:
    assert [go_name(name) for name in ("x86_64", "aarch64", "ppc64le", "s390x")] == [
        "amd64",
        "arm64",
        "ppc64le",
        "s390x",
    ]
    assert kernel_name("amd64") == "x86_64"
    with pytest.raises(UnsupportedFormat, match="riscv64"):
        kernel_name("riscv64")


def test_a_document_is_written_the_same_way_each_time_and_read_again() -> None:
    config = ImageConfig(
        architecture="amd64",
        config=ContainerConfig(labels={"b": "2", "a": "1"}, env=["PATH=/bin"], working_dir="/"),
        rootfs=RootFs(diff_ids=(digest_of(b"layer"),)),
    )
    other_order = ContainerConfig(labels={"a": "1", "b": "2"}, env=["PATH=/bin"], working_dir="/")
    same = ImageConfig(architecture="amd64", config=other_order, rootfs=config.rootfs)
    assert encode(config) == encode(same)
    assert json.loads(encode(config)) == {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], "WorkingDir": "/", "Labels": {"a": "1", "b": "2"}},
        "rootfs": {"type": "layers", "diff_ids": [digest_of(b"layer")]},
    }
    assert decode_config(encode(config)) == config
    manifest = Manifest(config=descriptor(MediaType.CONFIG), layers=(descriptor(), descriptor(content=b"y")))
    assert decode_document(encode(manifest), MediaType.MANIFEST) == manifest
    on = Descriptor(
        media_type=MediaType.MANIFEST, digest=digest_of(b""), size=0, platform=Platform(architecture="arm64")
    )
    index = Index(manifests=(on,))
    assert decode_index(encode(index)) == index
    assert json.loads(encode(index))["schemaVersion"] == 2
    assert json.loads(encode(index))["manifests"][0]["platform"] == {"architecture": "arm64", "os": "linux"}


def test_what_others_write_into_documents_does_not_disturb() -> None:
    written = json.loads(encode(Manifest(config=descriptor(MediaType.CONFIG), layers=())))
    written |= {"subject": {"some": "thing"}, "artifactType": "x", "mediaType": MediaType.DOCKER_MANIFEST}
    assert isinstance(decode_document(json.dumps(written).encode(), MediaType.DOCKER_MANIFEST), Manifest)


def test_the_configuration_of_an_image_that_docker_built_is_read() -> None:
    written = {
        "architecture": "arm64",
        "variant": "v8",
        "os": "linux",
        "created": "2026-01-01T00:00:00.123456789Z",
        "config": {
            "User": None,
            "ExposedPorts": {"80/tcp": {}},
            "Env": ["PATH=/usr/bin"],
            "Cmd": ["python3"],
            "ArgsEscaped": True,
            "Volumes": None,
            "OnBuild": None,
            "Labels": None,
            "Healthcheck": {"Test": ["NONE"]},
        },
        "history": [{"created_by": "ADD rootfs", "comment": "buildkit"}, {"empty_layer": True}],
        "rootfs": {"type": "layers", "diff_ids": [digest_of(b"x")]},
    }
    found = decode_config(json.dumps(written).encode())
    assert (found.architecture, found.config and found.config.cmd) == ("arm64", ["python3"])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"schemaVersion":1,"manifests":[]}',
        b'{"schemaVersion":2,"manifests":[{"mediaType":"x","digest":"sha256:../../etc","size":1}]}',
        b'{"schemaVersion":2,"manifests":[{"mediaType":"x","digest":"sha256:'
        + HEX.encode()
        + b'","size":-1}]}',
        b"\xff\xfe",
        b'{"schemaVersion":2,"mediaType":"\xff","manifests":[]}',
        b'{"schemaVersion":2,"manifests":[],"other":' + b"[" * 100_000,
    ],
)
def test_a_document_that_is_none_ends_in_a_sentence(content: bytes) -> None:
    with pytest.raises(FormatError):
        decode_index(content)


def test_an_unknown_kind_of_document_is_refused_by_its_name() -> None:
    with pytest.raises(UnsupportedFormat, match=r"vnd\.example"):
        decode_document(b"{}", "application/vnd.example")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_document_or_a_format_error(content: bytes) -> None:
    for decode in (decode_index, decode_config, lambda bytes_: decode_document(bytes_, MediaType.MANIFEST)):
        try:
            decode(content)
        except FormatError:
            continue


def test_a_digest_is_that_of_the_bytes() -> None:
    assert digest_of(b"test") == Digest(f"sha256:{HEX}")
