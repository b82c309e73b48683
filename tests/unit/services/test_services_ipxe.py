"""What a machine runs that boots over the network; that Ironic fills it in is shown in tests/integration."""

from __future__ import annotations

import io

from ingot.lab.medium import ca_in_initrd
from ingot.services import ipxe


def test_the_ca_is_found_where_the_agent_is_told_to_look_for_it() -> None:
    archive = ipxe.ca_archive(b"-----BEGIN CERTIFICATE-----\n")
    assert ca_in_initrd(io.BytesIO(archive)) == "-----BEGIN CERTIFICATE-----\n"
    assert archive == ipxe.ca_archive(b"-----BEGIN CERTIFICATE-----\n"), "the same bytes at each start"


def test_no_path_in_the_template_leads_to_another_server() -> None:
    assert "://" not in ipxe.TEMPLATE
    lines = ipxe.TEMPLATE.splitlines()
    loads = [line for line in lines if line.startswith(("kernel ", "initrd "))]
    assert len(loads) == 3
    assert all("../" in line for line in loads)


def test_what_ironic_replaces_for_another_boot_stands_where_it_looks_for_it() -> None:
    lines = ipxe.TEMPLATE.splitlines()
    assert lines.count("goto deploy") == 2, "at the beginning, and after a failure"
    for label in (":deploy", ":boot_whole_disk", ":boot_ramdisk"):
        assert label in lines
