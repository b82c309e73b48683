"""What of a switch's Secret may become a line of the file that Ironic's networking service reads."""

from __future__ import annotations

import base64

import pytest

from ingot.api.baremetalswitch import BareMetalSwitch, BareMetalSwitchSpec
from ingot.api.core import SecretObject
from ingot.api.meta import ObjectMeta
from ingot.hosts.switches.file import BadCredentials, section

NAMESPACE = "default"
MAC = "00:00:5e:00:53:01"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"username": "admin", "password": "a\nenable_secret = evil"}, "line break"),
        ({"username": "admin\n[switch:other]", "password": "a"}, "line break"),
        ({"username": "admin", "password": "50%off"}, "percent sign"),
        ({"username": "admin", "password": " evil"}, "begins or ends with a space"),
        ({"username": "admin", "password": '"evil"'}, "quotation mark"),
        ({"username": "admin", "password": "a", "admin-password": "evil\x00"}, "control character"),
        ({"password": "evil"}, "has no username"),
        ({"username": "admin"}, "neither a password nor an ssh-privatekey"),
        ({"username": "admin", "ssh-privatekey": "evil"}, "not a private key"),
    ],
)
def test_a_value_that_would_be_more_than_a_value_is_refused_without_showing_it(
    data: dict[str, str], words: str
) -> None:
    switch = BareMetalSwitch(
        metadata=ObjectMeta(name="leaf1", namespace=NAMESPACE),
        spec=BareMetalSwitchSpec(address="10.0.0.1", mac_address=MAC, device_type="x"),
    )
    encoded = {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}
    secret = SecretObject(metadata=ObjectMeta(name="login", namespace=NAMESPACE), data=encoded)
    with pytest.raises(BadCredentials, match=words) as refused:
        section(switch, secret, keys_folder="/keys")
    assert "evil" not in str(refused.value)
