"""Which hosts there are, as a back end is told: all of them, and what is somebody's is never given away."""

from __future__ import annotations

from aiohttp import web
from aiohttp.test_utils import TestServer
from rack import Rack

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.meta import Key
from ingot.embedded.server import Running
from ingot.hosts.leaving.census import HostCensus
from ingot.kube import Access, Client, Informer, Leadership
from ingot.provisioner import Act, Refusal, Sight

RECORD = Sight(backend_id="nobody knows", state="active", holds_instance=True, powered_on=True)


async def test_the_back_end_is_told_of_every_host(rack: Rack) -> None:
    key = await rack.host("h1")
    host = await rack.until_state(key, "available")
    census = rack.backend.census
    assert census is not None
    known = next(one for one in census.hosts() or [] if one.key == key)
    assert (known.uid, known.backend_id) == (host.metadata.uid, host.status.provisioning.id)
    assert (known.address, known.boot_mac) == (host.spec.bmc.address, host.spec.boot_mac_address)
    assert census.covers(key.namespace)
    assert not census.covers("another")


async def test_a_record_is_dropped_only_where_no_host_has_its_name_or_is_registered_as_it(rack: Rack) -> None:
    key = await rack.host("h1")
    host = await rack.until_state(key, "available")
    census = rack.backend.census
    assert census is not None
    assert isinstance(await census.permit(key)(Act.DELETE, RECORD), Refusal)
    other = Key(key.namespace, "renamed")
    theirs = Sight(
        backend_id=host.status.provisioning.id, state="active", holds_instance=True, powered_on=True
    )
    assert isinstance(await census.permit(other)(Act.DELETE, theirs), Refusal)
    assert await census.permit(other)(Act.DELETE, RECORD) is None


async def test_nothing_but_the_record_is_given_away(rack: Rack) -> None:
    await rack.until_state(await rack.host("h1"), "available")
    census = rack.backend.census
    assert census is not None
    for act in set(Act) - {Act.DELETE}:
        assert isinstance(await census.permit(Key("rack", "gone"))(act, RECORD), Refusal)


async def answer_503(request: web.Request) -> web.Response:
    return web.json_response({"kind": "Status", "code": 503, "message": "etcd has no leader"}, status=503)


async def test_an_api_that_does_not_answer_keeps_the_record_and_ends_nobody(rack: Rack) -> None:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer_503)
    async with (
        TestServer(app) as server,
        Client(Access(server=str(server.make_url("")).rstrip("/"))) as client,
    ):
        census = HostCensus(client, Informer(client, BARE_METAL_HOSTS))
        answer = await census.permit(Key("rack", "gone"))(Act.DELETE, RECORD)
    assert isinstance(answer, Refusal)
    assert "cannot be asked" in answer.why
    assert "etcd has no leader" in answer.why


async def test_whoever_has_lost_the_lease_drops_no_record(api: Running) -> None:
    leadership = Leadership(lambda: 0.0)
    async with Client.from_kubeconfig(api.kubeconfig, guard=leadership.check) as client:
        census = HostCensus(client, Informer(client, BARE_METAL_HOSTS))
        answer = await census.permit(Key("rack", "gone"))(Act.DELETE, RECORD)
    assert isinstance(answer, Refusal)


async def test_before_all_hosts_are_known_nobody_is_told_that_there_are_none(rack: Rack) -> None:
    census = HostCensus(rack.client, Informer(rack.client, BARE_METAL_HOSTS))
    assert census.hosts() is None
