"""The error of an IPMI call says what ipmitool printed."""

from __future__ import annotations

from typing import Any

import pytest

from ingot_ironic import ipmi_words

WRONG_PASSWORD = """\
Loading IANA PEN Registry...
Unable to Get Channel Cipher Suites
> RAKP 2 HMAC is invalid
Error: Unable to establish IPMI v2 / RMCP+ session
"""
NOBODY_THERE = """\
Loading IANA PEN Registry...
Get Auth Capabilities error
Error issuing Get Channel Authentication Capabilities request
Error: Unable to establish IPMI v2 / RMCP+ session
"""


class ProgramFailed(Exception):
    def __init__(self, stderr: str | None) -> None:
        self.stderr = stderr


def failure() -> Any:
    class IPMIFailure(Exception):
        _msg_fmt = "IPMI call failed: %(cmd)s."

        def __init__(self, message: str | None = None, **kwargs: Any) -> None:
            super().__init__(message or self._msg_fmt % kwargs)

    ipmi_words.hook(IPMIFailure)
    return IPMIFailure


def raised_after(error: Exception) -> str:
    """What the error says that is made while this one is handled."""
    kind = failure()
    try:
        raise error
    except type(error):
        return str(kind(cmd="power status"))


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (WRONG_PASSWORD, "RAKP 2 HMAC is invalid"),
        (
            NOBODY_THERE,
            "Get Auth Capabilities error; Error issuing Get Channel Authentication Capabilities request",
        ),
    ],
)
def test_what_ipmitool_printed_is_told_without_what_it_always_prints(printed: str, said: str) -> None:
    assert raised_after(ProgramFailed(printed)) == f"IPMI call failed: power status. ipmitool says: {said}"


@pytest.mark.parametrize(
    "error",
    [
        ProgramFailed(None),
        ProgramFailed("Error: Unable to establish IPMI v2 / RMCP+ session\n"),
        ValueError("of another kind"),
    ],
)
def test_where_ipmitool_said_nothing_the_error_is_as_it_was(error: Exception) -> None:
    assert raised_after(error) == "IPMI call failed: power status."


def test_an_error_outside_of_any_call_and_one_with_words_of_its_own_stay_as_they_are() -> None:
    kind = failure()
    assert str(kind(cmd="power on")) == "IPMI call failed: power on."
    assert str(kind("in its own words")) == "in its own words"


def test_what_is_told_is_short() -> None:
    assert len(ipmi_words.telling("word " * 500)) <= ipmi_words.LONGEST


def test_an_ironic_whose_error_names_no_command_is_left_as_it_is() -> None:
    class Other(Exception):
        _msg_fmt = "IPMI call failed"

    with pytest.raises(AttributeError, match="does not name the command"):
        ipmi_words.hook(Other)
