"""Merge patches are the smallest change, and applying one gives what was wanted."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ingot.api.baremetalhost import BareMetalHostStatus, ErrorType
from ingot.hosts.patches import difference, status_difference

# A merge patch cannot say "this is null": null removes. Documents of the API hold no nulls.
JSON = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=4) | st.lists(st.integers(), max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=12,
)
DOCUMENT = st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4)


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, as the RFC's own pseudo code has it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


@given(DOCUMENT, DOCUMENT)
def test_a_patch_turns_the_old_document_into_the_new_one(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert merged(old, difference(old, new)) == new


@given(DOCUMENT)
def test_nothing_changed_means_nothing_to_write(document: dict[str, Any]) -> None:
    assert difference(document, document) == {}


def test_an_error_that_is_cleared_is_removed_from_the_status() -> None:
    failed = BareMetalHostStatus(error_type=ErrorType.REGISTRATION, error_message="no", error_count=2)
    well = replace(failed, error_type=ErrorType.NONE, error_message="")
    assert status_difference(failed, well) == {"errorType": None, "errorMessage": ""}


def test_an_unchanged_inventory_is_not_written_again() -> None:
    hardware = msgspec.Raw(b'{"hostname":"h1"}')
    old = BareMetalHostStatus(hardware=hardware)
    new = replace(old, powered_on=True, hardware=msgspec.Raw(b'{"hostname":"h1"}'))
    assert status_difference(old, new) == {"poweredOn": True}


def test_a_new_inventory_is_written() -> None:
    old = BareMetalHostStatus(powered_on=True)
    new = replace(old, hardware=msgspec.Raw(b'{"hostname":"h1"}'))
    assert status_difference(old, new) == {"hardware": {"hostname": "h1"}}


def test_a_first_status_has_all_that_the_api_demands() -> None:
    first = status_difference(BareMetalHostStatus(), BareMetalHostStatus(error_count=1))
    assert first == {
        "errorCount": 1,
        "errorMessage": "",
        "operationalStatus": "",
        "poweredOn": False,
        "provisioning": {"ID": "", "state": ""},
        "provisioningFailCount": 0,
    }
