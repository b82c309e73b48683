"""Where the vendors' BMCs deviate, seen by a client that knows nothing of vendors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab_bench import Bench
from lab_bmc import bench_of
from lab_ironic import LabIronic

IMAGE = {"Image": "https://127.0.0.1:1/x.iso"}
ONCE = {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}


async def slots(bench: Bench) -> dict[str, Any]:
    """The virtual media by their ids, wherever they are."""
    _, system, _ = await bench.bmc("GET")
    _, manager, _ = await bench.bmc("GET", system["Links"]["ManagedBy"][0]["@odata.id"])
    link = system.get("VirtualMedia") or manager["VirtualMedia"]
    _, media, _ = await bench.bmc("GET", link["@odata.id"] + "?$expand=.($levels=1)")
    return {slot["Id"]: slot for slot in media["Members"]}


async def act(bench: Bench, slot: Any, action: str, body: Any = None) -> tuple[int, str]:
    target = slot["Actions"][f"#VirtualMedia.{action}"]["target"]
    status, answer, _ = await bench.bmc("POST", target, body)
    return status, answer["error"]["message"] if answer else ""


async def test_an_ilo_wants_a_body_to_eject_and_no_change_while_it_starts(
    tmp_path: Path, ironic: LabIronic
) -> None:
    async with bench_of(tmp_path, ironic, "hpe") as bench:
        cd = (await slots(bench))["2"]
        assert (await act(bench, cd, "InsertMedia", IMAGE))[0] == 204
        status, message = await act(bench, cd, "EjectMedia")
        assert (status, "needs a body" in message) == (400, True)
        assert (await act(bench, cd, "EjectMedia", {}))[0] == 204
        await bench.lab.hold(bench.plate.name, "boot")
        await bench.reset("On")
        status, body, _ = await bench.bmc("PATCH", "", {"Boot": ONCE})
        assert status == 400
        assert "UnableToModifyDuringSystemPOST" in body["error"]["message"]


async def test_an_xcc_takes_media_by_patch_alone(tmp_path: Path, ironic: LabIronic) -> None:
    async with bench_of(tmp_path, ironic, "lenovo") as bench:
        slot = (await slots(bench))["EXT1"]
        assert "Actions" not in slot
        path = slot["@odata.id"]
        _, _, headers = await bench.bmc("GET", path)
        assert "PATCH" in headers["Allow"]
        assert (await bench.bmc("PATCH", path, IMAGE))[0] == 400
        assert (await bench.bmc("PATCH", path, IMAGE | {"Inserted": True, "WriteProtected": True}))[0] == 204
        assert (await bench.server()).media == {"Cd": IMAGE["Image"]}
        assert (await bench.bmc("PATCH", path, {"Image": None, "Inserted": False}))[0] == 204
        assert (await bench.server()).media == {}


async def test_a_megarac_insists_on_how_to_transfer_and_on_the_whole_boot_source(
    tmp_path: Path, ironic: LabIronic
) -> None:
    async with bench_of(tmp_path, ironic, "ami") as bench:
        cd = (await slots(bench))["Cd"]
        body: dict[str, Any] = dict(IMAGE)
        for name, value in (("TransferProtocolType", "HTTPS"), ("TransferMethod", "Stream")):
            status, message = await act(bench, cd, "InsertMedia", body)
            assert (status, name in message) == (400, True)
            body[name] = value
        assert (await act(bench, cd, "InsertMedia", body))[0] == 204
        assert (await bench.bmc("PATCH", "", {"Boot": ONCE}))[0] == 400
        whole = ONCE | {"BootSourceOverrideMode": "UEFI"}
        assert (await bench.bmc("PATCH", "", {"Boot": whole}))[0] == 204


async def test_a_supermicro_knows_no_inserted_and_calls_its_cd_usbcd(
    tmp_path: Path, ironic: LabIronic
) -> None:
    async with bench_of(tmp_path, ironic, "supermicro") as bench:
        cd = (await slots(bench))["VirtualMedia1"]
        status, message = await act(bench, cd, "InsertMedia", IMAGE | {"Inserted": True})
        assert (status, "Inserted" in message) == (400, True)
        assert (await act(bench, cd, "InsertMedia", IMAGE))[0] == 204
        alone = {"BootSourceOverrideTarget": "UsbCd"}
        assert (await bench.bmc("PATCH", "", {"Boot": alone}))[0] == 400
        assert (await bench.bmc("PATCH", "", {"Boot": alone | {"BootSourceOverrideEnabled": "Once"}}))[
            0
        ] == 204
        assert (await bench.bmc("GET"))[1]["Boot"]["BootSourceOverrideTarget"] == "UsbCd"


async def test_an_idrac_refuses_a_second_medium_and_a_profile_that_is_none(
    tmp_path: Path, ironic: LabIronic
) -> None:
    async with bench_of(tmp_path, ironic, "dell") as bench:
        cd = (await slots(bench))["CD"]
        assert (await act(bench, cd, "InsertMedia", IMAGE))[0] == 204
        status, message = await act(bench, cd, "InsertMedia", IMAGE)
        assert (status, "eject it first" in message) == (400, True)
        manager = "/redfish/v1/Managers/iDRAC.Embedded.1/Actions/Oem"
        for buffer in (
            "no profile",
            '<SystemConfiguration><Attribute Name="ServerBoot.1#FirstBootDevice">Moon</Attribute>',
        ):
            path = f"{manager}/EID_674_Manager.ImportSystemConfiguration"
            assert (await bench.bmc("POST", path, {"ImportBuffer": buffer}))[0] == 400


async def test_what_another_server_has_is_not_found(tmp_path: Path, ironic: LabIronic) -> None:
    async with bench_of(tmp_path, ironic, "dell") as bench:
        for path in ("Managers/1", "Chassis/1", "Systems/other", "Managers/iDRAC.Embedded.1/Oem/Dell/Jobs/x"):
            assert (await bench.bmc("GET", f"/redfish/v1/{path}"))[0] == 404, path
