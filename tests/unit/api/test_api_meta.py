"""Where objects are in the API, and that no name written by a user leads elsewhere."""

from __future__ import annotations

import msgspec
import pytest

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.core import LEASES, NAMESPACES, SECRETS
from ingot.api.meta import InvalidName, Key, Malformed, ObjectMeta, Resource


@pytest.mark.parametrize(
    ("resource", "arguments", "path"),
    [
        (BARE_METAL_HOSTS, {}, "/apis/metal3.io/v1alpha1/baremetalhosts"),
        (BARE_METAL_HOSTS, {"namespace": "lab"}, "/apis/metal3.io/v1alpha1/namespaces/lab/baremetalhosts"),
        (
            BARE_METAL_HOSTS,
            {"namespace": "lab", "name": "h1", "subresource": "status"},
            "/apis/metal3.io/v1alpha1/namespaces/lab/baremetalhosts/h1/status",
        ),
        (SECRETS, {"namespace": "lab", "name": "h1-bmc"}, "/api/v1/namespaces/lab/secrets/h1-bmc"),
        (NAMESPACES, {"name": "lab"}, "/api/v1/namespaces/lab"),
        (
            LEASES,
            {"namespace": "lab", "name": "a:b"},
            "/apis/coordination.k8s.io/v1/namespaces/lab/leases/a:b",
        ),
        (SECRETS, {"namespace": "lab", "name": "a?b#c"}, "/api/v1/namespaces/lab/secrets/a%3Fb%23c"),
    ],
)
def test_an_object_has_one_path(resource: Resource, arguments: dict[str, str], path: str) -> None:
    assert resource.path(**arguments) == path


@pytest.mark.parametrize("name", ["..", ".", "../../other/secrets/key", "a/b", "%2e%2e", "x%2Fy"])
@pytest.mark.parametrize("argument", ["namespace", "name", "subresource"])
def test_a_name_that_would_lead_out_of_its_namespace_makes_no_path(name: str, argument: str) -> None:
    arguments = {"namespace": "lab", "name": "good"} | {argument: name}
    with pytest.raises(InvalidName, match="is not the name of an object"):
        SECRETS.path(**arguments)
    assert issubclass(InvalidName, Malformed)


def test_a_key_reads_as_namespace_and_name() -> None:
    assert str(Key("lab", "h1")) == "lab/h1"
    assert str(Key("", "lab")) == "lab"


def test_a_decoded_object_cannot_be_changed_in_place_because_others_read_it_too() -> None:
    meta = ObjectMeta(name="h1")
    with pytest.raises(AttributeError):
        meta.name = "h2"  # what the type checker refuses too
    assert msgspec.structs.replace(meta, name="h2").name == "h2"
