"""What reboot annotations ask for, one case a line."""

from typing import Any

import msgspec
import pytest

from ingot.api.baremetalhost import BareMetalHost
from ingot.hosts.states.reboots import Reboots, reboots
from ingot.provisioner import PowerOffMode

PLAIN = "reboot.metal3.io"
HARD, SOFT = PowerOffMode.HARD, PowerOffMode.SOFT


def asked(annotations: dict[str, str], state: str = "provisioned") -> Reboots:
    body: dict[str, Any] = {
        "metadata": {"name": "h", "annotations": annotations},
        "spec": {"online": True},
        "status": {"provisioning": {"state": state, "ID": "n"}},
    }
    return reboots(msgspec.convert(body, BareMetalHost))


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, Reboots()),
        ({"reboot.metal3.iox": "", "inspect.metal3.io": ""}, Reboots()),
        ({PLAIN: ""}, Reboots(once=True)),
        ({PLAIN: "{}"}, Reboots(once=True)),
        ({PLAIN: '{"mode": "soft"}'}, Reboots(once=True)),
        ({PLAIN: '{"mode": "hard"}'}, Reboots(once=True, mode=HARD)),
        ({f"{PLAIN}/a": ""}, Reboots(held_by=(f"{PLAIN}/a",))),
        ({f"{PLAIN}/b": "", f"{PLAIN}/a": ""}, Reboots(held_by=(f"{PLAIN}/a", f"{PLAIN}/b"))),
        ({PLAIN: "", f"{PLAIN}/a": ""}, Reboots(once=True, held_by=(f"{PLAIN}/a",))),
        (
            {PLAIN: '{"mode": "soft"}', f"{PLAIN}/a": '{"mode": "hard"}'},
            Reboots(once=True, held_by=(f"{PLAIN}/a",), mode=HARD),
        ),
        ({PLAIN: "now!"}, Reboots(once=True, unreadable=(PLAIN,))),
        ({PLAIN: '{"mode": "gently"}'}, Reboots(once=True, unreadable=(PLAIN,))),
        ({PLAIN: '["hard"]'}, Reboots(once=True, unreadable=(PLAIN,))),
        ({PLAIN: "[" * 5000}, Reboots(once=True, unreadable=(PLAIN,))),
    ],
)
def test_a_host_in_use_obeys_all_of_them_and_the_hardest_wins(
    annotations: dict[str, str], expected: Reboots
) -> None:
    assert asked(annotations) == expected
    assert asked(annotations, "externally provisioned") == expected
    assert bool(expected) is bool(annotations.keys() - {"reboot.metal3.iox", "inspect.metal3.io"})


@pytest.mark.parametrize("state", ["available", "inspecting", "provisioning", "preparing"])
@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({PLAIN: ""}, Reboots()),
        ({PLAIN: '{"mode": "hard"}'}, Reboots()),
        ({f"{PLAIN}/a": ""}, Reboots()),
        ({PLAIN: "now!"}, Reboots()),
        ({PLAIN: '{"force": true}'}, Reboots(once=True)),
        ({f"{PLAIN}/a": '{"force": true}'}, Reboots(held_by=(f"{PLAIN}/a",))),
        ({PLAIN: '{"force": true}', f"{PLAIN}/a": '{"mode": "hard"}'}, Reboots(once=True)),
    ],
)
def test_any_other_host_obeys_only_those_with_force(
    state: str, annotations: dict[str, str], expected: Reboots
) -> None:
    assert asked(annotations, state) == expected
