"""The environment of ironic-image: what is taken under another name, passed over with a word, or refused."""

from __future__ import annotations

import pytest

from ingot.services import codec, ironic_image
from ingot.services.errors import SettingsError
from ingot.services.settings import IronicPaths, IronicSettings

OURS = {name for kind in (IronicSettings, IronicPaths) for name, _ in codec.variables(kind).values()}


def test_no_name_is_in_two_tables() -> None:
    tables = [OURS, *map(set, (ironic_image.SPELLINGS, ironic_image.PASSED_OVER, ironic_image.REFUSED))]
    names = [name for table in tables for name in table]
    assert len(names) == len(set(names))


def test_another_spelling_counts_where_ours_is_not_set() -> None:
    assert ironic_image.translated({"PROVISIONING_IP": "172.22.0.2/24"})["IRONIC_IP"] == "172.22.0.2"
    both = {"PROVISIONING_IP": "172.22.0.2", "IRONIC_IP": "10.0.0.1"}
    assert ironic_image.translated(both)["IRONIC_IP"] == "10.0.0.1"
    for other, name in ironic_image.SPELLINGS.items():
        assert name in OURS
        assert ironic_image.translated({other: "value"})[name] == "value"


def test_what_makes_no_difference_is_said() -> None:
    assert ironic_image.passed_over({"NUMWORKERS": "4", "IRONIC_IP": "10.0.0.1"}) == [
        "NUMWORKERS is set and makes no difference: API and conductor are one process, whose API always has 64 threads."
    ]


def test_what_nobody_asked_us_to_know_is_named_by_its_beginning() -> None:
    environment = {
        "IRONIC_VMEDIA_CURVES": "x25519",
        "IRONIC_NETWORKING_HOST": "net",
        "IRONIC_NETWORKING_ENABLED": "false",
    }
    said = ironic_image.passed_over(environment)
    assert [sentence.split()[0] for sentence in said] == ["IRONIC_NETWORKING_HOST", "IRONIC_VMEDIA_CURVES"]


def test_a_ramdisk_for_each_architecture_can_be_named_apart() -> None:
    apart = {
        "DEPLOY_KERNEL_URL_X86_64": "http://images/kernel-x",
        "DEPLOY_KERNEL_URL_AARCH64": "http://images/kernel-a",
        "DEPLOY_RAMDISK_URL_AARCH64": "http://images/initramfs-a",
        "DEPLOY_RAMDISK_BY_ARCH": "x86_64:http://images/initramfs-x",
    }
    ours = ironic_image.translated(apart)
    assert ours["DEPLOY_KERNEL_BY_ARCH"] == "aarch64:http://images/kernel-a,x86_64:http://images/kernel-x"
    assert ours["DEPLOY_RAMDISK_BY_ARCH"] == "x86_64:http://images/initramfs-x"


@pytest.mark.parametrize("name", sorted(ironic_image.REFUSED))
def test_what_is_never_done_stops_the_service_when_it_is_switched_on(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} is '1', which Ingot does not do: "):
        ironic_image.translated({name: "1"})
    for off in ("", "0", "false"):
        ironic_image.translated({name: off})


def test_a_conductor_alone_is_refused() -> None:
    with pytest.raises(SettingsError, match="always API and conductor in one"):
        ironic_image.translated({"IRONIC_DEPLOYMENT": "Conductor"})
