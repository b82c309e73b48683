"""A Kubernetes API to live on, known only by its kubeconfig: the embedded server as a process of its own, or, with
`INGOT_TEST_KUBECONFIG`, the cluster that this file points at. The tests of this folder do not know which of the two it is.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from demo_hall import DemoHall, api_server

SCRIPT = """
default:
  others: {seconds: 0.1}
  components: {bios: "1.0", bmc: "2.1"}
hosts:
  flaky: {inspect: {fails: 1, message: no disks were found}}
  denied: {register: {fails: 1, refusesCredentials: true, message: the user name or the password is refused}}
"""


@pytest.fixture(scope="session")
def given() -> str:
    """The kubeconfig of a cluster; "" where there is none."""
    return os.environ.get("INGOT_TEST_KUBECONFIG", "")


@pytest.fixture(scope="session")
def kubeconfig(given: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if given:
        yield Path(given)
        return
    with api_server(tmp_path_factory.mktemp("api") / "state") as path:
        yield path


@pytest.fixture(scope="session")
def new_hall(
    given: str, kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], DemoHall]]:
    """Makes halls: each has machines, operators and a namespace of its own."""
    with ExitStack() as stack:

        def make() -> DemoHall:
            folder = tmp_path_factory.mktemp("hall")
            # A cluster has to be told of the rules; the embedded API has them built in.
            hall = DemoHall(kubeconfig, folder, f"hall-{secrets.token_hex(4)}", webhook=bool(given))
            hall.open()
            # Where the whole cluster goes in the end, nothing need go before.
            stack.callback(hall.close, tidily=bool(given) and "INGOT_TEST_THROWAWAY" not in os.environ)
            return hall

        yield make


@pytest.fixture(scope="session")
def busy_hall(new_hall: Callable[[], DemoHall]) -> DemoHall:
    """One for all tests that need nothing but an operator that works."""
    hall = new_hall()
    hall.operator(SCRIPT).leads()
    hall.until_rules_hold()
    return hall


@pytest.fixture
def hall(new_hall: Callable[[], DemoHall]) -> DemoHall:
    return new_hall()
