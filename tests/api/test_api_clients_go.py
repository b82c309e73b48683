"""A foreign client: client-go with its shared informers, as every Go controller uses it (tools/kubernetes/informer)."""

from __future__ import annotations

from pathlib import Path

from cuttable_line import line_to
from go_informer import informer
from kubernetes_api import Api


async def test_a_go_controller_does_its_work_and_its_informer_sees_it(api: Api, kubeconfig: Path) -> None:
    await api.new_host("first")
    await api.post(api.secrets, {"metadata": {"name": "s0"}})
    async with informer(kubeconfig, api.namespace) as go:
        synced = await go.until(did="sync")
        assert (synced["hosts"], synced["secrets"]) == (["first"], ["s0"])

        made = (await go.do("create h1"))["object"]
        assert made["metadata"]["generation"] == 1
        assert (await go.do("patch h1"))["object"]["spec"]["online"] is True
        status = (await go.do("status h1"))["object"]
        assert status["status"]["provisioning"]["state"] == "available"
        labelled = (await go.do("update h1"))["object"]
        assert labelled["metadata"]["labels"] == {"rack": "a"}
        assert labelled["metadata"]["generation"] == status["metadata"]["generation"] == 2
        for number in range(2, 6):
            await go.do(f"create h{number}")
        pages = await go.do("pages 2")
        assert (pages["pages"], pages["names"]) == (3, ["first", "h1", "h2", "h3", "h4", "h5"])
        await go.do("delete h1")
        await go.saw("deleted", "h1")
        assert (await go.do("store"))["names"] == ["first", "h2", "h3", "h4", "h5"]


async def test_the_informer_sees_each_write_of_others_in_order(api: Api, kubeconfig: Path) -> None:
    async with informer(kubeconfig, api.namespace) as go:
        await go.until(did="sync")
        made = await api.new_host("h1")
        assert (await go.saw("added", "h1"))["version"] == made.version
        for online in (True, False, True):
            changed = await api.patch(api.host("h1"), {"spec": {"online": online}})
            assert (await go.saw("updated", "h1"))["version"] == changed.version
        secret = await api.post(api.secrets, {"metadata": {"name": "s1"}, "stringData": {"a": "1"}})
        assert (await go.saw("added", "s1", "Secret"))["version"] == secret.version
        await api.delete(f"{api.secrets}/s1")
        await go.saw("deleted", "s1", "Secret")
        await api.delete(api.host("h1"))
        await go.saw("deleted", "h1")


async def test_an_informer_whose_line_was_cut_catches_up_with_what_it_missed(
    api: Api, kubeconfig: Path, tmp_path: Path
) -> None:
    await api.new_host("goes")
    await api.new_host("stays")
    async with line_to(kubeconfig, tmp_path) as (line, detour), informer(detour, api.namespace) as go:
        await go.until(did="sync")
        line.open = False
        line.cut()
        await api.delete(api.host("goes"))
        await api.patch(api.host("stays"), {"spec": {"online": True}})
        await api.new_host("new")
        line.open = True
        await go.saw("deleted", "goes")
        await go.saw("updated", "stays")
        await go.saw("added", "new")
        assert (await go.do("store"))["names"] == ["new", "stays"]
