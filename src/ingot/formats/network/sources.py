"""Where network data comes from: a text in one of the two languages, or a Secret that holds one.

In a Secret the key says which language it is: `nmstate`, or `networkData` (also under the key `value` that Cluster API
writes), which holds either; there the text itself tells, because `links` and `networks` are OpenStack's words and
`interfaces` is nmstate's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.network.connections import keyfiles
from ingot.formats.network.document import Value, parse_document
from ingot.formats.network.nmstate import wanted_of_nmstate
from ingot.formats.network.openstack import wanted_of_network_data
from ingot.formats.network.telling import discreet

_OPENSTACK: Final = frozenset({"links", "networks", "services"})
_NMSTATE: Final = frozenset({"interfaces", "routes", "route-rules", "dns-resolver", "hostname"})
_KEYS: Final = ("nmstate", "networkData", "value")


def keyfiles_of_nmstate(text: bytes) -> dict[str, bytes]:
    """The keyfiles of a desired state of nmstate, by their file names."""
    return keyfiles(wanted_of_nmstate(parse_document(text)))


def keyfiles_of_network_data(text: bytes) -> dict[str, bytes]:
    """The keyfiles of OpenStack's network_data.json, by their file names."""
    return keyfiles(wanted_of_network_data(parse_document(text)))


def keyfiles_of_secret(data: Mapping[str, bytes]) -> dict[str, bytes]:
    """The keyfiles of the network data in a Secret; one that asks for no interface at all is a mistake.

    Errors name fields and do not repeat what is in them. A long text takes a while: not for an event loop.
    """
    key = next((key for key in _KEYS if key in data), None)
    if key is None:
        raise FormatError("the Secret has neither the key nmstate nor the key networkData")
    try:
        with discreet():
            document = parse_document(data[key])
            openstack = key != "nmstate" and _is_openstack(document)
            files = keyfiles(wanted_of_network_data(document) if openstack else wanted_of_nmstate(document))
    except FormatError as error:
        raise type(error)(f"{key}: {error}") from error
    if not files:
        raise FormatError(f"{key}: no network configuration: there is no interface to configure in it")
    return files


def _is_openstack(document: Value) -> bool:
    words = set(document) if isinstance(document, dict) else set[str]()
    openstack, nmstate = words & _OPENSTACK, words & _NMSTATE
    if bool(openstack) == bool(nmstate):
        raise FormatError(
            "it is neither nmstate (interfaces) nor OpenStack's network_data (links, networks, services)"
        )
    return bool(openstack)
