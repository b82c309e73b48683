"""A token that was lost together with Ironic is given once more, and no other is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ingot_ironic import token_again


class Ironic:
    """One process of it, on a database that outlives it: gives a token once."""

    def __init__(self, database: dict[str, Any]) -> None:
        class Manager:
            def get_node_with_token(self, context: str, node_id: str) -> Any:
                if "agent_secret_token" in database:
                    return node({**database, "agent_secret_token": "******"})
                database["agent_secret_token"] = "secret"
                return node(database)

        # As Ironic wraps it: what it takes cannot be seen.
        undecorated = Manager.get_node_with_token
        Manager.get_node_with_token = lambda *arguments, **named: undecorated(*arguments, **named)  # type: ignore[method-assign]
        token_again.hook(Manager, lambda _context, _uuid: node(database))
        self._manager = Manager()

    def look_up(self) -> str:
        found = self._manager.get_node_with_token("context", node_id="a")
        return str(found.driver_internal_info["agent_secret_token"])


def node(info: dict[str, Any]) -> Any:
    return SimpleNamespace(uuid="a", driver_internal_info=dict(info))


def test_an_agent_that_asks_again_after_a_restart_gets_its_token_once() -> None:
    database: dict[str, Any] = {}
    assert Ironic(database).look_up() == "secret"
    restarted = Ironic(database)
    assert [restarted.look_up() for _ in range(2)] == ["secret", "******"]


def test_the_process_that_made_a_token_does_not_give_it_again() -> None:
    ironic = Ironic({})
    assert [ironic.look_up() for _ in range(2)] == ["secret", "******"]


@pytest.mark.parametrize("known", ["agent_url", "agent_secret_token_pregenerated"])
def test_a_token_that_an_agent_has_is_not_given_again(known: str) -> None:
    assert Ironic({"agent_secret_token": "secret", known: "https://agent"}).look_up() == "******"


def test_an_ironic_that_gives_no_tokens_is_left_alone() -> None:
    class Manager:
        pass

    with pytest.raises(AttributeError, match="get_node_with_token"):
        token_again.hook(Manager, lambda _context, _uuid: None)
