"""What is made of a SQLite file that Ironic left behind."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from ingot.services import schema
from ingot.services.environment import IronicEnvironment
from ingot.services.errors import SchemaError
from ingot.services.schema import DatabaseSync, SqliteState, look
from ingot.services.settings import IronicPaths, IronicSettings

DBSYNC = """#!/bin/sh
# Stands in for ironic-dbsync: notes what it was asked, and makes what the real one makes.
echo "$3" >> {calls}
[ -z "$PYTHONPATH$PYTHONHOME$VIRTUAL_ENV" ] || {{ echo "not my environment" >&2; exit 1; }}
[ -e {broken} ] && {{ echo "cannot connect to mysql://ironic:hunter2@db" >&2; exit 1; }}
case "$3" in create_schema|upgrade) exec {python} {script} {database} ;; esac
"""
MAKE = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("CREATE TABLE IF NOT EXISTS nodes (id INTEGER PRIMARY KEY)")
database.execute("CREATE TABLE IF NOT EXISTS alembic_version (version_num TEXT)")
database.execute("DELETE FROM alembic_version")
database.execute("INSERT INTO alembic_version VALUES ('9fb44677ef15')")
database.commit()
"""


class Bench:
    """A state folder with a database, and a command that records how it was called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = IronicSettings(
            paths=IronicPaths.below(folder),
            cert_file=Path("/c"),
            key_file=Path("/k"),
            ca_file=Path("/ca"),
            username="ingot",
            password_file=Path("/p"),
        )
        self.database = self.settings.paths.database_file
        self.calls_file = folder / "calls"
        self.said: list[str] = []

    def execute(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.database)) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()

    def environment(self, name: str = "39-abc") -> IronicEnvironment:
        made = IronicEnvironment("39", self.folder / name)
        made.bin.mkdir(parents=True, exist_ok=True)
        script = self.folder / "make.py"
        script.write_text(MAKE)
        program = made.program("ironic-dbsync")
        program.write_text(
            DBSYNC.format(
                calls=self.calls_file,
                broken=self.folder / "broken",
                python=sys.executable,
                script=script,
                database=self.database,
            )
        )
        program.chmod(0o755)
        return made

    def bring_up_to_date(self, environment: IronicEnvironment | None = None) -> None:
        sync = DatabaseSync(self.settings, environment or self.environment(), lock=2)
        schema.bring_up_to_date(sync, self.said.append)

    @property
    def calls(self) -> Sequence[str]:
        return self.calls_file.read_text().split() if self.calls_file.exists() else ()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_file_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert look(tmp_path / "ironic.db") == SqliteState(None, has_tables=False, nodes=0)
    assert not (tmp_path / "ironic.db").exists()


def test_a_new_database_gets_its_schema(bench: Bench) -> None:
    bench.bring_up_to_date()
    assert bench.calls == ["create_schema"]
    assert look(bench.database).revision == "9fb44677ef15"


def test_the_command_does_not_see_the_environment_that_we_run_in(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
        monkeypatch.setenv(name, "/ours")
    bench.bring_up_to_date()
    assert bench.calls == ["create_schema"]


def test_a_restart_with_the_same_environment_runs_nothing(bench: Bench) -> None:
    bench.bring_up_to_date()
    bench.bring_up_to_date()
    assert bench.calls == ["create_schema"]


def test_another_environment_upgrades(bench: Bench) -> None:
    bench.bring_up_to_date()
    bench.bring_up_to_date(bench.environment("40-def"))
    assert bench.calls == ["create_schema", "upgrade", "online_data_migrations"]


def test_a_database_that_was_replaced_behind_our_back_is_upgraded(bench: Bench) -> None:
    bench.bring_up_to_date()
    bench.execute("UPDATE alembic_version SET version_num = 'older'")
    bench.bring_up_to_date()
    assert bench.calls == ["create_schema", "upgrade", "online_data_migrations"]


def test_a_half_made_database_without_nodes_is_made_again(bench: Bench) -> None:
    bench.execute(
        "CREATE TABLE nodes (id INTEGER PRIMARY KEY)", "CREATE TABLE ports (id INTEGER PRIMARY KEY)"
    )
    bench.bring_up_to_date()
    assert bench.calls == ["create_schema"]
    assert bench.said[0] == "the database was left half made; making it again"


def test_a_database_without_revision_but_with_nodes_is_left_alone(bench: Bench) -> None:
    bench.execute("CREATE TABLE nodes (id INTEGER PRIMARY KEY)", "INSERT INTO nodes VALUES (1)")
    with pytest.raises(SchemaError, match="1 nodes but no schema revision"):
        bench.bring_up_to_date()
    assert look(bench.database).nodes == 1
    assert bench.calls == ()


def test_a_file_that_is_no_database_says_what_to_do(bench: Bench) -> None:
    bench.database.write_bytes(b"not a database" * 100)
    with pytest.raises(SchemaError, match=r"move .* away and start again"):
        bench.bring_up_to_date()


def test_a_failed_command_is_told_without_its_password_and_tried_again_next_time(bench: Bench) -> None:
    broken = bench.folder / "broken"
    broken.touch()
    with pytest.raises(SchemaError) as failure:
        bench.bring_up_to_date()
    assert "create_schema` ended with 1" in str(failure.value)
    assert "hunter2" not in str(failure.value)
    assert f"move {bench.database} away" in str(failure.value)
    broken.unlink()
    bench.bring_up_to_date()
    assert look(bench.database).revision == "9fb44677ef15"
