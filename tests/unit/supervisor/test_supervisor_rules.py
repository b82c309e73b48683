"""Pure rules and kept things: when to try again, ports, logs, probes."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from aiohttp import web

from ingot.embedded.supervisor import (
    PortTaken,
    SupervisorError,
    answers,
    connects,
    kept_ports,
    may_be_busy,
)
from ingot.embedded.supervisor.logs import Log
from ingot.embedded.supervisor.restarts import Fortune
from ingot.trust import Authority


def test_the_pause_doubles_up_to_ten_seconds() -> None:
    fortune, pauses = Fortune(ever_ready=True), []
    for _ in range(9):
        fortune = fortune.ended(ready_for=0)
        pauses.append(fortune.pause)
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10, 10]


def test_a_part_that_was_well_for_a_while_begins_anew() -> None:
    worn = Fortune(endings=8, ever_ready=True)
    assert worn.ended(ready_for=29).pause == 10
    assert worn.ended(ready_for=30).pause == 0.2


def test_only_a_part_that_never_was_ready_is_given_up() -> None:
    never = Fortune()
    for _ in range(4):
        never = never.ended(ready_for=0)
        assert not never.hopeless
    assert never.ended(ready_for=0).hopeless
    assert not Fortune(endings=100).became_ready().hopeless


def test_ports_are_chosen_once_and_kept(tmp_path: Path) -> None:
    first = kept_ports(tmp_path, ["api", "ironic"])
    assert len(set(first.values())) == 2
    assert kept_ports(tmp_path, ["ironic", "api"]) == first
    more = kept_ports(tmp_path, ["api", "ironic", "lab"])
    assert {name: more[name] for name in first} == first
    assert more["lab"] not in first.values()


def test_a_kept_port_that_somebody_else_took_is_named(tmp_path: Path) -> None:
    port = kept_ports(tmp_path, ["api"])["api"]
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(PortTaken, match=rf"port {port} on 127.0.0.1 belongs to api") as refused:
            kept_ports(tmp_path, ["api"])
    assert str(tmp_path / "ports.json") in str(refused.value)
    assert kept_ports(tmp_path, ["api"])["api"] == port


def test_a_spoilt_list_of_ports_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text('{"api": "one"}')
    with pytest.raises(SupervisorError, match="Correct it, or remove it"):
        kept_ports(tmp_path, ["api"])


@pytest.mark.parametrize("port", [0, -1, 70000])
def test_a_port_that_cannot_be_one_is_refused_with_a_sentence(tmp_path: Path, port: int) -> None:
    (tmp_path / "ports.json").write_text(f'{{"api": {port}}}')
    with pytest.raises(SupervisorError, match=rf"api has port {port}.*1 to 65535"):
        kept_ports(tmp_path, ["api"])


def test_a_log_that_cannot_be_turned_over_goes_on_in_the_same_file(tmp_path: Path) -> None:
    for number in (2, 3):
        (tmp_path / f"part.log.{number}" / "in the way").mkdir(parents=True)
    log = Log(tmp_path / "part.log", limit=10)
    for number in range(3):
        log.write(f"line {number}\n".encode())
    assert log.last_lines() == ["line 0", "line 1", "line 2"]
    log.close()
    assert (tmp_path / "part.log").read_text() == "line 0\nline 1\nline 2\n"


def test_a_log_keeps_its_last_lines_and_sees_a_ready_line_in_pieces(tmp_path: Path) -> None:
    log = Log(tmp_path / "part.log", ready_line="part ready")
    log.write(b"one\npart re")
    assert not log.ready_line_seen.is_set()
    log.write(b"ady at port 1\nhalf")
    assert log.ready_line_seen.is_set()
    assert log.last_lines() == ["one", "part ready at port 1", "half"]
    log.new_life()
    assert not log.ready_line_seen.is_set()
    log.close()


def test_a_log_is_turned_over_at_its_limit_and_the_oldest_goes(tmp_path: Path) -> None:
    log = Log(tmp_path / "part.log", limit=10)
    for number in range(6):
        log.write(f"line {number}\n".encode())
    log.close()
    kept = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert kept == {
        "part.log": "line 5\n",
        "part.log.1": "line 4\n",
        "part.log.2": "line 3\n",
        "part.log.3": "line 2\n",
    }


def test_a_log_goes_on_where_an_earlier_run_ended(tmp_path: Path) -> None:
    for text in (b"before\n", b"after\n"):
        log = Log(tmp_path / "part.log")
        log.write(text)
        log.close()
    assert (tmp_path / "part.log").read_text() == "before\nafter\n"


async def test_probes_are_content_only_with_a_server_that_the_ca_vouches_for(tmp_path: Path) -> None:
    mine, foreign = Authority(tmp_path / "mine"), Authority(tmp_path / "foreign")
    certificate = mine.issue(tmp_path / "served", "server", ["127.0.0.1"])
    status = {"code": 503}

    async def well(_: web.Request) -> web.Response:
        return web.Response(status=status["code"])

    app = web.Application()
    app.router.add_get("/readyz", well)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate.server_context()).start()
    port = runner.addresses[0][1]
    url = f"https://127.0.0.1:{port}/readyz"
    try:
        assert await answers(url, mine.ca_file)() == f"GET {url} is answered with HTTP 503"
        status["code"] = 200
        assert await answers(url, mine.ca_file)() == ""
        assert "CERTIFICATE_VERIFY_FAILED" in await answers(url, foreign.ca_file)()
        assert await connects(port, mine.ca_file)() == ""
        assert "CERTIFICATE_VERIFY_FAILED" in await connects(port, foreign.ca_file)()
    finally:
        await runner.cleanup()
    assert await answers(url, mine.ca_file)() == f"nothing listens at 127.0.0.1:{port}"
    assert await connects(port, mine.ca_file)() == f"nothing listens at 127.0.0.1:{port}"


async def test_a_server_that_never_answers_is_not_waited_for_long(tmp_path: Path) -> None:
    ca = Authority(tmp_path / "ca")
    over = asyncio.Event()

    async def never_answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    silent = await asyncio.start_server(never_answer, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    async with silent:
        assert "within 0.3 s" in await connects(port, ca.ca_file, patience=0.3)()
        url = f"https://127.0.0.1:{port}/"
        assert "within 0.3 s" in await answers(url, ca.ca_file, patience=0.3)()
        over.set()


async def test_a_part_that_takes_connections_and_does_not_answer_is_busy_for_a_while_and_then_hung() -> None:
    says = {"answers": "no answer", "connects": ""}

    async def answer() -> str:
        return says["answers"]

    async def connect() -> str:
        return says["connects"]

    patient = may_be_busy(answer, connect, busy_for=600)
    assert await patient() == "no answer", "it has never answered"
    says["answers"] = ""
    assert await patient() == ""
    says["answers"] = "no answer"
    assert await patient() == ""
    says["connects"] = "nothing listens"
    assert await patient() == "nothing listens"
    says["connects"] = ""
    assert await patient() == "no answer", "what came in its place has never answered"

    hasty = may_be_busy(answer, connect, busy_for=-1)
    says["answers"] = ""
    assert await hasty() == ""
    says["answers"] = "no answer"
    assert await hasty() == "no answer"
