"""Backup and restore: one moment as one file, and clients that notice when the past comes back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from running_server import SECRETS, Caller, served

from ingot.cli.api_server import api_server
from ingot.embedded.server import StateError, backup, restore


async def put(api: Caller, name: str, value: str = "1") -> dict[str, Any]:
    code, made = await api.call("POST", SECRETS, {"metadata": {"name": name}, "stringData": {"v": value}})
    assert code == 201, made
    return made


async def names(api: Caller) -> list[str]:
    _, listed = await api.call("GET", SECRETS)
    return [item["metadata"]["name"] for item in listed["items"]]


def contents(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def command(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(api_server, list(arguments))
    return done.exit_code, done.output


async def test_a_backup_taken_while_others_write_holds_every_write_that_was_acknowledged_before(
    tmp_path: Path,
) -> None:
    acknowledged: list[str] = []

    async def write(api: Caller, worker: int) -> None:
        for number in range(1000):
            await put(api, f"s-{worker}-{number}")
            acknowledged.append(f"s-{worker}-{number}")

    async with served(tmp_path / "one", crds=()) as api:
        writers = [asyncio.create_task(write(api, worker)) for worker in range(4)]
        async with asyncio.timeout(60):
            while len(acknowledged) < 40:  # noqa: ASYNC110 (what happens behind HTTP has no event)
                await asyncio.sleep(0.01)
        before = list(acknowledged)
        saved = await asyncio.to_thread(backup, tmp_path / "one", tmp_path / "saved")
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)
    assert stat.S_IMODE((tmp_path / "saved").stat().st_mode) == 0o600
    await asyncio.to_thread(restore, tmp_path / "saved", tmp_path / "two")
    async with served(tmp_path / "two", crds=()) as api:
        found = await names(api)
        assert set(before) <= set(found)
        assert saved.objects >= len(found)


async def test_a_restored_api_has_the_objects_of_the_backup_and_keeps_what_it_replaced(
    tmp_path: Path,
) -> None:
    state, file = tmp_path / "state", tmp_path / "saved"
    async with served(state, crds=()) as api:
        await put(api, "early")
        backup(state, file)
        await put(api, "late")
        await api.call("DELETE", f"{SECRETS}/early")
    restored = restore(file, state)
    async with served(state, crds=()) as api:
        assert await names(api) == ["early"]
        made = await put(api, "after")
        assert int(made["metadata"]["resourceVersion"]) > restored.version
    assert restored.kept is not None
    again = restore(restored.kept, state)
    async with served(state, crds=()) as api:
        assert await names(api) == ["late"]
    assert again.version > restored.version


async def test_whoever_watched_before_a_restore_is_told_to_list_again_however_much_was_written_since(
    tmp_path: Path,
) -> None:
    state, file = tmp_path / "state", tmp_path / "saved"
    async with served(state, crds=()) as api:
        await put(api, "early")
        backup(state, file)
        for number in range(5):
            last = await put(api, f"lost-{number}")
        seen = last["metadata"]["resourceVersion"]
    restore(file, state)
    async with served(state, crds=()) as api:
        for number in range(20):
            await put(api, f"new-{number}")
        async with api.session.get(
            api.url + SECRETS, params={"watch": "true", "resourceVersion": seen}
        ) as response:
            (event,) = [json.loads(line) for line in (await response.read()).splitlines()]
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        # Whoever lists can watch from there.
        _, listed = await api.call("GET", SECRETS)
        assert len(listed["items"]) == 21
        version = listed["metadata"]["resourceVersion"]
        params = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "1"}
        async with api.session.get(api.url + SECRETS, params=params) as response:
            assert await response.read() == b""
    # It is so after a restart, too.
    async with (
        served(state, crds=()) as api,
        api.session.get(api.url + SECRETS, params={"watch": "true", "resourceVersion": seen}) as response,
    ):
        assert b'"code":410' in await response.read()


async def test_a_backup_needs_no_server_and_includes_what_a_killed_one_left_in_its_log(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    async with served(state, crds=()) as api:
        await put(api, "a")
        # As kill -9 leaves it: the write is in the log beside the file, not in the file.
        (tmp_path / "killed" / "api").mkdir(parents=True)
        for name in ("api.db", "api.db-wal"):
            (tmp_path / "killed" / "api" / name).write_bytes((state / "api" / name).read_bytes())
    saved = backup(tmp_path / "killed", tmp_path / "saved")
    assert saved.objects >= 1
    with contextlib.closing(sqlite3.connect(tmp_path / "saved")) as database:
        (found,) = database.execute("SELECT count(*) FROM object WHERE name = 'a'").fetchone()
    assert found == 1
    assert contents(tmp_path) == ["killed", "saved", "state"]


async def test_a_folder_in_use_is_not_restored(tmp_path: Path) -> None:
    async with served(tmp_path / "state", crds=()) as api:
        await put(api, "a")
        backup(tmp_path / "state", tmp_path / "saved")
        with pytest.raises(StateError, match=f"process {os.getpid()}.*Stop it first"):
            restore(tmp_path / "saved", tmp_path / "state")
        assert await names(api) == ["a"]


async def test_a_backup_does_not_go_where_the_api_has_its_own_files(tmp_path: Path) -> None:
    async with served(tmp_path / "state", crds=()) as api:
        await put(api, "a")
        for name in ("api.db", "other"):
            with pytest.raises(StateError, match="Choose a place outside"):
                backup(tmp_path / "state", tmp_path / "state" / "api" / name)
        assert await names(api) == ["a"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"no database at all, whatever its name says" * 100, "damaged or no database"),
        (b"", "no database or backup of Ingot"),
    ],
)
async def test_what_is_no_backup_is_refused_and_changes_nothing(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    async with served(tmp_path / "state", crds=()) as api:
        await put(api, "a")
    (tmp_path / "file").write_bytes(content)
    before = contents(tmp_path / "state" / "api")
    with pytest.raises(StateError, match=sentence):
        restore(tmp_path / "file", tmp_path / "state")
    assert contents(tmp_path / "state" / "api") == before
    async with served(tmp_path / "state", crds=()) as api:
        assert await names(api) == ["a"]


async def test_a_damaged_backup_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path / "state", crds=()) as api:
        for number in range(30):
            await put(api, f"s-{number}", "x" * 5_000)
    backup(tmp_path / "state", tmp_path / "saved")
    whole = (tmp_path / "saved").read_bytes()
    (tmp_path / "saved").write_bytes(whole[:8192] + b"\xff" * 8192 + whole[16384:])
    with pytest.raises(StateError, match="damaged"):
        restore(tmp_path / "saved", tmp_path / "state")
    async with served(tmp_path / "state", crds=()) as api:
        assert len(await names(api)) == 30


async def test_a_backup_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path / "state", crds=()) as api:
        await put(api, "a")
    backup(tmp_path / "state", tmp_path / "saved")
    with contextlib.closing(sqlite3.connect(tmp_path / "saved")) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(StateError, match="newer Ingot"):
        restore(tmp_path / "saved", tmp_path / "state")


async def test_a_damaged_database_is_replaced_by_a_backup_and_kept_with_its_log(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with served(state, crds=()) as api:
        await put(api, "a")
    backup(state, tmp_path / "saved")
    (state / "api" / "api.db").write_bytes(b"rubbish" * 1000)
    (state / "api" / "api.db-wal").write_bytes(b"more rubbish" * 1000)
    restored = restore(tmp_path / "saved", state)
    assert restored.kept is not None
    assert restored.kept.read_bytes().startswith(b"rubbish")
    assert restored.kept.with_name(f"{restored.kept.name}-wal").read_bytes().startswith(b"more rubbish")
    async with served(state, crds=()) as api:
        assert await names(api) == ["a"]


async def test_the_commands_say_what_they_did_and_what_is_wrong(tmp_path: Path) -> None:
    state, file = tmp_path / "state", tmp_path / "saved"
    code, said = command("backup", "--state", str(state), str(file))
    assert code == 1
    assert f"{state}/api/api.db is not there" in said
    async with served(state, crds=()) as api:
        await put(api, "a")
        code, said = command("backup", "--state", str(state), str(file))
        assert code == 0
        assert f"are in {file}" in said
        code, said = command("restore", "--state", str(state), str(file))
        assert code == 1
        assert said.startswith("Error: another API server")
    code, said = command("restore", "--state", str(state), str(file))
    assert code == 0
    assert "objects from" in said
    assert "what was there before is in" in said
    code, said = command("--state", str(state), "backup", str(file))
    assert code == 2
    assert "--state goes after backup" in said
