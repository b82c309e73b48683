"""The whole life of a host as its user sees it: every step is a kubectl command, and what kubectl prints is looked at."""

from __future__ import annotations

import json

from demo_hall import IMAGE, DemoHall, host, resource, secret

VOLUMES = [{"level": "1", "name": "root", "sizeGibibytes": 400}]
SCRIPT = """
default:
  others: {seconds: 0.1}
  components: {bios: "1.0", bmc: "2.1"}
"""


def test_a_host_lives_from_its_registration_to_its_deletion(hall: DemoHall):
    operator = hall.operator(SCRIPT)
    operator.leads()
    registered_and_inspected(hall)
    prepared(hall)
    provisioned(hall)
    rebooted(hall)
    serviced(hall)
    detached_and_attached_again(hall)
    assert "metal3_reconcile_total" in operator.ask("/metrics")
    deprovisioned_and_deleted(hall)
    operator.stop()
    books = hall.books("h1")
    once = (
        "inspect",
        "make volumes",
        "set ProcTurboMode to Disabled",
        "deploy",
        "service",
        "adopt",
        "undeploy",
    )
    assert {deed: books.get(deed) for deed in once} == dict.fromkeys(once, 1)


def registered_and_inspected(hall: DemoHall) -> None:
    hall.apply(host("h1", raid={"hardwareRAIDVolumes": VOLUMES}))
    hall.wait("jsonpath={.status.errorType}=registration error", "bmh/h1")
    assert hall.row("h1") == ["h1", "registering", "true", "registration", "error"]
    assert "Secret h1-bmc" in hall.kubectl("get", "bmh", "h1", "-o", "jsonpath={.status.errorMessage}")
    # The Secret is noticed when it appears.
    hall.kubectl(
        *("create", "secret", "generic", "h1-bmc"),
        *("--from-literal=username=admin", "--from-literal=password=anything"),
    )
    hall.wait("condition=AvailableForProvisioning", "bmh/h1")
    assert hall.row("h1") == ["h1", "available", "true"]
    told = hall.kubectl("describe", "bmh", "h1")
    for reason in ("BMCCredentialError", "Registered", "InspectionStarted", "InspectionComplete"):
        assert reason in told
    companions = hall.kubectl("get", "hardwaredata,hfs,hostfirmwarecomponents,firmwareschema", "-o", "name")
    for kind in ("hardwaredata", "hostfirmwaresettings", "hostfirmwarecomponents"):
        assert f"{kind}.metal3.io/h1" in companions
    assert "firmwareschema.metal3.io/schema-" in companions
    found = hall.get("bmh/h1")
    assert found["spec"]["architecture"] == "x86_64"
    assert found["status"]["provisioning"]["raid"]["hardwareRAIDVolumes"][0]["name"] == "root"


def prepared(hall: DemoHall) -> None:
    hall.patch("hfs/h1", {"spec": {"settings": {"ProcTurboMode": "Disabled"}}})
    hall.wait("jsonpath={.status.settings.ProcTurboMode}=Disabled", "hfs/h1")
    hall.wait("condition=ChangeDetected=False", "hfs/h1")
    hall.wait("condition=AvailableForProvisioning", "bmh/h1")
    assert hall.machine("h1")["settings"] == {"ProcTurboMode": "Disabled"}


def provisioned(hall: DemoHall) -> None:
    hall.apply(secret("h1-user-data", userData="#cloud-config\n{}"))
    hall.patch("bmh/h1", {"spec": {"image": IMAGE, "userData": {"name": "h1-user-data"}}})
    hall.wait("condition=Provisioned", "bmh/h1")
    hall.wait("condition=Ready", "bmh/h1")
    assert hall.row("h1") == ["h1", "provisioned", "true"]
    told = hall.kubectl("describe", "bmh", "h1")
    assert "ProvisioningStarted" in told
    assert "ProvisioningComplete" in told
    assert hall.machine("h1")["disk"] == {"image": IMAGE["url"]}


def rebooted(hall: DemoHall) -> None:
    hall.kubectl("annotate", "bmh", "h1", "reboot.metal3.io=")
    hall.until(lambda: hall.books("h1").get("power off soft") == 1)
    hall.wait("jsonpath={.status.poweredOn}=true", "bmh/h1")
    hall.until(lambda: hall.events("h1").count("PowerOn") >= 1)
    # With a key it is kept off until the annotation goes.
    hall.kubectl("annotate", "bmh", "h1", 'reboot.metal3.io/me={"mode": "hard"}')
    hall.wait("jsonpath={.status.poweredOn}=false", "bmh/h1")
    hall.kubectl("annotate", "bmh", "h1", "reboot.metal3.io/me-")
    hall.wait("jsonpath={.status.poweredOn}=true", "bmh/h1")
    books = hall.books("h1")
    assert (books["power off soft"], books["power off hard"]) == (1, 1)
    assert "reboot.metal3.io" not in hall.kubectl(
        "get", "bmh", "h1", "-o", "jsonpath={.metadata.annotations}"
    )


def serviced(hall: DemoHall) -> None:
    hall.apply(
        resource("HostUpdatePolicy", "h1", firmwareSettings="onReboot", firmwareUpdates="onReboot"),
        resource("DataImage", "h1", url="https://images.example/data.iso"),
    )
    hall.patch("hfs/h1", {"spec": {"settings": {"NumLock": "Off"}}})
    update = {"component": "bios", "url": "https://firmware.example/bios-1.1"}
    hall.patch("hostfirmwarecomponents/h1", {"spec": {"updates": [update]}})
    hall.wait("condition=ChangeDetected", "hfs/h1")
    hall.wait("condition=ChangeDetected", "hostfirmwarecomponents/h1")
    assert "service" not in hall.books("h1")
    hall.kubectl("annotate", "bmh", "h1", "reboot.metal3.io=")
    hall.wait("jsonpath={.status.settings.NumLock}=Off", "hfs/h1")
    hall.wait("jsonpath={.status.components[0].currentVersion}=bios-1.1", "hostfirmwarecomponents/h1")
    hall.wait("jsonpath={.status.attachedImage.url}=https://images.example/data.iso", "dataimage/h1")
    hall.wait("condition=Ready", "bmh/h1")
    hall.wait("jsonpath={.status.poweredOn}=true", "bmh/h1")
    assert hall.row("h1") == ["h1", "provisioned", "true"]
    machine = hall.machine("h1")
    assert machine["drive"] == "https://images.example/data.iso"
    assert machine["disk"] == {"image": IMAGE["url"]}


def detached_and_attached_again(hall: DemoHall) -> None:
    address = "idrac-virtualmedia://192.0.2.9/redfish/v1/Systems/1"
    assert "detached" in hall.refused("patch", "bmh/h1", "--type=merge", "-p", _address(address))
    hall.kubectl("annotate", "bmh", "h1", "baremetalhost.metal3.io/detached=")
    hall.wait("jsonpath={.status.operationalStatus}=detached", "bmh/h1")
    hall.wait("condition=Ready=False", "bmh/h1")
    assert "detached" in hall.kubectl("get", "bmh", "h1", "-o", "wide").split()
    told = hall.ingot("explain", "bmh/h1")
    assert f"{hall.namespace}/h1 is provisioned since" in told
    assert "remove the annotation baremetalhost.metal3.io/detached" in told
    assert "record" not in hall.machine("h1")
    hall.kubectl("patch", "bmh/h1", "--type=merge", "-p", _address(address))
    hall.kubectl("annotate", "bmh", "h1", "baremetalhost.metal3.io/detached-")
    hall.wait("condition=Ready", "bmh/h1")
    assert hall.row("h1") == ["h1", "provisioned", "true"]
    assert address in hall.kubectl("get", "bmh", "h1", "-o", "wide")
    assert "until its image is changed or removed" in hall.ingot("explain", "bmh/h1")
    machine = hall.machine("h1")
    assert machine["powered_on"]
    assert machine["disk"] == {"image": IMAGE["url"]}


def _address(address: str) -> str:
    return json.dumps({"spec": {"bmc": {"address": address}}})


def deprovisioned_and_deleted(hall: DemoHall) -> None:
    hall.patch("bmh/h1", {"spec": {"image": None}})
    hall.wait("condition=AvailableForProvisioning", "bmh/h1")
    assert hall.row("h1") == ["h1", "available", "true"]
    assert "DeprovisioningComplete" in hall.kubectl("describe", "bmh", "h1")
    assert "disk" not in hall.machine("h1")
    assert "deleted" in hall.kubectl("delete", "bmh", "h1", "--timeout=120s")
    # What belongs to the host goes with it.
    for what in ("secret/h1-bmc", "hardwaredata/h1", "hfs/h1", "hostfirmwarecomponents/h1", "dataimage/h1"):
        hall.wait("delete", what)
    assert hall.kubectl("get", "secret", "h1-user-data", "-o", "name").strip() == "secret/h1-user-data"
    assert not hall.machine("h1").get("powered_on")
