"""When a host is provisioned, when it is emptied, and above all when it is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.api.baremetalhost import (
    BareMetalHost,
    BareMetalHostSpec,
    BareMetalHostStatus,
    CustomDeploy,
    Image,
    ProvisionStatus,
    State,
)
from ingot.api.installed import Installation, begun, installed, must_deprovision, needs_provisioning, wanted

A, B = "http://images/a", "http://images/b"
COREOS = "CoreOS, from the ramdisk"
"""Stands for an image of that format without a URL."""
METAL = "CoreOS, from the URL of image A"


def host(
    *,
    state: State,
    image: str | None = None,
    method: str | None = None,
    has_image: str | None = None,
    has_method: str | None = None,
    attempted: str | None = None,
    online: bool = True,
) -> BareMetalHost:
    """`None` leaves a part out, "" writes it with nothing in it, as Go programs do."""

    def as_image(url: str | None) -> Image | None:
        if url == COREOS:
            return Image(url="", format="coreos")
        if url == METAL:
            return Image(url=A, format="coreos")
        return None if url is None else Image(url=url)

    def as_method(name: str | None) -> CustomDeploy | None:
        return None if name is None else CustomDeploy(method=name)

    return BareMetalHost(
        spec=BareMetalHostSpec(online=online, image=as_image(image), custom_deploy=as_method(method)),
        status=BareMetalHostStatus(
            last_attempted_image=as_image(attempted),
            provisioning=ProvisionStatus(
                state=state, image=as_image(has_image), custom_deploy=as_method(has_method)
            ),
        ),
    )


@pytest.mark.parametrize(
    ("found", "needed"),
    [
        (host(state=State.AVAILABLE), False),
        (host(state=State.AVAILABLE, image=A), True),
        (host(state=State.AVAILABLE, image=A, has_image=""), True),
        (host(state=State.AVAILABLE, image=A, online=False), False),
        (host(state=State.AVAILABLE, image=""), False),
        (host(state=State.AVAILABLE, image=A, has_image=A), False),
        (host(state=State.AVAILABLE, image=B, has_image=A), False),
        (host(state=State.AVAILABLE, method="install_coreos"), True),
        (host(state=State.AVAILABLE, method="install_coreos", has_method="install_coreos"), False),
        (host(state=State.AVAILABLE, method="install_coreos", has_method="other"), True),
        (host(state=State.AVAILABLE, method="install_coreos", online=False), False),
        (host(state=State.AVAILABLE, image=A, method="m", has_method="m"), True),
        (host(state=State.AVAILABLE, image=COREOS), True),
        (host(state=State.AVAILABLE, image=COREOS, has_image=""), True),
        (host(state=State.AVAILABLE, image=COREOS, online=False), False),
        (host(state=State.AVAILABLE, image=COREOS, has_image=COREOS), False),
        (host(state=State.AVAILABLE, image=COREOS, has_method="install_coreos"), False),
    ],
)
def test_a_host_is_provisioned_when_something_is_wanted_that_is_not_there(
    found: BareMetalHost, needed: bool
) -> None:
    assert needs_provisioning(found) is needed


@pytest.mark.parametrize(
    ("found", "emptied"),
    [
        # What runs is wanted.
        (host(state=State.PROVISIONED, image=A, has_image=A), False),
        (host(state=State.PROVISIONED, image=A, has_image=A, online=False), False),
        (host(state=State.PROVISIONED, method="m", has_method="m"), False),
        (host(state=State.PROVISIONED, image=A, method="m", has_image=A, has_method="m"), False),
        (host(state=State.PROVISIONED, image=COREOS, has_image=COREOS), False),
        # The two ways to ask for CoreOS mean the same.
        (host(state=State.PROVISIONED, image=COREOS, has_method="install_coreos"), False),
        (host(state=State.PROVISIONED, method="install_coreos", has_image=COREOS), False),
        # It was removed or replaced.
        (host(state=State.PROVISIONED, has_image=COREOS), True),
        (host(state=State.PROVISIONED, image=A, has_image=COREOS), True),
        (host(state=State.PROVISIONED, image=COREOS, has_image=A), True),
        (host(state=State.PROVISIONED, method="other", has_image=COREOS), True),
        (host(state=State.PROVISIONED, has_image=A), True),
        (host(state=State.PROVISIONED, image="", has_image=A), True),
        (host(state=State.PROVISIONED, image=B, has_image=A), True),
        (host(state=State.PROVISIONED, has_method="m"), True),
        (host(state=State.PROVISIONED, method="n", has_method="m"), True),
        (host(state=State.PROVISIONED, image=A, has_image=A, has_method="m"), True),
        (host(state=State.PROVISIONED, method="m", has_image=A, has_method="m"), True),
        (host(state=State.PROVISIONED, image=B, method="m", has_image=A, has_method="m"), True),
        (host(state=State.PROVISIONED, method="m", has_image=A), True),
        # The same image, once written to the disk as it is and once installed by CoreOS.
        (host(state=State.PROVISIONED, image=METAL, has_image=A), True),
        (host(state=State.PROVISIONED, image=A, has_image=METAL), True),
        (host(state=State.PROVISIONED, image=METAL, has_image=METAL), False),
        (host(state=State.PROVISIONED, image=A, method="install_coreos", has_image=METAL), False),
        (host(state=State.PROVISIONING, image=METAL, attempted=A), True),
        # Something was added that contradicts nothing.
        (host(state=State.PROVISIONED, image=A, method="m", has_image=A), False),
        (host(state=State.PROVISIONED, image=A, method="m", has_method="m"), False),
        (host(state=State.PROVISIONED, image=A, method="m", has_image="", has_method="m"), False),
        # Nothing is known of what runs: only removing everything empties the host.
        (host(state=State.PROVISIONED, image=A), False),
        (host(state=State.PROVISIONED), True),
        # On the way, what was begun counts.
        (host(state=State.PROVISIONING, image=A, attempted=A), False),
        (host(state=State.PROVISIONING, image=A), False),
        (host(state=State.PROVISIONING, image=COREOS, attempted=COREOS), False),
        (host(state=State.PROVISIONING, image=COREOS, attempted=A), True),
        (host(state=State.PROVISIONING, image=A, attempted=COREOS), True),
        (host(state=State.PROVISIONING, image=B, attempted=A), True),
        (host(state=State.PROVISIONING, attempted=A), True),
        (host(state=State.PROVISIONING), True),
        (host(state=State.PROVISIONING, method="m"), False),
    ],
)
def test_a_host_is_emptied_when_what_it_runs_is_not_wanted_any_more(
    found: BareMetalHost, emptied: bool
) -> None:
    assert must_deprovision(found) is emptied


@pytest.mark.parametrize("state", sorted(set(State) - {State.PROVISIONED, State.PROVISIONING}))
def test_a_host_in_any_other_state_has_nothing_to_be_emptied_of(state: State) -> None:
    assert must_deprovision(host(state=state, has_image=A, attempted=A)) is False


def test_checksum_and_format_do_not_make_another_installation() -> None:
    found = BareMetalHost(
        spec=BareMetalHostSpec(online=True, image=Image(url=A, checksum="22", format="raw")),
        status=BareMetalHostStatus(
            provisioning=ProvisionStatus(
                state=State.PROVISIONED, image=Image(url=A, checksum="11", format="qcow2")
            )
        ),
    )
    assert not must_deprovision(found)
    assert not needs_provisioning(found)


def test_what_is_wanted_installed_and_begun_are_told_apart() -> None:
    found = host(state=State.PROVISIONING, image=B, has_image="", attempted=A)
    assert wanted(found.spec) == Installation(image_url=B)
    assert installed(found.status) is None
    assert begun(found.status) == Installation(image_url=A)


URLS = st.sampled_from([None, "", A, B, COREOS])
METHODS = st.sampled_from([None, "", "m", "install_coreos"])


@given(url=URLS, method=METHODS)
def test_what_was_just_installed_as_wanted_is_never_emptied_nor_installed_again(
    url: str | None, method: str | None
) -> None:
    found = host(state=State.PROVISIONED, image=url, method=method, has_image=url, has_method=method)
    if wanted(found.spec) is not None:
        assert not must_deprovision(found)
        assert not needs_provisioning(found)


@given(url=URLS, method=METHODS, has_url=URLS, has_method=METHODS)
def test_a_host_that_was_emptied_for_a_wish_takes_up_that_wish(
    url: str | None, method: str | None, has_url: str | None, has_method: str | None
) -> None:
    before = host(state=State.PROVISIONED, image=url, method=method, has_image=has_url, has_method=has_method)
    after = host(state=State.AVAILABLE, image=url, method=method)
    if must_deprovision(before):
        assert needs_provisioning(after) is (wanted(before.spec) is not None)
