"""Network data of a system that reads its config drive: OpenStack's links, networks and services, as YAML or JSON.

The other language for a network, nmstate, is told apart here: whoever reads this one would take it for a network without anything
in it. What is wrong is told without repeating any of it: it is secret, and a parser's own message quotes the text.
"""

from __future__ import annotations

from typing import Final

import yaml

from ingot.api.inputs.documents import LARGEST, TooMuch, is_within_bounds, load

OPENSTACK: Final = frozenset({"links", "networks", "services"})
NMSTATE: Final = frozenset({"interfaces", "routes", "route-rules", "dns-resolver", "hostname"})


class UnreadableNetworkData(ValueError):
    """Continues a sentence that begins with what it is: "is neither YAML nor JSON"."""


def parse(text: str) -> dict[object, object] | None:
    """The values as they were written; None where there is nothing to configure."""
    if len(text) > LARGEST:
        raise UnreadableNetworkData(f"is too large: at most {LARGEST} characters are taken")
    try:
        parsed = load(text)
    except TooMuch as error:
        raise UnreadableNetworkData(f"is {error}; nobody could have meant that") from None
    except yaml.MarkedYAMLError as error:
        where = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UnreadableNetworkData(f"is neither YAML nor JSON: it cannot be read{where}") from None
    except (yaml.YAMLError, ValueError):
        # A date that does not exist is no YAMLError.
        raise UnreadableNetworkData("is neither YAML nor JSON") from None
    if parsed is None:
        return None
    if not isinstance(parsed, dict):
        raise UnreadableNetworkData("must be a mapping with links, networks and services")
    if not is_within_bounds(parsed):
        raise UnreadableNetworkData(
            "means more values than anybody could have meant; look for YAML aliases in it"
        )
    if parsed.keys() & NMSTATE and not parsed.keys() & OPENSTACK:
        raise UnreadableNetworkData(
            "is nmstate; what is needed here is OpenStack's network_data.json, with links, networks and services"
        )
    return parsed
