"""What an agent is told is sent to it, and shown to nobody."""

from __future__ import annotations

import json
import logging

import pytest

from ingot_ironic import quiet_orders


class Client:
    """As Ironic's: makes an order, and shows it when the answer is no JSON."""

    def _get_command_body(self, method: str, params: dict[str, str]) -> str:
        return json.dumps({"name": method, "params": params})


class Quiet(Client):
    pass


quiet_orders.hook(Quiet)


def test_an_order_shows_nothing_of_itself_and_is_sent_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    order = Quiet()._get_command_body("execute_deploy_step", {"configdrive": "sesame"})
    shown = ['Request body: "%(body)s"' % {"body": order}, f"{order}", str([order]), "{:>5}".format(order)]  # noqa: UP031, UP032
    logging.getLogger().error("told %s", order)
    assert "sesame" not in "".join([*shown, caplog.text])
    assert shown[0] == 'Request body: "***"'
    assert json.loads(order.encode())["params"] == {"configdrive": "sesame"}
    assert len(order) == len(order.encode())


def test_an_order_that_is_hidden_already_keeps_what_it_is() -> None:
    class Twice(Quiet):
        pass

    quiet_orders.hook(Twice)
    assert b"sesame" in Twice()._get_command_body("x", {"configdrive": "sesame"}).encode()


def test_an_ironic_that_makes_orders_in_another_way_is_left_alone() -> None:
    class Other:
        def _get_command_body(self, method: str) -> str:
            return method

    with pytest.raises(AttributeError, match="takes other things than self, method, params"):
        quiet_orders.hook(Other)
    assert Other()._get_command_body("x") == "x"
