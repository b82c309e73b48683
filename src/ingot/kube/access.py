"""How to reach an API and be let in: one value, made by `config`, used by `transport`."""

from __future__ import annotations

from dataclasses import dataclass, field

from ingot.kube.identity import IdentitySource, KnownIdentity
from ingot.kube.tls import Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A server, whom to believe there, and who we are to it. Belongs to one event loop."""

    server: str
    trust: Trust = field(default_factory=Trust)
    identity: IdentitySource = field(default_factory=KnownIdentity)
    server_name: str = ""
    """The name to expect in the server's certificate, where it is not the one in the address."""
    proxy: str = field(default="", repr=False)
    """The http:// address of a proxy that tunnels connections to the server; a password may be in it."""
    namespace: str = ""
    """Where whoever wrote the kubeconfig works; "" when that was not said."""
