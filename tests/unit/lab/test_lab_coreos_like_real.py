"""The simulated step that installs CoreOS takes and refuses what the real one does, and leaves the same on the disk."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ingot.lab.agent.coreos_order import ARGUMENTS, what_is_left
from ingot.lab.agent.work import Work
from ingot.lab.errors import StepFailed
from ingot.lab.record import Ramdisk
from ingot_agent import ignition, order
from ingot_agent.errors import Refused

KEY, OTHER = "ssh-ed25519 AAAAC3Nz me@example", "ssh-rsa AAAAB3Nz"
CONFIG = {"ignition": {"version": "3.4.0"}}
WITH_KEY = {**CONFIG, "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": [KEY]}]}}
NAMED = {**CONFIG, "storage": {"links": [{"path": "/etc/hostname", "target": "/etc/x"}]}}
FILLED_IN = {"metal3-name": "h1", "local-hostname": "h1", "local_hostname": "h1", "name": "h1"}
KEYFILES = {"eth0.nmconnection": "[connection]"}
OWN = {"bond0.nmconnection": "[connection]\nid=bond0\n"}

CASES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a config in the arguments": {"args": {"ignition": CONFIG}},
    "as text": {"args": {"ignition": json.dumps(CONFIG)}},
    "in the user data": {"drive": {"user_data": json.dumps(CONFIG)}},
    "in both": {"args": {"ignition": CONFIG}, "drive": {"user_data": "#cloud-config"}},
    "no JSON": {"args": {"ignition": "x"}},
    "a cloud-config": {"drive": {"user_data": "#cloud-config"}},
    "no config": {"args": {"ignition": {"x": 1}}},
    "of version 2": {"args": {"ignition": {"ignition": {"version": "2.2.0"}}}},
    "an empty one": {"args": {"ignition": ""}},
    "a list": {"args": {"ignition": [CONFIG]}},
    "the machine has a name": {"hostname": "m1"},
    "the metadata have a name": {"drive": {"meta_data": {"name": "h1"}}},
    "both have one": {"hostname": "m1", "drive": {"meta_data": {"local-hostname": "h1"}}},
    "the metadata have the host's": {"hostname": "m1", "drive": {"meta_data": FILLED_IN}},
    "they alone": {"drive": {"meta_data": FILLED_IN}},
    "somebody chose another": {
        "hostname": "m1",
        "drive": {"meta_data": FILLED_IN | {"local-hostname": "h2"}},
    },
    "somebody chose the host's": {"hostname": "m1", "drive": {"meta_data": FILLED_IN | {"hostname": "h1"}}},
    "names that are none": {
        "drive": {"meta_data": {"local-hostname": "localhost", "name": "a b", "hostname": "h2"}}
    },
    "the config has the name": {"args": {"ignition": NAMED}, "hostname": "m1"},
    "a key": {"args": {"ssh_keys": KEY}, "drive": {"meta_data": {"public_keys": [OTHER]}}},
    "keys by name": {"drive": {"meta_data": {"public_keys": {"a": KEY, "b": OTHER}}}},
    "a key that is there": {"args": {"ignition": WITH_KEY, "ssh_keys": [KEY, OTHER, OTHER]}},
    "no key": {"args": {"ssh_keys": ["x\ny"]}},
    "a number of keys": {"args": {"ssh_keys": 5}},
    "kernel arguments": {"args": {"append_kargs": ["a=b", "c d"], "delete_kargs": "quiet"}},
    "quoted ones": {"args": {"append_kargs": 'a="b c" d'}},
    "an open quote": {"args": {"append_kargs": 'a="b'}},
    "a line break": {"args": {"append_kargs": ["a\nb"]}},
    "a mapping of them": {"args": {"append_kargs": {"a": 1}}},
    "those of the metadata": {
        "drive": {"meta_data": {"coreos_append_karg": ["a"], "coreos_delete_karg": ["b"]}}
    },
    "those of the ramdisk": {
        "args": {"append_kargs": "a"},
        "environment": {"IPA_COREOS_IP_OPTIONS": "ip=dhcp x"},
    },
    "the network": {"args": {"copy_network": True}},
    "the network as text": {"args": {"copy_network": "yes"}},
    "the network by the metadata": {"drive": {"meta_data": {"coreos_copy_network": True}}},
    "the network by the ramdisk": {"environment": {"IPA_COREOS_COPY_NETWORK": "true"}},
    "not the network": {"args": {"copy_network": False}, "environment": {"IPA_COREOS_COPY_NETWORK": "true"}},
    "perhaps the network": {"args": {"copy_network": "perhaps"}},
    "a network of its own": {"args": {"network_keyfiles": OWN}},
    "one by the metadata": {"drive": {"meta_data": {"coreos_network_keyfiles": OWN}}},
    "one and the ramdisk's": {"args": {"copy_network": True, "network_keyfiles": OWN}},
    "one, and not the ramdisk's": {"args": {"copy_network": False, "network_keyfiles": OWN}},
    "one, and perhaps the ramdisk's": {"args": {"copy_network": "perhaps", "network_keyfiles": OWN}},
    "none of its own": {"args": {"network_keyfiles": {}, "copy_network": True}},
    "a list of networks": {"args": {"network_keyfiles": ["x"]}},
    "a network elsewhere": {"args": {"network_keyfiles": {"../x": ""}}},
    "a network without text": {"args": {"network_keyfiles": {"x": None}}},
    "another argument": {"args": {"image_url": "https://x"}},
    "a finished drive": {"drive": "H4sI"},
}


def real(args: dict[str, Any], node: dict[str, Any], environment: dict[str, str], hostname: str) -> Any:
    try:
        read = order.read(args, node, order.Surroundings.of(environment), hostname or None)
    except Refused:
        return "refused"
    config = ignition.config(read.ignition, hostname=read.hostname, ssh_keys=read.ssh_keys)
    return (
        json.loads(config) if config else None,
        list(read.append_kargs),
        list(read.delete_kargs),
        dict(read.keyfiles) or (KEYFILES if read.copy_network else {}),
    )


def simulated(args: dict[str, Any], node: dict[str, Any], environment: dict[str, str], hostname: str) -> Any:
    ramdisk = Ramdisk(parameters={}, ca="", hostname=hostname, environment=environment, keyfiles=KEYFILES)
    try:
        left = what_is_left(cast("Work", SimpleNamespace(node=node, ramdisk=ramdisk)), args)
    except StepFailed:
        return "refused"
    config = json.loads(left.ignition) if left.ignition else None
    return config, left.arguments, left.without, left.keyfiles


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_simulated_step_reads_what_it_is_told_as_the_real_one_does(case: dict[str, Any]) -> None:
    node = {"instance_info": {"configdrive": case["drive"]} if "drive" in case else {}}
    asked = case.get("args", {}), node, case.get("environment", {}), case.get("hostname", "")
    assert simulated(*asked) == real(*asked)


def test_both_have_the_same_arguments() -> None:
    assert tuple(order.ARGUMENTS) == ARGUMENTS
