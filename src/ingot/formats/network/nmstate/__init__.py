"""Reading nmstate's desired state. One module a part of it; `state.wanted_of_nmstate` is the whole."""

from ingot.formats.network.nmstate.state import wanted_of_nmstate

__all__ = ["wanted_of_nmstate"]
