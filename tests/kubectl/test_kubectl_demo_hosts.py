"""Metal3's demo hosts: each comes to the state of its name, says what it is meant to say, and can be deleted from there."""

from __future__ import annotations

from demo_hall import IMAGE, DemoHall, credentials, host

WITHOUT_IMAGE = {
    "demo-registration-error": ("registering", "failed to register new host"),
    "demo-registering": ("registering", ""),
    "demo-available": ("available", ""),
    "demo-inspecting": ("inspecting", ""),
    "demo-preparing-error": ("preparing", "failed to prepare host"),
    "demo-preparing": ("preparing", ""),
}
WITH_IMAGE = {
    "demo-validation-error": ("provisioning", "validation failed"),
    "demo-provisioning": ("provisioning", ""),
    "demo-provisioned": ("provisioned", ""),
}
WANTED = WITHOUT_IMAGE | WITH_IMAGE
HANG = ("demo-registering", "demo-inspecting", "demo-preparing", "demo-provisioning")


def test_metal3s_demo_hosts_come_to_the_state_of_their_name(busy_hall: DemoHall):
    busy_hall.apply(
        *(credentials(name) for name in WANTED),
        *(host(name) for name in WITHOUT_IMAGE),
        *(host(name, image=IMAGE) for name in WITH_IMAGE),
    )
    busy_hall.until(lambda: all(has_come(*found) for found in told(busy_hall)))
    assert {name for name, *_ in told(busy_hall)} == {*WANTED}
    busy_hall.kubectl("delete", "bmh", "--timeout=120s", *HANG)
    busy_hall.kubectl("delete", "bmh", "--wait=false", *(WANTED.keys() - {*HANG}))


def told(hall: DemoHall) -> list[tuple[str, str, str]]:
    statuses = [(found["metadata"]["name"], found.get("status", {})) for found in hall.get("bmh")]
    return [
        (name, status.get("provisioning", {}).get("state", ""), status.get("errorMessage", ""))
        for name, status in statuses
        if name in WANTED
    ]


def has_come(name: str, state: str, error: str) -> bool:
    wanted, message = WANTED[name]
    return state == wanted and message in error and bool(error) is bool(message)
