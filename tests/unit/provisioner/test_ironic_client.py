"""The client: versions, credentials, TLS, pages, and what errors become."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_ironic import FakeIronic
from ironic_orders import NODE

from ingot.provisioner import BackendUnavailable
from ingot.provisioner.ironic import IronicAccess, SettingsError
from ingot.provisioner.ironic.client import IronicClient, choose_version
from ingot.provisioner.ironic.errors import (
    BadRequest,
    Conflict,
    InTransition,
    IronicError,
    Locked,
    NotFound,
    ServerError,
    Taken,
    Unavailable,
    WrongState,
    fault_text,
    refusal,
)


@pytest.fixture
async def client(where: IronicAccess):
    async with IronicClient(where) as opened:
        yield opened


@pytest.mark.parametrize(
    ("newest", "chosen"),
    [("1.115", 110), ("1.110", 110), ("1.109", 109), ("1.100", 95), ("1.94", 93), ("1.89", 89)],
)
def test_the_newest_version_that_both_know_is_spoken(newest, chosen):
    assert choose_version(newest) == chosen


@pytest.mark.parametrize("newest", ["1.88", "2.1", "", "one"])
def test_an_ironic_that_is_too_old_is_unavailable_with_a_sentence(newest):
    with pytest.raises(BackendUnavailable, match=r"needs 1\.89"):
        choose_version(newest)


async def test_fields_that_an_older_ironic_does_not_know_are_not_asked_for(client, ironic: FakeIronic):
    ironic.newest = "1.95"
    ironic.add_node(NODE)
    pages = [page async for page in client.pages_of_nodes()]
    assert pages[0][0].name == NODE


async def test_an_ironic_that_was_downgraded_is_asked_for_its_version_again(client, ironic: FakeIronic):
    ironic.add_node(NODE)
    await client.node(NODE)
    ironic.newest = "1.95"
    assert (await client.node(NODE)).name == NODE


async def test_all_pages_are_read_even_if_ironic_gives_less_than_was_asked(client, ironic: FakeIronic):
    for number in range(7):
        ironic.add_node(f"ns~n{number}")
    ironic.page_limit = 3
    names = {node.name async for page in client.pages_of_nodes() for node in page}
    assert len(names) == 7


async def test_a_rotated_password_is_read_again_from_its_file(
    client, ironic: FakeIronic, where: IronicAccess
):
    await client.drivers()
    ironic.password = "rotated"
    with pytest.raises(Unavailable, match="METAL3_AUTH_ROOT_DIR"):
        await client.drivers()
    (where.auth_folder / "password").write_text("rotated")
    assert await client.drivers() == ["redfish"]


async def test_a_server_with_a_strange_certificate_is_not_spoken_to(ironic: FakeIronic, where: IronicAccess):
    async with IronicClient(replace(where, ca_file=None)) as client:
        with pytest.raises(Unavailable, match="cannot be reached"):
            await client.drivers()
    assert ironic.requests == []
    async with IronicClient(replace(where, ca_file=None, insecure=True)) as client:
        assert await client.drivers() == ["redfish"]


async def test_a_name_with_strange_characters_stays_one_segment(client, ironic: FakeIronic):
    with pytest.raises(NotFound):
        await client.node("a/../b?x=1")
    assert ironic.requests[-1].startswith("GET /v1/nodes/a")


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (404, "Node x could not be found.", NotFound),
        (409, "Node x is locked by host h, please retry after the current operation is completed.", Locked),
        (409, "Node x can not be updated while a state transition is in progress.", InTransition),
        (409, "A node with name x already exists.", Taken),
        (409, "Node x is associated with instance y.", Conflict),
        (
            400,
            'The requested action "x" can not be performed on node "y" while it is in state "z".',
            WrongState,
        ),
        (400, "Invalid", BadRequest),
        (500, "Unable to establish connection", ServerError),
        (503, "no free workers", ServerError),
        (401, "no", Unavailable),
    ],
)
def test_each_refusal_has_its_place_in_the_tree(status, text, expected):
    import json

    body = json.dumps({"error_message": json.dumps({"faultstring": text})}).encode()
    error = refusal("GET /v1/x", status, body)
    assert type(error) is expected
    assert isinstance(error, IronicError)
    assert isinstance(error, BackendUnavailable) == isinstance(error, Unavailable)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error_message": "{\\"faultstring\\": \\"inner\\"}"}', "inner"),
        (b'{"error_message": {"faultstring": "object"}}', "object"),
        (b'{"error_message": "plain"}', "plain"),
        (b"<html>proxy says no</html>", "<html>proxy says no</html>"),
        (b"", ""),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_the_sentence_is_found_whatever_is_around_it(body, text):
    assert fault_text(body) == text


def test_a_token_in_an_error_does_not_get_into_the_exception():
    error = refusal("GET /x", 500, b'{"error_message": "https://agent/?wait=true&agent_token=s3cr3t failed"}')
    assert "s3cr3t" not in str(error)


GOOD = {"IRONIC_ENDPOINT": "https://127.0.0.1:6385"}


def test_the_environment_of_metal3_is_understood(tmp_path):
    (tmp_path / "ironic").mkdir()
    (tmp_path / "ironic" / "username").write_text("u\n")
    (tmp_path / "ironic" / "password").write_text("p\n")
    access = IronicAccess.from_environment(
        GOOD
        | {
            "METAL3_AUTH_ROOT_DIR": str(tmp_path),
            "IRONIC_INSECURE": "true",
            "DEPLOY_ISO_URL": "https://x/iso",
            "IRONIC_CLIENT_TIMEOUT": "1m",
        }
    )
    assert access.endpoint == "https://127.0.0.1:6385/v1"
    username, password = access.credentials()
    assert (username, password.reveal()) == ("u", "p")
    assert access.insecure
    assert access.ramdisk.iso == "https://x/iso"
    assert access.timeout == 60


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"IRONIC_ENDPOINT": ""}, "IRONIC_ENDPOINT is not set"),
        ({"IRONIC_ENDPOINT": "ftp://x"}, "IRONIC_ENDPOINT"),
        ({"IRONIC_ENDPOINT": "https://u:p@x"}, "must hold no password"),
        ({"IRONIC_CACERT_FILE": "/nowhere"}, "IRONIC_CACERT_FILE"),
        ({"IRONIC_INSECURE": "perhaps"}, "IRONIC_INSECURE"),
        ({"IRONIC_CLIENT_TIMEOUT": "soon"}, "IRONIC_CLIENT_TIMEOUT"),
        ({"IRONIC_CLIENT_TIMEOUT": "0"}, "IRONIC_CLIENT_TIMEOUT"),
        ({"DEPLOY_KERNEL_URL": "http://x"}, "belong together"),
        ({"DEPLOY_ISO_URL": "/local/file"}, "DEPLOY_ISO_URL"),
    ],
)
def test_a_wrong_setting_is_named(change, words):
    with pytest.raises(SettingsError, match=words):
        IronicAccess.from_environment(GOOD | change)
