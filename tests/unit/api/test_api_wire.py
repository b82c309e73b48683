"""What is sent is what was meant: nothing absent, nothing missing, and it reads back as the same."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.api.baremetalhost import (
    BARE_METAL_HOSTS,
    RAID,
    BareMetalHost,
    BareMetalHostSpec,
    BareMetalHostStatus,
    BMCDetails,
    CustomDeploy,
    ErrorType,
    Image,
    OperationalStatus,
    OperationHistory,
    OperationTimes,
    ProvisionStatus,
    RootDeviceHints,
    SoftwareRAIDVolume,
)
from ingot.api.crd import crd
from ingot.api.meta import Condition, ObjectMeta
from ingot.api.wire import wire

TIMES = st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1), timezones=st.just(UTC))
IMAGES = st.builds(Image, url=st.text(), checksum=st.text(), format=st.sampled_from([None, "raw", "qcow2"]))
HINTS = st.builds(
    RootDeviceHints,
    model=st.text(),
    rotational=st.none() | st.booleans(),
    min_size_gigabytes=st.integers(0, 9),
)
RAIDS = st.builds(
    RAID,
    hardware_raid_volumes=st.none() | st.just([]),
    software_raid_volumes=st.none()
    | st.lists(
        st.builds(SoftwareRAIDVolume, level=st.sampled_from(["0", "1"]), root_volume=st.booleans()),
        max_size=2,
    ),
)
SPECS = st.builds(
    BareMetalHostSpec,
    online=st.booleans(),
    bmc=st.builds(BMCDetails, address=st.text(), credentials_name=st.text()),
    image=st.none() | IMAGES,
    custom_deploy=st.none() | st.builds(CustomDeploy, method=st.text()),
    root_device_hints=st.none() | HINTS,
    raid=st.none() | RAIDS,
)
STATUSES = st.builds(
    BareMetalHostStatus,
    error_count=st.integers(0, 5),
    error_type=st.sampled_from([error for error in ErrorType if error is not ErrorType.DETACH]),
    operational_status=st.sampled_from(OperationalStatus),
    powered_on=st.booleans(),
    last_updated=st.none() | TIMES,
    last_attempted_image=st.none() | IMAGES,
    operation_history=st.builds(
        OperationHistory, register=st.builds(OperationTimes, start=st.none() | TIMES, end=st.none() | TIMES)
    ),
    provisioning=st.builds(ProvisionStatus, state=st.text(), id=st.text(), image=st.none() | IMAGES),
    conditions=st.lists(
        st.builds(
            Condition,
            type=st.just("Ready"),
            status=st.sampled_from(["True", "False"]),
            reason=st.just("Ready"),
            message=st.text(),
            last_transition_time=TIMES,
        ),
        max_size=2,
    ),
)


def host_schema() -> Any:
    return crd(BARE_METAL_HOSTS)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@given(st.builds(BareMetalHost, spec=SPECS, status=STATUSES))
def test_a_host_as_it_is_sent_reads_back_as_the_same_host(host: BareMetalHost) -> None:
    sent = wire(host)
    assert msgspec.json.decode(msgspec.json.encode(sent), type=BareMetalHost) == host


VALIDATOR = jsonschema_rs.validator_for(host_schema())


@given(st.builds(BareMetalHost, spec=SPECS, status=STATUSES))
def test_a_host_as_it_is_sent_passes_the_schema(host: BareMetalHost) -> None:
    VALIDATOR.validate(wire(host))


def test_what_the_schema_requires_is_sent_even_when_it_is_empty() -> None:
    assert wire(BareMetalHostStatus()) == {
        "errorCount": 0,
        "errorMessage": "",
        "operationalStatus": "",
        "poweredOn": False,
        "provisioning": {"ID": "", "state": ""},
        "provisioningFailCount": 0,
    }


def test_what_is_absent_is_not_sent_as_null() -> None:
    assert wire(Image(url="http://images/a")) == {"url": "http://images/a"}
    assert wire(ObjectMeta(name="h1")) == {"name": "h1"}


def test_an_empty_list_of_volumes_is_an_order_and_is_sent() -> None:
    assert wire(RAID(hardware_raid_volumes=[])) == {"hardwareRAIDVolumes": []}
    assert wire(RAID()) == {}


def test_an_undecoded_inventory_is_sent_as_it_was_read() -> None:
    status = BareMetalHostStatus(hardware=msgspec.Raw(b'{"hostname": "h1", "unknownToUs": 1}'))
    assert wire(status)["hardware"] == {"hostname": "h1", "unknownToUs": 1}


def test_times_are_sent_in_utc_with_a_z() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert wire(OperationTimes(start=moment)) == {"start": "2026-01-02T03:04:05Z"}


def test_a_patch_made_of_parts_is_sent_with_its_nulls_because_they_remove() -> None:
    patch = {"status": {"errorType": None, "provisioning": ProvisionStatus(state="available")}}
    assert wire(patch) == {"status": {"errorType": None, "provisioning": {"ID": "", "state": "available"}}}


def test_what_is_no_part_of_an_api_object_is_not_sent() -> None:
    with pytest.raises(TypeError, match="object is not a part of an API object"):
        wire({"a": object()})
