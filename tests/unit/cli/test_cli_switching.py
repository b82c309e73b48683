"""Whether switches are looked after is read from Metal3's environment, and what is wrong with it is said in a sentence."""

from __future__ import annotations

import click
import pytest

from ingot.cli.parts.switching import switches_from
from ingot.hosts import SwitchSettings

SET = {
    "IRONIC_NETWORKING_ENABLED": "true",
    "IRONIC_SWITCH_CONFIGS_SECRET": "configs",
    "IRONIC_SWITCH_CREDENTIALS_SECRET": "credentials",
}


@pytest.mark.parametrize("flag", ["", "false", "0"])
def test_nobody_asked_for_it(flag: str) -> None:
    assert switches_from(SET | {"IRONIC_NETWORKING_ENABLED": flag}) is None


def test_names_of_the_secrets_and_the_path() -> None:
    assert switches_from(SET) == SwitchSettings(configs_secret="configs", credentials_secret="credentials")
    found = switches_from(SET | {"IRONIC_SWITCH_CREDENTIALS_PATH": "/keys"})
    assert found is not None
    assert found.credentials_path == "/keys"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"IRONIC_NETWORKING_ENABLED": "perhaps"}, "IRONIC_NETWORKING_ENABLED is 'perhaps'"),
        ({"IRONIC_SWITCH_CONFIGS_SECRET": ""}, "IRONIC_SWITCH_CONFIGS_SECRET is not"),
        ({"IRONIC_SWITCH_CREDENTIALS_SECRET": "configs"}, "the same Secret"),
        ({"IRONIC_SWITCH_CREDENTIALS_PATH": "keys"}, "absolute path"),
        ({"IRONIC_SWITCH_CREDENTIALS_PATH": "/keys\npassword = x"}, "absolute path"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, str], words: str) -> None:
    with pytest.raises(click.ClickException) as refused:
        switches_from(SET | change)
    assert words in refused.value.message
