"""What a deploy step is told does not get into Ironic's log."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from ingot_ironic import quiet_steps

CONFIG = (
    '{"ignition": {"version": "3.4.0"}, "passwd": {"users": [{"name": "core", "passwordHash": "sesame\'s"}]}}'
)
STEP = {"interface": "deploy", "step": "install_coreos", "args": {"ignition": CONFIG}, "priority": 80}


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    before = logging.getLogRecordFactory()
    out = io.StringIO()
    logger = logging.getLogger("ironic.conductor.deployments.test")
    handler = logging.StreamHandler(out)
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    quiet_steps.install()
    try:
        yield logger, out
    finally:
        logging.setLogRecordFactory(before)
        logger.removeHandler(handler)


@pytest.mark.parametrize(
    ("message", "args"),
    [
        ("Executing %(step)s on node %(node)s", ({"step": STEP, "node": "n"},)),
        ("Deploying on node %(node)s, remaining steps: %(steps)s", ({"node": "n", "steps": [STEP, STEP]},)),
        ("status on step %(s)s: %(c)s", ({"s": STEP, "c": {"command_result": {"deploy_step": STEP}}},)),
        ("all of %s and %s", ([STEP], STEP)),
        (f"Node n failed deploy step {STEP}: the agent is gone", ()),
        (f"Node n failed deploy step { {**STEP, 'args': {'ignition': {'passwd': 'sesame'}}} }: gone", ()),
    ],
)
def test_a_config_in_the_arguments_of_a_step_is_in_no_log(
    log: tuple[logging.Logger, io.StringIO], message: str, args: tuple[Any, ...]
) -> None:
    logger, out = log
    logger.info(message, *args)
    assert "sesame" not in out.getvalue()
    assert "install_coreos" in out.getvalue()
    assert "***" in out.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        '{"step":"install_coreos","ignition":"sesame"}',
        "{'step': 'install_coreos', 'ignition':\n  'sesame'}",
        '{"step":"install_coreos","ignition":{"passwd":"sesame"}}',
    ],
)
def test_however_it_is_written_and_also_in_an_error_it_is_in_no_log(
    log: tuple[logging.Logger, io.StringIO], text: str
) -> None:
    logger, out = log
    logger.error("the agent said %s", text)
    logger.error("the agent said %s", ValueError(text))
    try:
        try:
            raise ValueError(text)
        except ValueError as error:
            raise RuntimeError("in a step") from error
    except RuntimeError:
        logger.exception("Node n failed deploy step install_coreos")
    assert "sesame" not in out.getvalue()
    assert out.getvalue().count("install_coreos") == 3


def test_the_trace_of_an_error_that_tells_nothing_is_logged(
    log: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, out = log
    try:
        raise ValueError("no ignition at all")
    except ValueError:
        logger.exception("failed")
    assert "Traceback" in out.getvalue()


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RecursionError


def test_logging_never_fails_of_it(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, out = log
    logger.error("the agent said %s", "'ignition': ''" * 5000)
    logger.error("the agent said %s", Unreadable())
    assert "could not be looked through: RecursionError" in out.getvalue()


def test_other_records_are_as_they_were(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, out = log
    plain = {"step": {"step": "write_image", "args": {"image_info": {"id": "i"}}}}
    logger.info("Executing %(step)s", plain)
    logger.info("the ignition is on for %s", "n1")
    logger.info("nothing %s", None)
    assert out.getvalue() == f"Executing {plain['step']}\nthe ignition is on for n1\nnothing None\n"


def test_what_is_logged_is_not_changed_itself(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, _ = log
    logger.info("Executing %(step)s", {"step": STEP})
    assert STEP["args"] == {"ignition": CONFIG}


def test_what_follows_the_config_in_a_message_is_still_told(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, out = log
    logger.info(f"Node n failed deploy step {STEP}: the agent is gone")
    assert "the agent is gone" in out.getvalue()
