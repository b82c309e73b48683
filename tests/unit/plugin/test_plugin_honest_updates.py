"""An update of a BMC's own firmware that the BMC says has failed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ingot_ironic import honest_updates

FAILED = frozenset({"Exception", "Killed"})
UPDATE = {"component": "bmc", "task_monitor": "/task/1"}


class Bmc:
    """What it says of its task, and what Ironic makes of it."""

    def __init__(self, state: str | Exception, *words: str | None) -> None:
        self.done: list[Any] = []
        self.locks = 0
        bmc = self

        class Firmware:
            def _handle_bmc_update_completion(
                self, task: Any, update_service: Any, settings: Any, current_update: Any
            ) -> None:
                bmc.done.append("looks at the version")

            def _handle_task_completion(
                self,
                task: Any,
                sushy_task: Any,
                messages: list[str],
                update_service: Any,
                settings: Any,
                current_update: Any,
            ) -> None:
                bmc.done.append(messages)

        def read(node: str, uri: str) -> Any:
            assert (node, uri) == ("a node", "/task/1")
            if isinstance(state, Exception):
                raise state
            messages = [SimpleNamespace(message=word, message_id="Base.Failed") for word in words]
            return SimpleNamespace(task_state=state, messages=messages or None)

        honest_updates.hook(Firmware, read, FAILED)
        self.firmware = Firmware()

    def looks(self) -> list[Any]:
        def upgrade_lock() -> None:
            self.locks += 1

        task = SimpleNamespace(node="a node", upgrade_lock=upgrade_lock)
        self.firmware._handle_bmc_update_completion(task, None, [UPDATE], UPDATE)
        return self.done


def test_an_update_that_failed_fails_with_the_words_of_the_bmc() -> None:
    bmc = Bmc("Exception", "the image is not signed", None)
    assert bmc.looks() == [["the image is not signed", "Base.Failed"]]
    assert bmc.locks == 1


def test_one_that_failed_without_a_word_fails_too() -> None:
    assert Bmc("Killed").looks() == [[]]


@pytest.mark.parametrize("state", ["Completed", "Running", ConnectionError("away"), KeyError("forgotten")])
def test_of_all_others_the_version_is_looked_at(state: str | Exception) -> None:
    assert Bmc(state, "well").looks() == ["looks at the version"]


def test_an_ironic_that_looks_after_them_in_another_way_is_left_alone() -> None:
    class Other:
        def _handle_bmc_update_completion(self, task: Any) -> None: ...

    before = Other._handle_bmc_update_completion
    with pytest.raises(AttributeError, match="takes other things"):
        honest_updates.hook(Other, lambda node, uri: None, FAILED)
    assert Other._handle_bmc_update_completion is before
