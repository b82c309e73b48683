"""The whole life of a host as its user sees it: every step is a kubectl command, and what kubectl prints is looked at."""

from __future__ import annotations

import json

from demo_hall import IMAGE, DemoHall, host, resource, secret

VOLUMES = [{"level": "1", "name": "root", "sizeGibibytes": 400}]
DATA = "https://images.example/data.iso"
TOLD = (
    "BMCCredentialError Registered BMCAccessValidated InspectionStarted InspectionComplete ProvisioningStarted "
    "ProvisioningComplete PowerOff PowerOn DeprovisioningStarted DeprovisioningComplete"
)


def test_a_host_lives_from_its_registration_to_its_deletion(busy_hall: DemoHall):
    registered_and_inspected(busy_hall)
    prepared(busy_hall)
    provisioned(busy_hall)
    rebooted(busy_hall)
    serviced(busy_hall)
    detached_and_attached_again(busy_hall)
    deprovisioned(busy_hall)
    deleted(busy_hall)
    books = busy_hall.books("h1")
    once = ("inspect", "make volumes", "deploy", "service", "adopt", "undeploy")
    settings = ("set ProcTurboMode to Disabled", "set NumLock to Off", "flash bios bios-1.1")
    assert {deed: books.get(deed) for deed in once + settings} == dict.fromkeys(once + settings, 1)


def registered_and_inspected(hall: DemoHall) -> None:
    hall.apply(host("h1", raid={"hardwareRAIDVolumes": VOLUMES}))
    hall.wait("jsonpath={.status.errorType}=registration error", "bmh/h1")
    assert hall.row("h1") == ["h1", "registering", "true", "registration", "error"]
    # The Secret is noticed when it appears.
    hall.kubectl(
        *("create", "secret", "generic", "h1-bmc"),
        *("--from-literal=username=admin", "--from-literal=password=anything"),
    )
    hall.wait("condition=AvailableForProvisioning", "bmh/h1")
    found, hardware, settings, components = hall.get(
        "bmh/h1", "hardwaredata/h1", "hfs/h1", "hostfirmwarecomponents/h1"
    )
    assert found["spec"]["architecture"] == hardware["spec"]["hardware"]["cpu"]["arch"] == "x86_64"
    assert found["status"]["provisioning"]["raid"]["hardwareRAIDVolumes"][0]["name"] == "root"
    assert settings["status"]["settings"]["ProcTurboMode"] == "Enabled"
    assert (
        hall.kubectl("get", "firmwareschema", "-o", "name")
        == f"firmwareschema.metal3.io/{settings['status']['schema']['name']}\n"
    )
    assert {part["component"] for part in components["status"]["components"]} == {"bios", "bmc"}


def prepared(hall: DemoHall) -> None:
    hall.patch("hfs/h1", {"spec": {"settings": {"ProcTurboMode": "Disabled"}}})
    hall.wait("jsonpath={.status.settings.ProcTurboMode}=Disabled", "hfs/h1")
    hall.wait("condition=ChangeDetected=False", "hfs/h1")
    hall.until(lambda: hall.machine("h1").get("settings") == {"ProcTurboMode": "Disabled"})


def provisioned(hall: DemoHall) -> None:
    hall.apply(secret("h1-user-data", userData="#cloud-config\n{}"))
    hall.patch("bmh/h1", {"spec": {"image": IMAGE, "userData": {"name": "h1-user-data"}}})
    hall.wait("condition=Provisioned", "bmh/h1")
    assert hall.row("h1") == ["h1", "provisioned", "true"]
    hall.until(lambda: runs_the_image(hall))


def rebooted(hall: DemoHall) -> None:
    hall.kubectl("annotate", "bmh", "h1", "reboot.metal3.io=")
    hall.until(lambda: hall.books("h1").get("power on") == 1)
    # With a key it is kept off until the annotation goes.
    hall.kubectl("annotate", "bmh", "h1", 'reboot.metal3.io/me={"mode": "hard"}')
    hall.wait("jsonpath={.status.poweredOn}=false", "bmh/h1")
    hall.kubectl("annotate", "bmh", "h1", "reboot.metal3.io/me-")
    hall.wait("jsonpath={.status.poweredOn}=true", "bmh/h1")
    books = hall.books("h1")
    assert (books["power off soft"], books["power off hard"]) == (1, 1)


def serviced(hall: DemoHall) -> None:
    hall.apply(
        resource("HostUpdatePolicy", "h1", firmwareSettings="onReboot", firmwareUpdates="onReboot"),
        resource("DataImage", "h1", url=DATA),
    )
    hall.patch("hfs/h1", {"spec": {"settings": {"NumLock": "Off"}}})
    update = {"component": "bios", "url": "https://firmware.example/bios-1.1"}
    hall.patch("hostfirmwarecomponents/h1", {"spec": {"updates": [update]}})
    hall.wait("condition=ChangeDetected", "hfs/h1", "hostfirmwarecomponents/h1")
    assert "service" not in hall.books("h1")
    hall.kubectl("annotate", "bmh", "h1", "reboot.metal3.io=")
    hall.wait("jsonpath={.status.settings.NumLock}=Off", "hfs/h1")
    hall.wait(f"jsonpath={{.status.attachedImage.url}}={DATA}", "dataimage/h1")
    hall.wait("jsonpath={.status.poweredOn}=true", "bmh/h1")
    hall.wait("condition=Ready", "bmh/h1")
    found, components = hall.get("bmh/h1", "hostfirmwarecomponents/h1")
    assert not [name for name in found["metadata"]["annotations"] if name.startswith("reboot.")]
    versions = {part["component"]: part["currentVersion"] for part in components["status"]["components"]}
    assert versions == {"bios": "bios-1.1", "bmc": "2.1"}
    hall.until(lambda: hall.machine("h1").get("drive") == DATA and runs_the_image(hall))


def detached_and_attached_again(hall: DemoHall) -> None:
    address = "idrac-virtualmedia://192.0.2.9/redfish/v1/Systems/1"
    assert "detached" in hall.refused("patch", "bmh/h1", "--type=merge", "-p", _address(address))
    hall.kubectl("annotate", "bmh", "h1", "baremetalhost.metal3.io/detached=")
    hall.wait("condition=Ready=False", "bmh/h1")
    assert "detached" in hall.kubectl("get", "bmh", "h1", "-o", "wide").split()
    told = hall.ingot("explain", "bmh/h1")
    assert f"{hall.namespace}/h1 is provisioned since" in told
    assert "remove the annotation baremetalhost.metal3.io/detached" in told
    hall.until(lambda: "record" not in hall.machine("h1"))
    assert runs_the_image(hall)
    hall.kubectl("patch", "bmh/h1", "--type=merge", "-p", _address(address))
    hall.kubectl("annotate", "bmh", "h1", "baremetalhost.metal3.io/detached-")
    hall.wait("condition=Ready", "bmh/h1")
    assert hall.row("h1") == ["h1", "provisioned", "true"]
    hall.until(lambda: hall.books("h1").get("adopt") == 1 and runs_the_image(hall))


def runs_the_image(hall: DemoHall) -> bool:
    machine = hall.machine("h1")
    return machine.get("powered_on") is True and machine.get("disk") == {"image": IMAGE["url"]}


def _address(address: str) -> str:
    return json.dumps({"spec": {"bmc": {"address": address}}})


def deprovisioned(hall: DemoHall) -> None:
    hall.patch("bmh/h1", {"spec": {"image": None}})
    hall.wait("condition=AvailableForProvisioning", "bmh/h1")
    assert hall.row("h1") == ["h1", "available", "true"]
    hall.until(lambda: "disk" not in hall.machine("h1"))
    told = hall.kubectl("describe", "bmh", "h1")
    assert [reason for reason in TOLD.split() if reason not in told] == []
    assert "Secret h1-bmc with the BMC's user name and password does not exist" in told


def deleted(hall: DemoHall) -> None:
    assert "deleted" in hall.kubectl("delete", "bmh", "h1", "--timeout=120s")
    # What belongs to the host goes with it.
    hall.wait(
        "delete", "secret/h1-bmc", "hardwaredata/h1", "hfs/h1", "hostfirmwarecomponents/h1", "dataimage/h1"
    )
    assert hall.kubectl("get", "secret/h1-user-data", "-o", "name") == "secret/h1-user-data\n"
    hall.until(lambda: not hall.machine("h1").keys() & {"powered_on", "record"})
