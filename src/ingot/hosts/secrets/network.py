"""The network of an installed system: what `spec.networkData` names, else what the ramdisk has.

Two languages, two readers. A system that reads its config drive understands OpenStack's network_data.json, and nothing else goes
there. An installed CoreOS understands NetworkManager's keyfiles, which are made here from either language; without any of its own
it takes over the ramdisk's, if whoever made that says so. What a reader would not understand is refused: nobody wants a machine
that cannot be reached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ingot.api.core import SecretObject
from ingot.api.inputs import coreos
from ingot.api.inputs.network_data import UnreadableNetworkData, parse
from ingot.api.meta import Malformed, SecretReference
from ingot.formats import FormatError
from ingot.formats.network import keyfiles_of_secret
from ingot.hosts.host_pass import Pass
from ingot.hosts.metrics import METRICS
from ingot.hosts.secrets.reading import named_secret
from ingot.trust import Secret

_KEY: Final = "networkData"
_OPENSTACK: Final = (_KEY, "value")
"""Where OpenStack's network_data.json is looked for: `value` is what Cluster API writes."""
_NMSTATE: Final = "nmstate"


@dataclass(frozen=True, slots=True)
class _Source:
    secret: SecretObject
    field: str
    own: bool
    """It is for the installed system, and not the ramdisk's."""

    def __str__(self) -> str:
        return f"Secret {self.secret.metadata.name}, named by {self.field},"

    def text(self) -> str | None:
        found = (self.secret.text(key) for key in _OPENSTACK)
        return next((text for text in found if text is not None), None)


async def network_data(p: Pass) -> Secret:
    """network_data.json for a config drive, "" for none. Raises `Malformed`."""
    try:
        source = await _source(p)
        return Secret(await _for_config_drive(source)) if source is not None else Secret("")
    except Malformed:
        METRICS.unreadable(_KEY)
        raise


async def own_network(p: Pass, meta_data: Mapping[str, object]) -> dict[str, str]:
    """Keyfiles for an installed CoreOS, by file name; empty where it has no network of its own. Raises `Malformed`."""
    try:
        source = await _source(p)
        if source is None or (not source.own and meta_data.keys() & {coreos.COPY_NETWORK, coreos.KEYFILES}):
            return {}
        return await _keyfiles(source)
    except Malformed:
        METRICS.unreadable(_KEY)
        raise


async def _source(p: Pass) -> _Source | None:
    spec = p.host.spec
    own = spec.network_data is not None and bool(spec.network_data.name)
    field = "spec.networkData" if own else "spec.preprovisioningNetworkDataName"
    ref = spec.network_data if own else SecretReference(name=spec.preprovisioning_network_data_name)
    secret = await named_secret(p, ref, field)
    return _Source(secret, field, own) if secret is not None else None


async def _for_config_drive(source: _Source) -> str:
    text = source.text()
    if text is None:
        if source.own and source.secret.text(_NMSTATE) is not None:
            raise Malformed(
                f"{source} has the key nmstate alone, which the system that is to be installed does not read. Write OpenStack's "
                "network_data.json under the key networkData."
            )
        return ""
    try:
        await asyncio.to_thread(parse, text)
    except UnreadableNetworkData as problem:
        raise Malformed(f"The network data in {source} {problem}.{_way_out(source)}") from None
    return text


def _way_out(source: _Source) -> str:
    if source.own:
        return ""
    return (
        " Name a Secret with what is meant for the installed system in spec.networkData; what is for the ramdisk alone belongs "
        "under the key nmstate."
    )


async def _keyfiles(source: _Source) -> dict[str, str]:
    found = {key: source.secret.text(key) for key in (_NMSTATE, *_OPENSTACK)}
    filled = {key: text.encode() for key, text in found.items() if text and text.strip()}
    if not filled and not (source.own and all(text is None for text in found.values())):
        return {}
    try:
        # A long text takes a while.
        files = await asyncio.to_thread(keyfiles_of_secret, filled)
    except FormatError as error:
        raise Malformed(f"CoreOS cannot be installed: {source} cannot become its network: {error}.") from None
    return {name: content.decode() for name, content in files.items()}
