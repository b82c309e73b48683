"""The part of a VLAN in a desired state."""

from __future__ import annotations

from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.network.keyfile import Setting
from ingot.formats.network.reading import Fields

PROTOCOLS: Final = {"802.1q": "802.1Q", "802.1ad": "802.1ad"}
HIGHEST_VLAN: Final = 4094
_REGISTRATIONS: Final = {"gvrp": "gvrp", "mvrp": "mvrp", "none": "none"}
_REORDER, _LOOSE = 1, 4
_REGISTRATION_FLAGS: Final = {"gvrp": 2, "mvrp": 8}
_HIGHEST_PRIORITY: Final = 7


def read_vlan(fields: Fields) -> tuple[dict[str, Setting], str]:
    """Its settings, and the interface that it is on."""
    vlan = fields.fields("vlan")
    if vlan is None:
        raise FormatError(f"{fields.at('vlan')}: is needed and not there")
    number = vlan.number("id", 0, HIGHEST_VLAN)
    if number is None:
        raise FormatError(f"{vlan.at('id')}: is needed and not there")
    flags = _REGISTRATION_FLAGS.get(vlan.choice("registration-protocol", _REGISTRATIONS) or "none", 0)
    flags |= _REORDER if vlan.flag("reorder-headers") is not False else 0
    flags |= _LOOSE if vlan.flag("loose-binding") else 0
    own: dict[str, Setting] = {"id": number, "flags": flags}
    if protocol := vlan.choice("protocol", PROTOCOLS):
        own["protocol"] = protocol
    own["ingress-priority-map"] = _priorities(vlan, "ingress-qos-map", limited="from")
    own["egress-priority-map"] = _priorities(vlan, "egress-qos-map", limited="to")
    parent = vlan.needed("base-iface")
    vlan.done()
    return own, parent


def _priorities(vlan: Fields, key: str, *, limited: str) -> tuple[str, ...]:
    """Priorities of packets in the kernel and in the VLAN's tag, which has three bits for it."""
    pairs: list[tuple[int, int]] = []
    for pair in vlan.each(key):
        highest = {"from": 2**32 - 1, "to": 2**32 - 1} | {limited: _HIGHEST_PRIORITY}
        source, target = pair.number("from", 0, highest["from"]), pair.number("to", 0, highest["to"])
        if source is None or target is None:
            raise FormatError(f"{pair.path}: both from and to are needed")
        pair.done()
        pairs.append((source, target))
    return tuple(f"{source}:{target}" for source, target in sorted(pairs))
