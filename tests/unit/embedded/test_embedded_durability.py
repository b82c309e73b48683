"""What the server promises about its file: acknowledged is kept, failed is nowhere, versions only go up."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import signal
import sqlite3
import stat
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
import yaml
from running_server import SECRETS, Caller, calling, served

from ingot.embedded.server import Running, StateError, serve
from ingot.trust import Authority

COMMAND = [sys.executable, "-c", "from ingot.cli.main import main; main()", "api-server"]


@contextlib.asynccontextmanager
async def process(state: Path):
    """The real command as a process of its own; killed without mercy at the end."""
    child = await asyncio.create_subprocess_exec(
        *COMMAND, "--state", str(state), "--listen", "127.0.0.1:0", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        line = (await child.stdout.readline()).decode()
        assert line.startswith("api-server ready at https://127.0.0.1:"), line
        url = line.split()[3]
        yield (
            child,
            Running(url, 0, state / "ca" / "ca.crt", state / "kubeconfig", state / "kubeconfig-readonly"),
        )
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def test_what_was_acknowledged_before_kill_9_is_there_after_it(tmp_path: Path) -> None:
    acknowledged: dict[str, str] = {}

    async def write(api: Caller, worker: int) -> None:
        number = 0
        while True:
            name = f"s-{worker}-{number}"
            code, body = await api.call(
                "POST", SECRETS, {"metadata": {"name": name}, "stringData": {"n": str(number)}}
            )
            assert code == 201
            acknowledged[name] = body["metadata"]["resourceVersion"]
            if number % 3 == 0:
                code, body = await api.call(
                    "PATCH", f"{SECRETS}/{name}", {"metadata": {"labels": {"again": "yes"}}}
                )
                assert code == 200
                acknowledged[name] = body["metadata"]["resourceVersion"]
            number += 1

    async with process(tmp_path) as (child, running), calling(running) as api:
        workers = [asyncio.create_task(write(api, worker)) for worker in range(8)]
        while len(acknowledged) < 200:
            await asyncio.sleep(0.01)
            assert not any(worker.done() for worker in workers)
        child.send_signal(signal.SIGKILL)
        await child.wait()
        failures = await asyncio.gather(*workers, return_exceptions=True)
        assert all(isinstance(failure, aiohttp.ClientError | OSError) for failure in failures)
    async with process(tmp_path) as (_, running), calling(running) as api:
        _, listed = await api.call("GET", SECRETS)
        found = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listed["items"]}
        lost = {name for name, version in acknowledged.items() if int(found.get(name, "0")) < int(version)}
        assert lost == set()
        _, made = await api.call("POST", SECRETS, {"metadata": {"name": "after"}})
        assert int(made["metadata"]["resourceVersion"]) > max(
            int(version) for version in acknowledged.values()
        )


async def test_a_watch_goes_on_over_a_restart_without_losing_events(tmp_path: Path) -> None:
    async with served(tmp_path) as api:
        _, first = await api.call("POST", SECRETS, {"metadata": {"name": "a", "labels": {"x": "1"}}})
        await api.call("POST", SECRETS, {"metadata": {"name": "b"}})
        await api.call("PATCH", f"{SECRETS}/a", {"metadata": {"labels": {"x": "2"}}})
        await api.call("DELETE", f"{SECRETS}/b")
    start = first["metadata"]["resourceVersion"]
    async with served(tmp_path) as api:
        assert await seen(api, start) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
        # That a ceased to match happened before the restart; the log remembers what it was.
        assert await seen(api, start, labelSelector="x=1") == [("DELETED", "a")]


async def seen(api: Caller, version: str, **params: str) -> list[tuple[str, str]]:
    events = await lines(api, SECRETS, resourceVersion=version, timeoutSeconds="1", **params)
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


async def test_an_old_version_is_gone_once_the_log_was_trimmed(tmp_path: Path) -> None:
    async with served(tmp_path) as api:
        await api.call("POST", SECRETS, {"metadata": {"name": "a"}})
    with contextlib.closing(sqlite3.connect(tmp_path / "api" / "api.db")) as database:
        last = database.execute("SELECT max(version) FROM log").fetchone()[0]
        database.execute("DELETE FROM log WHERE version < ?", (last,))
        database.commit()
    async with served(tmp_path) as api:
        events = await lines(api, SECRETS, resourceVersion="1", timeoutSeconds="5")
        assert [event["type"] for event in events] == ["ERROR"]
        assert (events[0]["object"]["code"], events[0]["object"]["reason"]) == (410, "Expired")
        code, gone = await api.call("GET", SECRETS, watch="true", resourceVersion=str(last + 1000))
        assert (code, gone["reason"]) == (410, "Expired")


async def lines(api: Caller, path: str, **params: str) -> list[dict]:
    async with api.session.get(api.url + path, params={"watch": "true", **params}) as response:
        assert response.status == 200
        return [json.loads(line) for line in (await response.read()).splitlines()]


async def test_a_write_that_the_disk_refuses_is_nowhere_and_the_next_one_works(tmp_path: Path) -> None:
    async with served(tmp_path) as api:
        pass
    with contextlib.closing(sqlite3.connect(tmp_path / "api" / "api.db")) as database:
        # A real failure inside a real transaction, as a full disk would be.
        database.execute(
            "CREATE TRIGGER full BEFORE INSERT ON object WHEN NEW.name LIKE 'poison%'"
            " BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
        database.commit()
    async with served(tmp_path) as api:
        names = ["good-1", "poison", "good-2", "good-3"]
        made = await asyncio.gather(
            *(api.call("POST", SECRETS, {"metadata": {"name": name}}) for name in names)
        )
        codes = dict(zip(names, (code for code, _ in made), strict=True))
        assert codes["poison"] == 500
        assert set(codes.values()) <= {201, 500}
        _, listed = await api.call("GET", SECRETS)
        assert {i["metadata"]["name"] for i in listed["items"]} == {
            name for name, code in codes.items() if code == 201
        }
        # Nothing of the failed write stands in the way of the next.
        assert (await api.call("POST", SECRETS, {"metadata": {"name": "later"}}))[0] == 201
        assert (await api.call("POST", SECRETS, {"metadata": {"name": "poison"}}))[0] == 500
        assert (await api.call("GET", "/readyz"))[0] == 500
        assert (await api.call("POST", SECRETS, {"metadata": {"name": "latest"}}))[0] == 201
        assert (await api.call("GET", "/readyz"))[0] == 200


async def test_a_continue_token_from_before_a_restart_is_expired_once_the_list_changed(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as api:
        for name in "abc":
            await api.call("POST", SECRETS, {"metadata": {"name": name}})
        _, first = await api.call("GET", SECRETS, limit="1")
        await api.call("DELETE", f"{SECRETS}/b")
    async with served(tmp_path) as api:
        code, body = await api.call("GET", SECRETS, limit="1", **{"continue": first["metadata"]["continue"]})
        assert (code, body["reason"]) == (410, "Expired")


async def test_events_are_kept_for_an_hour(tmp_path: Path) -> None:
    path = "/api/v1/namespaces/default/events"
    event = {"involvedObject": {"kind": "Secret", "name": "s", "namespace": "default"}}
    async with served(tmp_path) as api:
        for name in ("old", "new"):
            assert (await api.call("POST", path, {"metadata": {"name": name}, **event}))[0] == 201
    with contextlib.closing(sqlite3.connect(tmp_path / "api" / "api.db")) as database:
        database.execute("UPDATE object SET at = at - 3700 WHERE name = 'old'")
        database.commit()
    async with served(tmp_path) as api:
        await api.gone(f"{path}/old")
        assert (await api.call("GET", f"{path}/new"))[0] == 200


async def test_garbage_left_by_a_killed_server_is_collected_by_the_next(tmp_path: Path) -> None:
    async with served(tmp_path) as api:
        _, owner = await api.call("POST", SECRETS, {"metadata": {"name": "owner"}})
        reference = {"apiVersion": "v1", "kind": "Secret", "name": "owner", "uid": owner["metadata"]["uid"]}
        await api.call("POST", SECRETS, {"metadata": {"name": "child", "ownerReferences": [reference]}})
    with contextlib.closing(sqlite3.connect(tmp_path / "api" / "api.db")) as database:
        # As if the server had died between removing the owner and removing what it owned.
        database.execute("DELETE FROM object WHERE name = 'owner'")
        database.commit()
    async with served(tmp_path) as api:
        await api.gone(f"{SECRETS}/child")


# The folder


async def test_only_one_server_may_use_a_folder(tmp_path: Path) -> None:
    async with served(tmp_path):
        with pytest.raises(StateError, match=f"process {os.getpid()}.*uses the state folder"):
            async with serve(tmp_path):
                pass
    async with served(tmp_path):
        pass


async def test_what_holds_secrets_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    async with served(tmp_path):
        for name in (
            "kubeconfig",
            "kubeconfig-readonly",
            "api/api.db",
            "api/api.db-wal",
            "api/token-admin",
            "api/api-server.key",
        ):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600, name


async def test_a_file_of_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    async with served(tmp_path):
        pass
    with contextlib.closing(sqlite3.connect(tmp_path / "api" / "api.db")) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(StateError, match="newer Ingot"):
        async with serve(tmp_path):
            pass


async def test_a_file_that_is_no_database_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "api.db").write_bytes(b"this is not a database, whatever its name says" * 100)
    with pytest.raises(StateError, match="cannot be used as the API's database"):
        async with serve(tmp_path):
            pass


async def test_sigterm_ends_open_watches_and_the_process_cleanly(tmp_path: Path) -> None:
    async with process(tmp_path) as (child, running), calling(running) as api:
        response = await api.session.get(api.url + SECRETS, params={"watch": "true"})
        child.terminate()
        async with asyncio.timeout(60):
            assert await response.read() == b""
            assert await child.wait() == 0


async def test_a_second_command_on_the_folder_says_why_it_does_not_start(tmp_path: Path) -> None:
    async with process(tmp_path):
        second = await asyncio.create_subprocess_exec(
            *COMMAND, "--state", str(tmp_path), "--listen", "127.0.0.1:0", stderr=asyncio.subprocess.PIPE
        )
        _, said = await second.communicate()
        assert second.returncode == 1
        assert said.decode().startswith("Error: another API server (process ")
        assert "Traceback" not in said.decode()


async def test_an_address_that_is_taken_is_a_sentence(tmp_path: Path) -> None:
    async with process(tmp_path / "one") as (_, running):
        second = await asyncio.create_subprocess_exec(
            *COMMAND,
            "--state",
            str(tmp_path / "two"),
            "--listen",
            running.url.removeprefix("https://"),
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await second.communicate()
        assert second.returncode == 1
        assert "cannot listen on 127.0.0.1:" in said.decode()
        assert "Traceback" not in said.decode()


async def test_a_damaged_database_is_a_sentence_and_is_left_alone(tmp_path: Path) -> None:
    async with served(tmp_path) as api:
        for number in range(30):
            body = {"metadata": {"name": f"s-{number}"}, "stringData": {"large": "x" * 10_000}}
            assert (await api.call("POST", SECRETS, body))[0] == 201
    path = tmp_path / "api" / "api.db"
    whole = path.read_bytes()
    page = 4096
    path.write_bytes(whole[:page] + b"\xff" * (len(whole) - page))
    with pytest.raises(StateError, match="cannot be used as the API's database"):
        async with serve(tmp_path):
            pass
    path.write_bytes(whole)
    async with served(tmp_path) as api:
        assert (await api.call("GET", f"{SECRETS}/s-29"))[0] == 200


async def test_a_state_folder_that_cannot_be_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    child = await asyncio.create_subprocess_exec(
        *COMMAND, "--state", str(tmp_path / "file" / "state"), stderr=asyncio.subprocess.PIPE
    )
    _, said = await child.communicate()
    assert child.returncode == 1
    assert f"{tmp_path}/file/state" in said.decode()
    assert "Traceback" not in said.decode()


async def test_a_server_whose_ready_line_nobody_reads_serves_all_the_same(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    child = await asyncio.create_subprocess_exec(
        *COMMAND, "--state", str(tmp_path), "--listen", "127.0.0.1:0", stdout=writing
    )
    os.close(writing)
    try:
        await until(lambda: child.returncode is not None or (tmp_path / "kubeconfig-readonly").exists())
        url = yaml.safe_load((tmp_path / "kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
        running = Running(url, 0, tmp_path / "ca" / "ca.crt", tmp_path / "kubeconfig", tmp_path)
        async with calling(running) as api:
            for _ in range(20):
                assert (await api.call("GET", "/readyz"))[0] == 200
        child.terminate()
        assert await child.wait() == 0
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def test_a_certificate_that_cannot_be_renewed_today_is_tried_again_and_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificate = tmp_path / "api" / "api-server.crt"
    async with served(tmp_path, look_every=0.05) as api:
        before = certificate.read_bytes()
        certificate.unlink()
        certificate.mkdir()
        await until(lambda: "cannot be loaded" in caplog.text)
        assert (await api.call("GET", "/readyz"))[0] == 200
        certificate.rmdir()
        await until(certificate.is_file)
        assert certificate.read_bytes() != before
        assert (await api.call("GET", "/readyz"))[0] == 200


async def test_a_broken_authority_ends_nothing_and_kubeconfigs_follow_one_that_was_put_in_its_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Most of its life is over, so it also renews itself at once.
    other = Authority(tmp_path / "other", life=timedelta(days=30))
    before = other.ca_file.read_bytes()
    state = tmp_path / "state"
    async with serve(state, look_every=0.05) as running:
        old = trusted_by(running.kubeconfig)
        (state / "ca" / "ca.key").write_bytes((other.folder / "ca.key").read_bytes())
        await until(lambda: "does not belong to its ca.crt" in caplog.text)
        async with calling(running) as api:
            assert (await api.call("GET", "/readyz"))[0] == 200
        running.ca_file.write_bytes(before)
        await until(lambda: trusted_by(running.kubeconfig_readonly) not in (old, before))
        assert trusted_by(running.kubeconfig) == running.ca_file.read_bytes()
        assert stat.S_IMODE(running.kubeconfig.stat().st_mode) == 0o600
        async with calling(running) as api:
            assert (await api.call("GET", SECRETS))[0] == 200


async def test_a_kubeconfig_that_somebody_changed_stays_as_it_is(tmp_path: Path) -> None:
    async with serve(tmp_path, look_every=0.01) as running:
        changed = running.kubeconfig.read_text().replace("namespace: default", "namespace: mine")
        running.kubeconfig.write_text(changed)
        for _ in range(5):
            certificate = tmp_path / "api" / "api-server.crt"
            certificate.unlink()
            await until(certificate.is_file)
        assert running.kubeconfig.read_text() == changed


async def test_a_kubeconfig_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").mkdir()
    with pytest.raises(ExceptionGroup) as raised:
        async with serve(tmp_path):
            pass
    assert raised.group_contains(StateError, match=r"cannot be used as the state folder .*kubeconfig")


def trusted_by(kubeconfig: Path) -> bytes:
    """The certificate of the authority in it."""
    (cluster,) = yaml.safe_load(kubeconfig.read_text())["clusters"]
    return base64.b64decode(cluster["cluster"]["certificate-authority-data"])


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 (what happens in files and logs has no event)
            await asyncio.sleep(0.02)
