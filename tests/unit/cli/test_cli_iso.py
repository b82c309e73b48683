"""`ingot iso` as a person or a script uses it: three places to write to, what is refused, and what is never touched."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ingot.cli.main import main
from live_images import BY_NAME, DEFAULT, LABEL, NEWEST, live_image, live_initrd, noise, root_file_system

CONFIG = b'{"ignition": {"version": "3.3.0"}}\n'
INGOT = [sys.executable, "-c", "from ingot.cli.main import main; main()"]


def run(*arguments: str | Path, given: bytes | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=given)


def done(*arguments: str | Path, given: bytes | None = None) -> bytes:
    result = run(*arguments, given=given)
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


def refused(sentence: str, *arguments: str | Path, given: bytes | None = None, code: int = 1) -> None:
    result = run(*arguments, given=given)
    assert result.exit_code == code, result.output
    assert sentence in result.stderr
    assert "Traceback" not in result.output


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "live.iso"
    path.write_bytes(live_image(NEWEST))
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.ign"
    path.write_bytes(CONFIG)
    return path


@pytest.fixture
def keyfiles(tmp_path: Path) -> list[str | Path]:
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "a.nmconnection").write_text("[connection]\nid=a\n")
    (folder / "b.nmconnection").write_text("[connection]\nid=b\n")
    return ["-k", folder / "b.nmconnection", "-k", folder / "a.nmconnection"]


def test_in_place_to_a_file_and_to_standard_output_give_the_same_bytes(image: Path, config: Path) -> None:
    original = image.read_bytes()
    output = image.with_name("out.iso")
    streamed = done("iso", "ignition", "embed", "-i", config, "-o", "-", image)
    done("iso", "ignition", "embed", "-o", output, image, given=CONFIG)
    assert image.read_bytes() == original
    done("iso", "ignition", "embed", "-i", config, image)
    assert streamed == output.read_bytes() == image.read_bytes() != original
    assert done("iso", "ignition", "show", image) == CONFIG
    done("iso", "ignition", "remove", "-o", image.with_name("removed.iso"), image)
    assert (
        done("iso", "ignition", "remove", "-o", "-", image)
        == image.with_name("removed.iso").read_bytes()
        == original
    )
    done("iso", "ignition", "remove", image)
    assert image.read_bytes() == original


@pytest.mark.parametrize("output", [[], ["-o", "out.iso"], ["-o", "-"]])
def test_a_config_that_is_there_is_replaced_only_by_force(image: Path, output: list[str]) -> None:
    done("iso", "ignition", "embed", image, given=b"first")
    before = digest(image)
    with_folder = [str(image.with_name(word)) if word.endswith(".iso") else word for word in output]
    refused(
        "already has an embedded Ignition config; use -f to force",
        *("iso", "ignition", "embed", *with_folder, image),
        given=b"second",
    )
    assert digest(image) == before
    assert not image.with_name("out.iso").exists()
    done("iso", "ignition", "embed", "-f", *with_folder, image, given=b"second")


def test_a_config_that_is_too_long_touches_nothing(image: Path) -> None:
    before = digest(image)
    large = noise("large", 262144)
    for output in ([], ["-o", image.with_name("out.iso")], ["-o", "-"]):
        refused("Compressed initramfs is too large", "iso", "ignition", "embed", *output, image, given=large)
    assert digest(image) == before
    assert sorted(path.name for path in image.parent.iterdir()) == ["live.iso"]


def test_showing_what_is_not_there_is_an_error(image: Path) -> None:
    refused("No embedded Ignition config", "iso", "ignition", "show", image)
    refused("No embedded network settings", "iso", "network", "extract", image)


def test_an_output_that_is_there_is_never_replaced(image: Path) -> None:
    output = image.with_name("out.iso")
    output.write_bytes(b"precious")
    for verb in (["iso", "ignition", "embed"], ["iso", "kargs", "modify", "-a", "x"], ["iso", "reset"]):
        refused("File exists", *verb, "-o", output, image, given=CONFIG)
    refused("File exists", "iso", "extract", "minimal-iso", image, output)
    refused(
        "File exists", "iso", "extract", "minimal-iso", "--output-rootfs", output, image, image.with_name("m")
    )
    assert output.read_bytes() == b"precious"
    assert sorted(path.name for path in image.parent.iterdir()) == ["live.iso", "out.iso"]


def test_a_new_image_is_for_its_owner_alone(image: Path) -> None:
    done("iso", "ignition", "embed", "-o", image.with_name("out.iso"), image, given=CONFIG)
    assert image.with_name("out.iso").stat().st_mode & 0o777 == 0o600


def test_keyfiles_are_embedded_extracted_and_removed_beside_a_config(
    image: Path, keyfiles: list[str | Path]
) -> None:
    original = image.read_bytes()
    done("iso", "ignition", "embed", image, given=CONFIG)
    with_config = image.read_bytes()
    done("iso", "network", "embed", *keyfiles, image)
    refused("already has embedded network settings; use -f", "iso", "network", "embed", *keyfiles, image)
    done("iso", "network", "embed", "-f", *keyfiles[:2], image)
    assert (
        done("iso", "network", "extract", image)
        == b"########## b.nmconnection ##########\n[connection]\nid=b\n"
    )
    done("iso", "network", "embed", "--force", *keyfiles, image)
    folder = image.with_name("extracted")
    printed = done("iso", "network", "extract", "-C", folder, image).decode().split()
    assert printed == [f"{folder}/a.nmconnection", f"{folder}/b.nmconnection"]
    assert (folder / "a.nmconnection").read_text() == "[connection]\nid=a\n"
    refused("File exists", "iso", "network", "extract", "-C", folder, image)
    assert done("iso", "ignition", "show", image) == CONFIG
    done("iso", "network", "remove", image)
    assert image.read_bytes() == with_config
    done("iso", "ignition", "remove", image)
    assert image.read_bytes() == original


def test_two_keyfiles_of_one_name_are_refused(
    image: Path, keyfiles: list[str | Path], tmp_path: Path
) -> None:
    (tmp_path / "a.nmconnection").write_text("other")
    refused(
        "multiple input files named 'a.nmconnection'",
        *("iso", "network", "embed", *keyfiles, "-k", tmp_path / "a.nmconnection", image),
    )


def test_kernel_arguments_are_changed_shown_and_reset(image: Path) -> None:
    original = image.read_bytes()
    assert done("iso", "kargs", "show", image).decode() == DEFAULT + "\n"
    done(
        "iso",
        "kargs",
        "modify",
        "-a",
        "foo",
        "-a",
        "bar=1",
        "-d",
        "ignition.firstboot",
        "-r",
        "bar=1=2",
        image,
    )
    wanted = DEFAULT.replace(" ignition.firstboot", "") + " foo bar=2\n"
    assert done("iso", "kargs", "show", image).decode() == wanted
    assert done("iso", "kargs", "show", "--default", image).decode() == DEFAULT + "\n"
    assert done("iso", "kargs", "reset", "-o", "-", image) == original
    done("iso", "kargs", "reset", image)
    assert image.read_bytes() == original


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["-r", "a=b"], "format should be: KEY=OLD=NEW"),
        (["-a", "x" * 1100], "kargs too large for area"),
        (["-a", "x\ny"], "control character"),
    ],
)
def test_arguments_that_cannot_be_are_refused(image: Path, options: list[str], sentence: str) -> None:
    before = digest(image)
    refused(sentence, "iso", "kargs", "modify", *options, image)
    assert digest(image) == before


def test_a_reset_restores_what_every_verb_changed(image: Path, keyfiles: list[str | Path]) -> None:
    original = image.read_bytes()
    done("iso", "ignition", "embed", image, given=CONFIG)
    done("iso", "network", "embed", *keyfiles, image)
    done("iso", "kargs", "modify", "-a", "foo", image)
    done("iso", "reset", image)
    assert image.read_bytes() == original


def test_the_files_for_booting_over_the_network_are_extracted(image: Path) -> None:
    folder = image.with_name("pxe")
    printed = done("iso", "extract", "pxe", "-o", folder, image).decode().split()
    assert printed == [f"{folder}/live-{name}" for name in ("initrd.img", "rootfs.img", "vmlinuz")]
    assert (folder / "live-initrd.img").read_bytes() == live_initrd(NEWEST)
    (folder / "usual").touch()  # a server that hands the files out may read them
    assert (folder / "live-vmlinuz").stat().st_mode == (folder / "usual").stat().st_mode
    assert (folder / "live-rootfs.img").read_bytes() == root_file_system()
    refused("File exists", "iso", "extract", "pxe", "-o", folder, image)


def test_a_minimal_image_and_its_root_file_system(image: Path, tmp_path: Path) -> None:
    minimal, rootfs = tmp_path / "minimal.iso", tmp_path / "rootfs.img"
    url = "https://images.example/rootfs.img"
    streamed = done("iso", "extract", "minimal-iso", "--rootfs-url", url, image)
    done("iso", "extract", "minimal-iso", image, minimal, "--output-rootfs", rootfs, "--rootfs-url", url)
    assert minimal.read_bytes() == streamed
    assert rootfs.read_bytes() == root_file_system()
    shown = done("iso", "kargs", "show", minimal).decode().split()
    assert f"coreos.liveiso={LABEL}" not in shown
    assert f"coreos.live.rootfs_url={url}" in shown


def test_a_minimal_image_of_changed_bytes_is_not_written(image: Path) -> None:
    image.write_bytes(image.read_bytes().replace(b"set timeout=5", b"set timeout=7"))
    minimal, rootfs = image.with_name("minimal.iso"), image.with_name("rootfs.img")
    refused("wrong final digest", "iso", "extract", "minimal-iso", "--output-rootfs", rootfs, image, minimal)
    assert sorted(path.name for path in image.parent.iterdir()) == ["live.iso"]


def test_a_live_system_is_customized_once_and_again_by_force(
    image: Path, config: Path, keyfiles: list[str | Path]
) -> None:
    original = image.read_bytes()
    (hook := image.with_name("hook")).write_text("#!/bin/sh\n")
    options = [
        "--dest-ignition",
        config,
        "--dest-device",
        "/dev/vda",
        "--pre-install",
        hook,
        "--live-karg-append",
        "foo",
    ]
    result = run("iso", "customize", *options, "--network-keyfile", keyfiles[1], image)
    assert result.exit_code == 0, result.output
    assert "install to /dev/vda by itself" in result.stderr
    live = json.loads(done("iso", "ignition", "show", image))
    assert {file["path"] for file in live["storage"]["files"]} == {
        "/usr/local/bin/pre-install-hook",
        "/etc/coreos/dest.ign",
        "/etc/coreos/installer.d/0000-customize.yaml",
    }
    assert done("iso", "kargs", "show", image).decode() == DEFAULT + " foo\n"
    assert b"id=b" in done("iso", "network", "extract", image)
    refused("already customized; use -f to force", "iso", "customize", "--dest-device", "/dev/vdb", image)
    done("iso", "customize", "-f", "--live-ignition", config, image)
    refused("No embedded network settings", "iso", "network", "extract", image)
    done("iso", "reset", image)
    assert image.read_bytes() == original


def test_old_images_say_what_they_cannot_do(tmp_path: Path, keyfiles: list[str | Path]) -> None:
    for name in ("2020-09", "2021-09", "2022-02"):
        (tmp_path / f"{name}.iso").write_bytes(live_image(BY_NAME[name]))
    oldest, older, old = (tmp_path / f"{name}.iso" for name in ("2020-09", "2021-09", "2022-02"))
    refused("No karg embed areas found", "iso", "kargs", "modify", "-a", "x", oldest)
    refused("No karg embed areas found", "iso", "kargs", "show", oldest)
    refused("No karg embed areas found", "iso", "kargs", "reset", oldest)
    refused("does not support customizing network settings", "iso", "network", "embed", *keyfiles, older)
    refused(
        "does not support extracting a minimal ISO", "iso", "extract", "minimal-iso", older, tmp_path / "m"
    )
    refused(
        "does not support customizing the destination console",
        "iso",
        "customize",
        "--dest-console",
        "tty0",
        old,
    )
    refused(
        "does not support customizing live kernel arguments",
        "iso",
        "customize",
        "--live-karg-append",
        "a",
        oldest,
    )
    refused(
        "does not support customizing installer config", "iso", "customize", "--dest-device", "/dev/a", older
    )


def test_what_is_no_live_image_is_refused_and_not_touched(tmp_path: Path) -> None:
    other = tmp_path / "other.iso"
    other.write_bytes(b"text" * 20_000)
    refused("not an ISO 9660 image", "iso", "reset", other)
    refused("not an ISO 9660 image", "iso", "extract", "pxe", other)
    assert other.read_bytes() == b"text" * 20_000
    refused("No such file or directory", "iso", "ignition", "show", tmp_path / "none.iso")
    refused("No such file or directory", "iso", "ignition", "embed", "-i", tmp_path / "none.ign", other)


def test_the_first_names_of_the_ignition_verbs_still_work(image: Path, config: Path) -> None:
    done("iso", "embed", "-c", config, image)
    assert done("iso", "show", image) == CONFIG
    done("iso", "remove", image)
    refused("No embedded Ignition config", "iso", "show", image)


def test_a_wrong_option_has_another_exit_code(image: Path) -> None:
    refused("No such option", "iso", "kargs", "modify", "--apend", "x", image, code=2)
    refused("Missing option", "iso", "network", "embed", image, code=2)


@pytest.mark.parametrize("words", [["-f", "--force"], ["-i", "a", "-i", "b"], ["-o", "a", "--output", "b"]])
def test_an_option_is_given_once(image: Path, words: list[str]) -> None:
    ended = CliRunner().invoke(main, ["iso", "ignition", "embed", *words, str(image)])
    assert ended.exit_code == 2
    assert "may be given once" in ended.stderr


def test_words_that_are_no_text_are_refused_with_a_sentence(image: Path) -> None:
    before = digest(image)
    for options in (["kargs", "modify", "-a", b"\xff"], ["customize", "--dest-karg-append", b"\xff"]):
        ended = subprocess.run([*INGOT, "iso", *options, image], capture_output=True, check=False)
        assert ended.returncode == 1
        assert b"Traceback" not in ended.stderr
    assert digest(image) == before


def test_nothing_binary_is_written_to_a_terminal(image: Path) -> None:
    leader, terminal = pty.openpty()
    try:
        command = [*INGOT, "iso", "kargs", "modify", "-a", "x", "-o", "-", str(image)]
        ended = subprocess.run(command, stdout=terminal, stderr=subprocess.PIPE, check=False)
        assert ended.returncode == 1
        assert b"Refusing to write binary data to terminal" in ended.stderr
    finally:
        os.close(leader)
        os.close(terminal)


def test_a_copy_that_is_killed_leaves_no_file_under_its_name(image: Path) -> None:
    with image.open("r+b") as file:
        file.truncate(3 << 30)  # a hole, so that there is something to copy
    command = [*INGOT, "iso", "kargs", "modify", "-a", "x", "-o", str(image.with_name("out.iso")), str(image)]
    running = subprocess.Popen(command)
    while running.poll() is None and not has_open(running.pid, image):
        time.sleep(0.001)
    running.kill()
    ended = running.wait()
    left = sorted(path.name for path in image.parent.iterdir())
    assert left == (["live.iso"] if ended else ["live.iso", "out.iso"])


def has_open(process: int, file: Path) -> bool:
    for link in Path(f"/proc/{process}/fd").glob("*"):
        with contextlib.suppress(OSError):
            if link.readlink() == file:
                return True
    return False


def test_two_changes_in_place_at_once_are_both_there_afterwards(
    image: Path, config: Path, keyfiles: list[str | Path]
) -> None:
    changes = [
        ["ignition", "embed", "-i", config],
        ["network", "embed", *keyfiles],
        ["kargs", "modify", "-a", "foo"],
    ]
    running = [subprocess.Popen([*INGOT, "iso", *change, image]) for change in changes]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert done("iso", "ignition", "show", image) == CONFIG
    assert b"id=a" in done("iso", "network", "extract", image)
    assert done("iso", "kargs", "show", image).decode() == DEFAULT + " foo\n"


def test_an_image_whose_change_was_killed_at_any_moment_is_whole_after_a_reset(image: Path) -> None:
    original = image.read_bytes()
    for round_ in range(4):
        running = subprocess.Popen(
            [
                *INGOT,
                "iso",
                "customize",
                "-f",
                "--dest-device",
                f"/dev/vd{round_}",
                "--live-karg-append",
                "x",
                image,
            ],
            stderr=subprocess.DEVNULL,
        )
        while running.poll() is None and not has_open(running.pid, image):
            time.sleep(0.001)
        time.sleep(0.001 * round_)
        running.kill()
        running.wait()
        done("iso", "reset", image)
        assert image.read_bytes() == original
