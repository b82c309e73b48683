"""Progress as lines: what becomes of it when nobody reads any more, and errors as sentences."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from ingot.cli.parts.sentences import errors_as_sentences

SHOWS = """
import sys
from ingot.cli.parts.show import Lines
from ingot.embedded.supervisor import PartStatus, State, Status

print("begun", flush=True)
sys.stdin.read()
show = Lines()
for state in (State.STARTING, State.READY, State.STOPPING):
    parts = [PartStatus(name="api-server", state=state)]
    show.parts(Status(supervisor_pid=1, boot_id="b", since=0.0, parts=parts))
show.advise(["Everything is up."])
show.stopping()
print("went on", file=sys.stderr, flush=True)
"""


def test_showing_to_nobody_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SHOWS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "begun\n"
        process.stdout.close()
        process.stdin.close()
        said = process.stderr.read()
    assert said.startswith("went on"), said


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PermissionError(13, "Permission denied", "/srv/x"), "/srv/x: permission denied. Choose a folder"),
        (PermissionError(1, "Operation not permitted"), "this is not yours to do. Choose a folder"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (NotADirectoryError(20, "Not a directory", "/srv/x/run"), "/srv/x/run: Not a directory"),
    ],
)
def test_what_the_machine_refuses_is_told_without_a_trace(error: OSError, sentence: str) -> None:
    with pytest.raises(click.ClickException) as told, errors_as_sentences():
        raise error
    assert told.value.message.startswith(sentence)
