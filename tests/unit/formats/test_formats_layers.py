"""The tar archives of layers, with Python's own tarfile as the other reader and writer."""

from __future__ import annotations

import io
import tarfile
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.formats import FormatError, UnsupportedFormat
from ingot.formats.oci import END, LayerEntry, LayerKind, filling, head, read_entries

names = st.lists(
    st.text(
        st.characters(blacklist_characters="/\0", blacklist_categories=("Cs",)), min_size=1, max_size=120
    ).filter(lambda part: part not in (".", "..")),
    min_size=1,
    max_size=6,
).map("/".join)


def archive(entries: list[tuple[LayerEntry, bytes]], content_on: int = 512) -> bytes:
    made = b""
    for entry, content in entries:
        made += head(entry, at=len(made), content_on=content_on)
        assert len(made) % content_on == 0
        made += content + filling(len(content))
    return made + END


@given(
    files=st.lists(st.tuples(names, st.binary(max_size=2000)), max_size=5),
    content_on=st.sampled_from([512, 1024, 4096, 65536]),
    modified=st.integers(0, 2**32),
)
def test_what_is_written_is_what_tarfile_and_we_read(
    files: list[tuple[str, bytes]], content_on: int, modified: int
) -> None:
    entries = [(LayerEntry(name, size=len(data), modified=modified), data) for name, data in files]
    made = archive(entries, content_on)
    with tarfile.open(fileobj=io.BytesIO(made), mode="r:") as theirs:
        members = theirs.getmembers()
        assert [(member.name, member.size, member.mtime) for member in members] == [
            (entry.path, entry.size, modified) for entry, _ in entries
        ]
        assert [member.offset_data % content_on for member in members] == [0] * len(members)
    ours = list(read_entries(io.BytesIO(made)))
    assert [(entry.path, made[entry.offset : entry.offset + entry.size]) for entry in ours] == files


@given(
    files=st.lists(st.tuples(names, st.binary(max_size=2000)), max_size=5),
    format=st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
)
def test_what_tarfile_writes_is_read(files: list[tuple[str, bytes]], format: int) -> None:
    buffer = io.BytesIO()
    written: list[tuple[str, bytes]] = []
    with tarfile.open(fileobj=buffer, mode="w", format=format) as theirs:
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            try:
                theirs.addfile(member, io.BytesIO(data))
            except (ValueError, UnicodeEncodeError):
                continue  # the oldest format has no room for the name
            written.append((name, data))
    made = buffer.getvalue()
    found = [(entry.path, made[entry.offset : entry.offset + entry.size]) for entry in read_entries(buffer)]
    assert found == written


def test_folders_and_links_are_what_they_are() -> None:
    long = "x" * 150
    made = archive(
        [
            (LayerEntry("usr", LayerKind.DIRECTORY, mode=0o755), b""),
            (LayerEntry("usr/a", size=1, mode=0o4755), b"a"),
            (LayerEntry("usr/b", LayerKind.HARD_LINK, target="usr/a"), b""),
            (LayerEntry("usr/c", LayerKind.SYMLINK, target=long, mode=0o777), b""),
        ]
    )
    with tarfile.open(fileobj=io.BytesIO(made)) as theirs:
        folder, file, hard, soft = theirs.getmembers()
        assert folder.isdir()
        assert (folder.name, folder.mode) == ("usr", 0o755)
        assert file.isfile()
        assert file.mode == 0o4755
        assert hard.islnk()
        assert hard.linkname == "usr/a"
        assert soft.issym()
        assert soft.linkname == long
    ours = list(read_entries(io.BytesIO(made)))
    assert [(entry.kind, entry.target) for entry in ours] == [
        (LayerKind.DIRECTORY, ""),
        (LayerKind.FILE, ""),
        (LayerKind.HARD_LINK, "usr/a"),
        (LayerKind.SYMLINK, long),
    ]


@pytest.mark.parametrize("size", [(8 << 30) - 1, 8 << 30, 50 << 30])
def test_a_file_of_many_gigabytes_has_its_size(size: int) -> None:
    begin = head(LayerEntry("large.iso", size=size))
    member = tarfile.TarFile(fileobj=io.BytesIO(begin + END)).next()
    assert member is not None
    assert member.size == size


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../up", "a/../b", "a//b", "a/.", "a\0b"])
def test_a_path_that_leads_elsewhere_is_not_written(path: str) -> None:
    with pytest.raises(FormatError):
        head(LayerEntry(path))


def test_an_archive_that_is_cut_short_is_told() -> None:
    made = archive([(LayerEntry("a", size=3), b"abc")])
    for length in (1, 511, 513, len(made) - 1025, len(made) - 1024):
        with pytest.raises(FormatError, match=r"cut short|ends in the middle"):
            list(read_entries(io.BytesIO(made[:length])))


def test_a_compressed_layer_is_told_from_a_damaged_one_where_it_can_be() -> None:
    with pytest.raises(FormatError, match="compressed"):
        list(read_entries(io.BytesIO(b"\x1f\x8b" + bytes(range(256)) * 10)))


def test_a_file_with_holes_is_not_served() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as theirs:
        member = tarfile.TarInfo("sparse")
        member.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
        theirs.addfile(member)
    with pytest.raises(UnsupportedFormat, match="holes"):
        list(read_entries(buffer))


@given(st.binary(max_size=3000), st.integers(0, 2047), st.integers(0, 255))
def test_no_archive_leads_to_anything_but_entries_or_a_format_error(noise: bytes, at: int, byte: int) -> None:
    made = bytearray(archive([(LayerEntry("x" * 120, size=3), b"abc")]))
    made[at % len(made)] = byte
    for content in (noise, bytes(made), bytes(made[:1024]) + noise):
        try:
            for entry in read_entries(io.BytesIO(content)):
                assert entry.offset + entry.size <= len(content)
        except FormatError:
            continue


def test_a_name_that_is_not_utf8_is_kept_as_it_is() -> None:
    name = b"etc/caf\xe9".decode("utf-8", "surrogateescape")
    made = archive([(LayerEntry(name), b""), (LayerEntry(f"{'x' * 100}/{name}"), b"")])
    assert [entry.path for entry in read_entries(io.BytesIO(made))] == [name, f"{'x' * 100}/{name}"]
    with tarfile.open(fileobj=io.BytesIO(made), mode="r:") as theirs:
        assert theirs.getnames()[0] == name


def test_of_extended_headers_only_what_counts_is_remembered() -> None:
    """A hostile archive: headers for all that follows, full of the smallest records that there are."""
    full = b"".join(b"11 %05x=x\n" % number for number in range(10_000))
    frame = tarfile.TarInfo("x")
    frame.type, frame.size = tarfile.XGLTYPE, len(full)
    made = (
        frame.tobuf(tarfile.USTAR_FORMAT) + full + filling(len(full)) + archive([(LayerEntry("file"), b"")])
    )
    tracemalloc.start()
    try:
        assert [entry.path for entry in read_entries(io.BytesIO(made))] == ["file"]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * len(full)
