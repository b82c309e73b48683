"""Our image commands beside the real coreos-installer: each reads what the other wrote, and what both write is the same.

Kernel arguments, resets, extracted files and minimal images are the same to the byte; embedded archives are when they are
decoded. The images are ours, of every generation and architecture, and the small ones that come with coreos-installer's own
tests, whose scripts are run with our command in its place.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import lzma
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingot.cli.main import main
from ingot.formats.coreos.minimal import make_recipe
from ingot.formats.initrd import Members, pack, read_members
from ingot.formats.iso9660 import Iso
from live_images import BY_NAME, GENERATIONS, NEWEST, live_image, live_initrd, minimal_image, noise

TOOL = Path(__file__).parents[2] / "tools" / "coreos-installer" / "build"
THEIRS = Path(subprocess.run([TOOL, "--where"], capture_output=True, text=True, check=True).stdout.strip())
UPSTREAM = THEIRS.parents[1] / "upstream"
pytestmark = pytest.mark.skipif(
    not THEIRS.exists(), reason="coreos-installer is not built; `make test-coreos` builds it"
)

CONFIG = b'{"ignition": {"version": "3.3.0"}, "storage": {"files": [{"path": "/a"}]}}\n'
FIXTURES = sorted(path.name.removesuffix(".iso.xz") for path in UPSTREAM.glob("fixtures/iso/embed-*.iso.xz"))
NAMES = [*BY_NAME, *FIXTURES]
FEATURED = [name for name in NAMES if not any(year in name for year in ("2020-09", "2021-01", "2021-09"))]
ARGUED = [name for name in NAMES if "2020-09" not in name and not ("2023-03" in name and "s390x" in name)]
MINIMAL = [name for name in FEATURED if name in ARGUED]


def theirs(*arguments: str | Path, given: bytes = b"", ok: bool = True) -> subprocess.CompletedProcess[bytes]:
    ended = subprocess.run([THEIRS, *arguments], input=given, capture_output=True, check=False)
    assert (ended.returncode == 0) == ok, ended.stderr.decode()
    return ended


def ours(*arguments: str | Path, given: bytes = b"", ok: bool = True) -> subprocess.CompletedProcess[bytes]:
    words = [str(argument) for argument in arguments]
    ended = CliRunner().invoke(main, words, input=given)
    assert (ended.exit_code == 0) == ok, ended.output
    return subprocess.CompletedProcess(words, ended.exit_code, ended.stdout_bytes, ended.stderr_bytes)


BOTH = (ours, theirs)


@cache
def original(name: str) -> bytes:
    if name in BY_NAME:
        return live_image(BY_NAME[name])
    return lzma.decompress((UPSTREAM / "fixtures" / "iso" / f"{name}.iso.xz").read_bytes())


def saved(folder: Path, name: str) -> Path:
    path = folder / "image.iso"
    path.write_bytes(original(name))
    return path


@pytest.mark.parametrize("name", NAMES)
def test_each_shows_the_config_that_the_other_embedded_and_removes_it(name: str, tmp_path: Path) -> None:
    image = saved(tmp_path, name)
    for one, other in (BOTH, BOTH[::-1]):
        one("iso", "ignition", "embed", image, given=CONFIG)
        assert other("iso", "ignition", "show", image).stdout == CONFIG
        assert (
            b"already has an embedded"
            in other("iso", "ignition", "embed", image, given=b"x", ok=False).stderr
        )
        other("iso", "ignition", "embed", "-f", image, given=b"second")
        assert one("iso", "ignition", "show", image).stdout == b"second"
        other("iso", "ignition", "remove", image)
        assert image.read_bytes() == original(name)


@pytest.mark.parametrize("name", FEATURED)
def test_each_extracts_the_keyfiles_that_the_other_embedded_beside_a_config(
    name: str, tmp_path: Path
) -> None:
    image = saved(tmp_path, name)
    for key in ("a", "b"):
        (tmp_path / f"{key}.nmconnection").write_text(f"[connection]\nid={key}\n")
    keyfiles = ["-k", tmp_path / "b.nmconnection", "-k", tmp_path / "a.nmconnection"]
    for one, other in (BOTH, BOTH[::-1]):
        one("iso", "network", "embed", *keyfiles, image)
        other("iso", "ignition", "embed", image, given=CONFIG)
        assert (
            one("iso", "network", "extract", image).stdout == other("iso", "network", "extract", image).stdout
        )
        assert one("iso", "ignition", "show", image).stdout == CONFIG
        other("iso", "network", "remove", image)
        assert one("iso", "ignition", "show", image).stdout == CONFIG
        one("iso", "reset", image)
        assert image.read_bytes() == original(name)


CHANGES: list[list[str]] = [
    ["-a", "foo", "-a", "bar=baz"],
    ["-d", "ignition.firstboot", "-a", "ignition.firstboot"],
    ["-r", "ignition.platform.id=metal=qemu", "-a", "console=ttyS0,115200n8"],
    ["-d", "not there", "-r", "ignition.platform.id=qemu=metal"],
    ["-a", " blanks around ", "-a", "é"],
]


@pytest.mark.parametrize("name", ARGUED)
def test_kernel_arguments_are_the_same_to_the_byte_wherever_they_go(name: str, tmp_path: Path) -> None:
    image = saved(tmp_path, name)
    for number, options in enumerate(CHANGES):
        streamed = [each("iso", "kargs", "modify", *options, "-o", "-", image).stdout for each in BOTH]
        assert streamed[0] == streamed[1] != b""
        for each in BOTH:
            output = tmp_path / f"{each.__name__}-{number}.iso"
            each("iso", "kargs", "modify", *options, "-o", output, image)
            assert output.read_bytes() == streamed[0]
        shown = [each("iso", "kargs", "show", output).stdout for each in BOTH]
        assert shown[0] == shown[1]
        restored = [each("iso", "kargs", "reset", "-o", "-", output).stdout for each in BOTH]
        assert restored[0] == restored[1] == original(name)


WORDS = st.text("ab=. #é", min_size=1, max_size=8)


@given(
    st.lists(WORDS, max_size=4),
    st.lists(st.one_of(WORDS, st.sampled_from(["a", "b=a", "mitigations=auto,nosmt"])), max_size=3),
    st.lists(st.one_of(WORDS, st.sampled_from(["a=b=c", "ignition.platform.id=metal=x"])), max_size=2),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_change_of_arguments_is_the_same_or_refused_by_both(
    tmp_path: Path, append: list[str], delete: list[str], replace: list[str]
) -> None:
    image = tmp_path / "any.iso"
    if not image.exists():
        image.write_bytes(original(NEWEST.name))
    options = [f"--append={word}" for word in append]
    options += [f"--delete={word}" for word in delete] + [f"--replace={word}" for word in replace]
    words = ["iso", "kargs", "modify", *options, "-o", "-", str(image)]
    expected = subprocess.run([THEIRS, *words], capture_output=True, check=False)
    found = CliRunner().invoke(main, words)
    assert (found.exit_code == 0) == (expected.returncode == 0), found.output
    if expected.returncode == 0:
        assert found.stdout_bytes == expected.stdout


@pytest.mark.parametrize("name", ARGUED)
def test_the_longest_argument_is_the_same_for_both(name: str, tmp_path: Path) -> None:
    image = saved(tmp_path, name)
    areas = json.loads(theirs("dev", "show", "iso", "--kargs", image).stdout)
    longest = "x" * (areas["length"] - len(areas["default"]) - 2)
    made = [each("iso", "kargs", "modify", "-a", longest, "-o", "-", image).stdout for each in BOTH]
    assert made[0] == made[1]
    for each in BOTH:
        ended = each("iso", "kargs", "modify", "-a", longest + "x", "-o", "-", image, ok=False)
        assert b"kargs too large for area" in ended.stderr
        assert ended.returncode == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_reset_is_the_same_for_both(name: str, tmp_path: Path) -> None:
    image = saved(tmp_path, name)
    ours("iso", "ignition", "embed", image, given=CONFIG)
    if name in ARGUED:
        theirs("iso", "kargs", "modify", "-a", "x", image)
    assert (
        ours("iso", "reset", "-o", "-", image).stdout
        == theirs("iso", "reset", "-o", "-", image).stdout
        == original(name)
    )


@pytest.mark.parametrize("name", BY_NAME)
def test_extracted_files_and_their_names_are_the_same(name: str, tmp_path: Path) -> None:
    image = saved(tmp_path, name)
    printed = [
        each("iso", "extract", "pxe", "-o", tmp_path / each.__name__, image).stdout.decode() for each in BOTH
    ]
    assert printed[0].replace("/ours/", "/theirs/") == printed[1]
    for line in printed[0].splitlines():
        assert Path(line).read_bytes() == Path(line.replace("/ours/", "/theirs/")).read_bytes()
    refusals = [
        each("iso", "extract", "pxe", "-o", tmp_path / each.__name__, image, ok=False) for each in BOTH
    ]
    assert all(b"File exists" in refusal.stderr for refusal in refusals)


@pytest.mark.parametrize("name", MINIMAL)
def test_minimal_images_are_the_same_to_the_byte(name: str, tmp_path: Path) -> None:
    image = saved(tmp_path, name)
    for number, options in enumerate(([], ["--rootfs-url", "https://images.example/rootfs.img?x=é"])):
        made = [tmp_path / f"{each.__name__}-{number}.iso" for each in BOTH]
        for each, path in zip(BOTH, made, strict=True):
            each("iso", "extract", "minimal-iso", *options, image, path)
        assert made[0].read_bytes() == made[1].read_bytes()
        assert ours("iso", "extract", "minimal-iso", *options, image).stdout == made[1].read_bytes()


def test_each_follows_the_recipe_that_the_other_made(tmp_path: Path) -> None:
    image, minimal = saved(tmp_path, NEWEST.name), tmp_path / "minimal.iso"
    minimal.write_bytes(minimal_image(NEWEST))
    from_our_recipe = theirs("iso", "extract", "minimal-iso", image).stdout
    theirs("pack", "minimal-iso", image, minimal)
    assert image.read_bytes() != original(NEWEST.name)  # their recipe names its own maker
    assert ours("iso", "extract", "minimal-iso", image).stdout == from_our_recipe
    full = Iso(io.BytesIO(image.read_bytes()), plain_names=True)
    recipe = make_recipe(full, Iso(io.BytesIO(minimal.read_bytes()), plain_names=True), maker="0.27.0")
    assert full.read("COREOS/MINISO.DAT").startswith(recipe[:60])


@pytest.mark.parametrize("name", [*NAMES, "synthetic"])
@pytest.mark.parametrize("options", [[], ["--ignition"], ["--kargs"]])
def test_what_is_shown_of_an_image_is_the_same_to_the_byte(
    name: str, options: list[str], tmp_path: Path
) -> None:
    image = saved(tmp_path, name)
    fine = name != "synthetic" or not options
    shown = [each("dev", "show", "iso", *options, image, ok=fine) for each in BOTH]
    assert shown[0].stdout == shown[1].stdout
    assert shown[0].returncode == shown[1].returncode


@pytest.mark.skipif(shutil.which("xorriso") is None, reason="xorriso is not installed; it makes the image")
def test_what_is_shown_of_a_bootable_image_is_the_same(tmp_path: Path) -> None:
    files = tmp_path / "files"
    (files / "isolinux" / "deep" / "er").mkdir(parents=True)
    (files / "isolinux" / "isolinux.bin").write_bytes(noise("boot", 4096))
    (files / "a name longer than eight.three").write_text("x")
    command = ["xorriso", "-as", "mkisofs", "-quiet", "-R", "-J", "-V", "fedora-coreos-40", "-o", "boot.iso"]
    command += [
        "-b",
        "isolinux/isolinux.bin",
        "-c",
        "isolinux/boot.cat",
        "-no-emul-boot",
        "-boot-load-size",
        "4",
        "files",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    shown = [each("dev", "show", "iso", tmp_path / "boot.iso").stdout for each in BOTH]
    assert shown[0] == shown[1]
    assert b"EL TORITO" in shown[0]


def test_where_a_file_lies_on_its_device_is_told_alike(tmp_path: Path) -> None:
    """More stretches than one question to the kernel brings."""
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        for number in range(90):
            file.seek(number << 18)
            file.write(bytes([number]) * 4096)
        file.flush()
        os.fsync(file.fileno())
    expected = subprocess.run([THEIRS, "dev", "show", "fiemap", path], capture_output=True, check=False)
    if b"EOPNOTSUPP" in expected.stderr:
        pytest.skip("the file system of the temporary folder does not tell")
    assert len(json.loads(expected.stdout)["extents"]) > 32
    assert ours("dev", "show", "fiemap", path).stdout == expected.stdout
    for missing in (tmp_path / "nothing", Path("/dev/null")):
        assert [each("dev", "show", "fiemap", missing, ok=False).returncode for each in BOTH] == [1, 1]


def test_initial_ram_disks_are_read_by_each(tmp_path: Path) -> None:
    (tmp_path / "a.nmconnection").write_text("id=a\n")
    for one, other in (BOTH, BOTH[::-1]):
        wrapped = one("pxe", "ignition", "wrap", given=CONFIG).stdout
        assert other("pxe", "ignition", "unwrap", given=wrapped).stdout == CONFIG
        wrapped += one("pxe", "network", "wrap", "-k", tmp_path / "a.nmconnection").stdout
        assert (
            other("pxe", "network", "unwrap", given=wrapped).stdout
            == one("pxe", "network", "unwrap", given=wrapped).stdout
        )
        shown = [each("dev", "show", "initrd", "-", given=wrapped).stdout for each in BOTH]
        assert shown[0] == shown[1] == b"config.ign\netc/coreos-firstboot-network/a.nmconnection\n"


MEMBERS = st.dictionaries(
    st.lists(
        st.text("abz-.", min_size=1, max_size=3).filter(lambda part: part.strip(".")), min_size=1, max_size=3
    ).map("/".join),
    st.binary(max_size=60),
    min_size=1,
    max_size=5,
)


@given(MEMBERS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_archive_of_ours_is_listed_by_theirs(members: Members) -> None:
    for packed in (pack(members), pack(members, limit=0)):
        listed = theirs("dev", "show", "initrd", "-", given=packed).stdout.decode().splitlines()
        assert listed == sorted(members)


def plain(config: Any) -> Any:
    """A config without what says nothing, with contents decoded and the words of units left out."""
    if isinstance(config, list):
        return [plain(item) for item in config]
    if not isinstance(config, dict):
        return config
    if config.get("compression") == "gzip":
        content = gzip.decompress(base64.b64decode(config["source"].removeprefix("data:;base64,")))
        return _decoded(content)
    known = {key: plain(value) for key, value in config.items() if value is not None}
    if "enabled" in known and "contents" in known:
        lines = known["contents"].splitlines()
        known["contents"] = sorted(line for line in lines if "=" in line and not line.startswith(("D", "#")))
    return known


def _decoded(content: bytes) -> Any:
    try:
        return plain(json.loads(content))
    except ValueError:
        pass
    try:
        return yaml.safe_load(content)
    except yaml.YAMLError:
        return content


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    source = UPSTREAM / "fixtures" / "customize"
    return Path(shutil.copytree(source, tmp_path / "inputs"))


CUSTOMIZATIONS: list[list[str]] = [
    ["--live-ignition", "live.ign"],
    ["--live-ignition", "live.ign", "--live-ignition", "live-2.ign", "--ignition-ca", "cert.pem"],
    ["--dest-ignition", "dest.ign"],
    ["--dest-ignition", "dest.ign", "--ignition-ca", "cert.pem"],
    ["--dest-ignition", "dest.ign", "--dest-ignition", "dest-2.ign", "--dest-device", "/dev/vda"],
    [
        "--dest-karg-append",
        "a",
        "--dest-karg-delete",
        "b",
        "--dest-console",
        "ttyS0",
        "--dest-console",
        "tty0",
    ],
    ["--pre-install", "pre-install-1", "--pre-install", "pre-install-2", "--post-install", "post-install-1"],
    ["--network-keyfile", "installer-test.nmconnection"],
    ["--network-keyfile", "installer-test.nmconnection", "--dest-device", "/dev/vda"],
    ["--installer-config", "install-1.conf", "--installer-config", "install-2.conf"],
    ["--network-keyfile", "installer-test.nmconnection", "--installer-config", "install-1.conf"],
    ["--network-nmstate", "installer-test-nmstate-yaml.yaml"],
    ["--network-nmstate", "installer-test-nmstate-json.json", "--dest-device", "/dev/vda"],
    [
        *("--network-keyfile", "installer-test.nmconnection", "--installer-config", "install-1.conf"),
        *("--network-nmstate", "installer-test-nmstate-yaml.yaml"),
        *("--network-nmstate", "installer-test-nmstate-json.json"),
    ],
    [],
]


def named(inputs: Path, options: list[str]) -> list[str | Path]:
    return [inputs / word if (inputs / word).is_file() else word for word in options]


@pytest.mark.parametrize("options", CUSTOMIZATIONS, ids=lambda options: " ".join(options) or "nothing")
def test_customizing_embeds_the_same(options: list[str], inputs: Path, tmp_path: Path) -> None:
    image = saved(tmp_path, NEWEST.name)
    (initrd := tmp_path / "initrd.img").write_bytes(live_initrd(NEWEST))
    found: list[list[Any]] = []
    for each in BOTH:
        iso, archive = tmp_path / f"{each.__name__}.iso", tmp_path / f"{each.__name__}.img"
        each("iso", "customize", *named(inputs, options), "-o", iso, image)
        each("pxe", "customize", *named(inputs, options), "-o", archive, initrd)
        area = json.loads(theirs("dev", "show", "iso", "--ignition", iso).stdout)
        content = iso.read_bytes()[area["offset"] :][: area["length"]]
        assert archive.read_bytes().startswith(initrd.read_bytes())
        behind = archive.read_bytes()[len(initrd.read_bytes()) :]
        both = [
            read_members(io.BytesIO(packed), lambda _: True) if packed.strip(b"\0") else {}
            for packed in (content, behind)
        ]
        assert both[0] == both[1]
        found.append([{path: _decoded(data) for path, data in members.items()} for members in both])
    assert found[0] == found[1]


REFUSALS: list[tuple[str, list[str], str]] = [
    ("2020-09", ["iso", "kargs", "modify", "-a", "x"], "No karg embed areas found"),
    ("2020-09", ["iso", "kargs", "show"], "No karg embed areas found"),
    (
        "2021-09",
        ["iso", "network", "embed", "-k", "cert.pem"],
        "does not support customizing network settings",
    ),
    (
        "2021-09",
        ["iso", "customize", "--dest-device", "x"],
        "does not support customizing installer configuration",
    ),
    (
        "2020-09",
        ["iso", "customize", "--live-karg-append", "x"],
        "does not support customizing live kernel arguments",
    ),
    (
        "2022-02",
        ["iso", "customize", "--dest-console", "tty0"],
        "does not support customizing the destination console",
    ),
    ("2021-09", ["iso", "extract", "minimal-iso"], "does not support extracting a minimal ISO"),
    ("2023-07", ["iso", "ignition", "show"], "No embedded Ignition config"),
    ("2023-07", ["iso", "network", "extract"], "No embedded network settings"),
    ("2023-07", ["iso", "kargs", "modify", "-r", "x"], "format should be: KEY=OLD=NEW"),
    ("2023-07", ["iso", "customize", "--live-ignition", "cert.pem"], "parsing Ignition config"),
    ("2023-07", ["iso", "customize", "--dest-ignition", "install-1.conf"], "parsing Ignition config"),
    ("2023-07", ["iso", "customize", "--installer-config", "live.ign"], "parsing installer config"),
    (
        "2023-07",
        ["iso", "customize", "--pre-install", "pre-install-1", "--pre-install", "pre-install-1"],
        "already specifies path",
    ),
    (
        "2023-07",
        ["iso", "customize", "--network-keyfile", "cert.pem", "--network-keyfile", "cert.pem"],
        "already specifies keyfile",
    ),
    (
        "2023-07",
        ["iso", "customize", *("--network-nmstate", "installer-test-nmstate-yaml.yaml") * 2],
        "already specifies keyfile",
    ),
    ("2023-07", ["iso", "customize", "--network-nmstate", "live.ign"], "nmstate"),
    (
        "2021-09",
        ["iso", "customize", "--network-nmstate", "installer-test-nmstate-yaml.yaml"],
        "does not support customizing network settings",
    ),
    (
        "2023-07",
        ["iso", "network", "embed", "-k", "cert.pem", "-k", "cert.pem"],
        "multiple input files named",
    ),
    ("2023-07", ["iso", "customize", "--dest-console", "tty9"], "invalid or unsupported console argument"),
    ("synthetic", ["iso", "ignition", "embed"], "Unrecognized CoreOS ISO image"),
    ("synthetic", ["iso", "extract", "pxe"], "Unrecognized CoreOS ISO image"),
    ("2023-07", ["iso", "ignition", "embed", "-i", "nothing"], "No such file"),
    ("2023-07", ["iso", "kargs", "modify", "--unknown"], ""),
    ("2023-07", ["iso", "network", "embed"], ""),
    ("2023-07", ["iso", "reset", "-o", "a", "-o", "b"], ""),
    ("2023-07", ["iso", "ignition", "embed", "-f", "--force"], ""),
    ("2023-07", ["iso", "embed", "-c", "cert.pem", "-c", "cert.pem"], ""),
    ("2023-07", ["iso", "kargs", "show", "second.iso"], ""),
    ("2023-07", ["iso"], ""),
    ("2023-07", ["iso", "ignition", "embed", "-i", "-"], "No such file"),
    ("2023-07", ["iso", "extract", "minimal-iso", "--rootfs-url", "a b"], "forbidden whitespace"),
    ("2023-07", ["iso", "extract", "minimal-iso", "--output-rootfs", "cert.pem"], "File exists"),
    ("2023-07", ["dev", "show", "iso", "--ignition", "--kargs"], ""),
]


@pytest.mark.parametrize(("name", "command", "sentence"), REFUSALS)
def test_refusals_have_the_same_exit_code_and_the_words_that_scripts_look_for(
    name: str, command: list[str], sentence: str, inputs: Path, tmp_path: Path
) -> None:
    image = saved(tmp_path, name)
    ended = [each(*named(inputs, command), image, given=CONFIG, ok=False) for each in BOTH]
    assert ended[0].returncode == ended[1].returncode
    for each in ended:
        assert sentence in each.stderr.decode()
    assert image.read_bytes() == original(name)


def test_an_image_that_was_cut_short_or_torn_is_refused_by_both(tmp_path: Path) -> None:
    image = saved(tmp_path, NEWEST.name)
    image.write_bytes(original(NEWEST.name)[: 300 << 10])
    for each in BOTH:
        for command in (["iso", "reset"], ["iso", "extract", "pxe"], ["dev", "show", "iso"]):
            assert b"ISO image is incomplete" in each(*command, image, ok=False).stderr
    image.write_bytes(original(NEWEST.name).replace(b"mitigations=auto,nosmt", b"mitigations=auto,NOSMT", 1))
    for each in BOTH:
        assert b"kargs don't match at all offsets" in each("iso", "kargs", "show", image, ok=False).stderr


# Each starts our command dozens of times: the first image that a script is for, and the newest of another architecture.
SCRIPTS = [
    ("iso-ignition.sh", "embed-areas-2020-09"),
    ("iso-ignition.sh", "embed-areas-2023-07.s390x"),
    ("iso-network.sh", "embed-areas-2021-12"),
    ("iso-kargs.sh", "embed-areas-2021-01"),
    ("iso-kargs.sh", "embed-areas-2023-07.s390x"),
    ("iso-extract-minimal-iso.sh", "embed-areas-2023-07.x86_64"),
    ("unsupported.sh", ""),
    ("dev-initrd.sh", ""),
]


@pytest.mark.parametrize(("script", "name"), SCRIPTS)
def test_the_scripts_of_their_own_tests_pass_with_our_command(script: str, name: str, tmp_path: Path) -> None:
    passes(script, tmp_path, *([UPSTREAM / "fixtures" / "iso" / f"{name}.iso.xz"] if name else []))


def test_their_script_that_compares_with_what_is_published_passes(tmp_path: Path) -> None:
    """It takes a folder with an image and the files that are published beside it."""
    published = tmp_path / "published"
    published.mkdir()
    image = original(NEWEST.name)
    (published / "coreos-live.x86_64.iso").write_bytes(image)
    iso = Iso(io.BytesIO(image), plain_names=True)
    names = {
        "VMLINUZ": "live-kernel",
        "INITRD.IMG": "live-initramfs.x86_64.img",
        "ROOTFS.IMG": "live-rootfs.x86_64.img",
    }
    for inside, name in names.items():
        (published / f"coreos-{name}").write_bytes(iso.read(f"IMAGES/PXEBOOT/{inside}"))
    passes("iso-extract-pxe.sh", tmp_path, published)


def passes(script: str, tmp_path: Path, *arguments: Path) -> None:
    commands = {
        "coreos-installer": f"#!{sys.executable}\nfrom ingot.cli.main import main\nmain()\n",
        # One script looks into the area by hand. It expects xz, where we write gzip, and cpio, which not every machine has.
        "xzcat": f"#!{sys.executable}\nimport sys\nfrom ingot.formats.initrd import read_members\n"
        "sys.stdout.buffer.write(read_members(sys.stdin.buffer, lambda _: True)['config.ign'])\n",
        "cpio": "#!/bin/sh\nexec cat\n",
    }
    for command, text in commands.items():
        (tmp_path / command).write_text(text)
        (tmp_path / command).chmod(0o755)
    ended = subprocess.run(
        ["bash", UPSTREAM / "tests" / "images" / script, *arguments],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert "Success." in ended.stdout


def test_the_images_of_this_test_are_what_it_says() -> None:
    assert len(GENERATIONS) == len(BY_NAME) >= 12
    assert len(FIXTURES) >= 10
