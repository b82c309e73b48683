"""The client: versions, credentials, TLS, pages, and what errors become."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path

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
    Overloaded,
    ServerError,
    Taken,
    Unavailable,
    WrongState,
    fault_text,
    refusal,
)
from ingot.provisioner.ironic.settings import ClientCertificate
from ingot.trust import Authority, Certificate


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
    assert await client.drivers() == ironic.drivers


async def test_a_server_with_a_strange_certificate_is_not_spoken_to(ironic: FakeIronic, where: IronicAccess):
    async with IronicClient(replace(where, ca_file=None)) as client:
        with pytest.raises(Unavailable, match="cannot be reached"):
            await client.drivers()
    assert ironic.requests == []
    async with IronicClient(replace(where, ca_file=None, insecure=True)) as client:
        assert await client.drivers() == ironic.drivers


async def test_on_a_unix_socket_the_same_is_said_with_the_same_password(
    certificate: Certificate, where: IronicAccess, tmp_path: Path
):
    socket = tmp_path / "ironic.sock"
    access = IronicAccess.from_environment({"IRONIC_ENDPOINT": f"unix:{socket}"})
    async with IronicClient(replace(access, auth_folder=where.auth_folder, timeout=5)) as client:
        with pytest.raises(Unavailable, match=f"Ironic at unix:{socket} cannot be reached"):
            await client.drivers()
        first = FakeIronic(certificate)
        await first.start_on(socket)
        assert await client.drivers() == first.drivers
        await first.stop()
        # Ironic takes the socket away when it stops, and makes another one.
        second = FakeIronic(certificate)
        second.add_node(NODE)
        await second.start_on(socket)
        assert (await client.node(NODE)).name == NODE
        second.password = "another"
        with pytest.raises(Unavailable, match="refuses the operator's own user name or password"):
            await client.node(NODE)
        await second.stop()


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
        (403, "Node 1 is protected and cannot be undeployed, rebuilt or deleted", BadRequest),
        (403, "no", Unavailable),
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
        (
            {"IRONIC_ENDPOINT": "", "IRONIC_NAME": "ironic", "IRONIC_NAMESPACE": "metal"},
            "IRONIC_NAME is 'ironic', and Ingot does not read where Ironic is from an Ironic object. Set IRONIC_ENDPOINT to "
            "the URL of its Service, such as https://ironic.metal.svc",
        ),
        ({"IRONIC_ENDPOINT": "", "IRONIC_NAME": "ironic"}, "such as https://ironic.NAMESPACE.svc"),
        ({"IRONIC_ENDPOINT": "ftp://x"}, "IRONIC_ENDPOINT"),
        ({"IRONIC_ENDPOINT": "https://u:p@x"}, "must hold no password"),
        ({"IRONIC_ENDPOINT": "unix:ironic.sock"}, "the whole path of a socket"),
        ({"IRONIC_ENDPOINT": "unix://host/ironic.sock"}, "the whole path of a socket"),
        ({"IRONIC_ENDPOINT": f"unix:/{'a' * 107}"}, "at most 107 bytes"),
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


async def test_ironic_is_given_the_time_it_asks_for(client, ironic: FakeIronic):
    ironic.add_node(NODE)
    ironic.overloaded = ["0.05", "0"]
    assert (await client.node(NODE)).name == NODE
    assert ironic.overloaded == []


async def test_a_longer_time_is_left_to_the_caller(client, ironic: FakeIronic):
    ironic.add_node(NODE)
    ironic.overloaded = ["120"]
    with pytest.raises(Overloaded) as overloaded:
        await client.node(NODE)
    assert overloaded.value.retry_after == 120
    assert isinstance(overloaded.value, BackendUnavailable)


@pytest.mark.parametrize(
    ("status", "retry_after", "expected"),
    [
        (503, "", ServerError),
        (503, "3", Overloaded),
        (429, "", Overloaded),
        (503, "Wed, 21 Oct 2026 07:28:00 GMT", Overloaded),
    ],
)
def test_only_who_asks_for_time_gets_it(status, retry_after, expected):
    assert type(refusal("GET /v1/nodes", status, b"", retry_after=retry_after)) is expected


@pytest.fixture
def strict(ironic: FakeIronic, certificate: Certificate, tmp_path: Path) -> Certificate:
    """An Ironic, or what stands before it, that speaks only with those who have a certificate of its CA."""
    authority = Authority(tmp_path / "clients")
    context = certificate.server_context()
    context.load_verify_locations(authority.ca_file)
    context.verify_mode = ssl.CERT_REQUIRED
    ironic.tls = context
    return authority.issue(tmp_path, "operator", ["127.0.0.1"])


async def test_who_we_are_is_proven_by_a_certificate(
    ironic: FakeIronic, where: IronicAccess, strict: Certificate
):
    await ironic.stop()
    await ironic.start()
    at = replace(where, endpoint=ironic.url)
    async with IronicClient(at) as nobody:
        with pytest.raises(Unavailable):
            await nobody.version()
    ours = ClientCertificate(certificate=strict.cert_file, key=strict.key_file)
    async with IronicClient(replace(at, client_certificate=ours)) as somebody:
        assert await somebody.version() == 110


async def test_a_certificate_that_does_not_fit_its_key_is_said(
    where: IronicAccess, strict: Certificate, certificate
):
    wrong = ClientCertificate(certificate=strict.cert_file, key=certificate.key_file)
    async with IronicClient(replace(where, client_certificate=wrong)) as client:
        with pytest.raises(Unavailable, match="client certificate"):
            await client.version()


async def test_the_name_in_the_certificate_is_passed_over_only_where_that_is_asked_for(
    ironic: FakeIronic, where: IronicAccess
):
    by_name = replace(where, endpoint=f"https://localhost:{ironic.port}/v1")
    async with IronicClient(by_name) as strict:
        with pytest.raises(Unavailable):
            await strict.version()
    async with IronicClient(replace(by_name, skip_name_check=True)) as lenient:
        assert await lenient.version() == 110


def test_half_a_client_certificate_is_a_mistake(tmp_path: Path):
    (tmp_path / "tls.crt").write_text("x")
    half = {"IRONIC_CLIENT_CERT_FILE": str(tmp_path / "tls.crt")}
    with pytest.raises(SettingsError, match="needs both its files"):
        ClientCertificate.from_environment(half)
    with pytest.raises(SettingsError, match="IRONIC_CLIENT_PRIVATE_KEY_FILE names"):
        ClientCertificate.from_environment(half | {"IRONIC_CLIENT_PRIVATE_KEY_FILE": "/nowhere/tls.key"})
    assert ClientCertificate.from_environment({}) is None
